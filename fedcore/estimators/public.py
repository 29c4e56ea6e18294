"""The fit of a `FederatedPCA` without privacy."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from fedcore.calls import run
from fedcore.errors import ArbitraryWarning, ConvergenceWarning, unwanted, warn
from fedcore.estimators import certificate
from fedcore.estimators.exchanges import Axes, last_round, prepare
from fedcore.estimators.request import Found, Request, continued
from fedcore.federation.federation import Federation
from fedcore.federation.in_process import InProcess
from fedcore.parts.gram_products import gram_pays_off
from fedcore.problems.clients import Clients

# Algorithms that read the data in `gram_product` only, whose sum takes a Gram matrix that is there.
SUMS = frozenset(("block_krylov", "momentum_power", "ssi"))
ROUNDS = 8  # that a run takes at least as a rule
TOLD = 1e-4  # sine of the angle above which a user is warned; the estimate is rather too small
PACKING = 15  # columns whose product takes as long as BLAS takes to pack the data for any product


def fit(asked: Request, matrices: Any) -> Found:
    """Prepare the samples, run the algorithm, and rotate its basis to principal axes.

    Parameters
    ----------
    asked : Request
    matrices : sequence of ndarray of shape (n_i, d)
        Checked.

    Raises
    ------
    InputError
        For parameters or samples that do not fit.
    """
    n_samples, n_features = sum(len(m) for m in matrices), matrices[0].shape[1]
    r = asked.rank(n_samples, n_features)
    options = dict(asked.options)
    told = options.pop("transcript", None)
    ready = prepare(matrices, asked.seed, told, center=asked.center, scale=asked.scale)
    products = certificate.Products(told, ready.ledger.rounds, len(matrices))
    if asked.algorithm.name in SUMS and gram_comes_first(ready.clients, r):
        ready.clients.gram = pooled_gram(ready.clients)
    # Where components end is nobody's choice, if the user has not chosen.
    with nullcontext() if _chosen_by_user(asked) else unwanted(ArbitraryWarning):
        result = run(
            asked.algorithm.name, ready.clients, r, seed=asked.seed, finish=last_round,
            transcript=products, **options,
        )  # fmt: skip
    output = result.output
    axes, outside = _with_share(output["axes"], output["outside"], asked.share)
    known = asked.algorithm.name in certificate.PRODUCTS
    total = output["axes"].squares.sum() + output["outside"]
    pairs, estimate = (products.pairs if known else []), output.get("angle_bound")
    if "products" in output:
        pairs = [(output["sent"], output["products"]), *pairs]
        dimension = min(n_samples - asked.center, n_features)
        estimate = certificate.estimate(output["axes"].components.T, pairs, total, dimension)
        if _chosen_by_user(asked):
            _tell(asked.algorithm.name, estimate)
    bound = certificate.bound(axes.components.T, pairs, total)
    return Found(
        axes, outside, ready.mean, ready.scale, n_samples,
        continued(result.history, ready.ledger), ready.ledger + result.ledger, bound,
        None if estimate is None else float(estimate),
        bool(output["converged"]) if "converged" in output else None,
    )  # fmt: skip


def gram_comes_first(clients: Clients, r: int) -> bool:
    """Whether the Gram matrix of all data takes less time than `ROUNDS` products with the data.

    `fedcore.parts.gram_products` makes it when products have cost as much, whatever the number of
    rounds. Here it comes first, because the default takes some ten rounds, and few columns: BLAS
    reads and packs the data for every product, however few its columns are.
    """
    if clients.sparse or Federation.engine is not InProcess:
        return False
    n, d = sum(rows for rows, _ in clients.shapes), clients.n_features
    return gram_pays_off(n * d, n * d**2, d, ROUNDS * (r + PACKING))


def pooled_gram(clients: Clients) -> np.ndarray:
    """Return ``Σ SᵢᵀSᵢ`` of dense clients, shape (d, d).

    NumPy's product of a matrix with its own transpose takes 0.4 (6 features) to 0.9 (500) of the
    time of `fedcore.linalg.gram_matrix`, whose bits the workflow's results have.
    """
    first, *others = (data.T @ data for data in clients)
    for gram in others:
        first = first + gram
    return first


def _tell(algorithm: str, estimate: float) -> None:
    """Warn of the subspace that a run without a test has ended at, if it is off."""
    if estimate <= TOLD:
        return
    angle = f"by an angle of {estimate:.1g} or more" if estimate < 1 else "by any angle"
    warn(
        f"{algorithm} ran without a test of convergence, and the products of the last round say "
        f"that its subspace may be off {angle}: allow it more rounds or products, choose "
        "n_components where the singular values part, or take block_krylov, which ends when it is "
        "right",
        ConvergenceWarning,
    )


def _chosen_by_user(asked: Request) -> bool:
    return asked.n_components is not None and asked.share is None


def _with_share(axes: Axes, outside: float, share: float | None) -> tuple[Axes, float]:
    """Keep the fewest axes with more than this share of the squares."""
    if share is None:
        return axes, outside
    ratios = np.cumsum(axes.squares) / (axes.squares.sum() + outside)
    r = min(int(np.searchsorted(ratios, share, side="right")) + 1, len(ratios))
    left = float(axes.squares[r:].sum())
    return Axes(axes.components[:r], axes.squares[:r]), outside + left
