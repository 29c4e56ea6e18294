"""The fit of a `FederatedPCA` without privacy."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np

from fedcore.errors import ArbitraryWarning, ConvergenceWarning, unwanted, warn
from fedcore.estimators.last_round import Axes, last_round
from fedcore.estimators.settings import Found, Request
from fedcore.federation.centring import blocks
from fedcore.federation.federation import Federation
from fedcore.parts import convergence_test
from fedcore.parts.gram_products import gram_pays_off
from fedcore.problems.clients import Clients
from fedcore.runs import subtract_mean
from fedcore.user_runs import run

ROUNDS = 8  # a run usually takes at least this many
# Sine of the angle above which a user is warned; the estimate tends to be too small.
WARNING_SINE = 1e-4
PACKING = 15  # columns whose product takes as long as BLAS takes to pack the data for any product


def fit(asked: Request, matrices: Any) -> Found:
    """Prepare the samples, run the algorithm, and rotate its basis to principal axes.

    Parameters
    ----------
    asked : Request
        Checked parameters of the estimator.
    matrices : sequence of ndarray of shape (n_i, d)
        The clients' checked samples.

    Raises
    ------
    InputError
        If parameters or samples are invalid.
    """
    n_samples, n_features = sum(len(m) for m in matrices), matrices[0].shape[1]
    r = asked.rank(n_samples, n_features)

    def begin(federation: Federation) -> dict[str, np.ndarray]:
        def prepare() -> None:
            if asked.algorithm.gram_products_only and gram_comes_first(federation, r):
                gram = pooled_gram(federation.clients)
                limits, largest = np.finfo(gram.dtype), gram.diagonal().max()
                if limits.tiny <= largest <= limits.max / n_features:
                    federation.clients.gram = gram

        if asked.center:
            mean = subtract_mean(federation, prepare)["mean"]
        else:
            mean = np.zeros(n_features)
        scale = federation.scale(mean) if asked.scale else np.ones(n_features)
        if asked.scale or not asked.center:
            prepare()
        return {"mean": mean, "scale": scale}

    clients = Clients(matrices)
    # A user who has not chosen the number of components needs no warning that it is arbitrary.
    with nullcontext() if asked.counts_components else unwanted(ArbitraryWarning):
        result = run(
            asked.algorithm.name, clients, r, seed=asked.seed, begin=begin, finish=last_round,
            **{"iterates": "none", "measure": (), **asked.options},
        )  # fmt: skip
    output = result.output
    axes, outside = _with_share(output["axes"], output["outside"], asked.share)
    dtype = np.result_type(*clients.dtypes)
    estimate = output.get("angle_estimate", 1.0)
    if "products" in output:
        estimate = convergence_test.estimate_untested(
            output["sent"], output["products"], output["outside"],
            min(n_samples - asked.center, n_features), dtype,
        )  # fmt: skip
        if asked.counts_components:
            _tell(asked.algorithm.name, estimate)
    if len(axes.squares) < len(output["axes"].squares):
        found = output["axes"].squares
        beyond = output["outside"] if len(found) < n_features else 0.0  # else it is rounding
        estimate = _where_cut(found, beyond, len(axes.squares), dtype)
    return Found(axes, outside, n_samples, result, float(np.fmin(estimate, 1.0)))


def gram_comes_first(federation: Federation, r: int) -> bool:
    """Return whether forming the Gram matrix is faster than `ROUNDS` products with the data.

    The module `fedcore.parts.gram_products` does not know how many rounds will follow. It forms the
    Gram matrix only after so many products that the matrix would already have paid off. A fit may
    form the Gram matrix before the first product, because a run usually takes at least `ROUNDS`
    rounds. Each product counts as if it had `PACKING` more columns, because BLAS reads and packs
    all data for every product.
    """
    clients = federation.clients
    if clients.sparse or not federation.at_once:
        return False
    n, d = sum(rows for rows, _ in clients.shapes), clients.n_features
    return gram_pays_off(n * d, n * d**2, d, ROUNDS * (r + PACKING))


def pooled_gram(clients: Clients) -> np.ndarray:
    """Return ``Σ SᵢᵀSᵢ`` over the matrices Sᵢ of dense clients, shape (d, d), without copies.

    NumPy's ``rows.T @ rows`` is faster than `fedcore.linalg.gram_matrix`: it takes 0.4 of the time
    with 6 features, and 0.9 of the time with 500 features. The Snakemake workflow uses
    `gram_matrix`, because NumPy's rounding would change the workflow's results.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return sum(rows.T @ rows for rows in blocks(clients))


def _tell(algorithm: str, estimate: float) -> None:
    """Warn if a run without a convergence test has an error estimate above `WARNING_SINE`."""
    if estimate <= WARNING_SINE:
        return
    angle = f"{estimate:.2g} or more" if estimate < 1 else "any number up to 1"
    warn(
        f"{algorithm} ran without a convergence test, and the sine of the angle between its "
        f"subspace and the exact one may be {angle}: raise its number of rounds or "
        "multiplications, choose n_components so that the next singular value is much smaller, or "
        "take block_krylov, which tests its convergence",
        ConvergenceWarning,
    )


def _with_share(axes: Axes, outside: float, share: float | None) -> tuple[Axes, float]:
    """Keep the fewest leading axes that explain more than `share` of the total sum of squares."""
    if share is None:
        return axes, outside
    ratios = np.cumsum(axes.squares) / (axes.squares.sum() + outside)
    r = min(int(np.searchsorted(ratios, share, side="right")) + 1, len(ratios))
    left = float(axes.squares[r:].sum())
    return Axes(axes.components[:r], axes.squares[:r]), outside + left


def _where_cut(squares: np.ndarray, outside: float, r: int, dtype: np.dtype) -> float:
    """Estimate the sine of the angle between the span of the first r axes and the exact subspace.

    `squares` are the sums of squared scores along all computed axes. `outside` is the sum of
    squares of the part of the data outside the span of all these axes.
    """
    unit = float(np.finfo(dtype).eps * squares[0])
    gap = squares[r - 1] - squares[r] - outside
    return float((unit + np.sqrt(outside) * np.sqrt(squares[0])) / gap) if gap > 0 else 1.0
