"""Adaptive power method for differentially private PCA.

In every step the sparse vector technique finds a threshold θ, a power of `ratio`, such that few
rows have ‖a‖|⟨a,x⟩| > θ. The step leaves out these rows, so that one row changes the sum by at most
θ, and adds noise in proportion to θ:

    x ← Σ_{‖a‖|⟨a,x⟩| ≤ θ} a⟨a,x⟩ + θ z g,   g ~ N(0, I),    then x ← x/‖x‖, as the paper suggests.

Neighbours: one row added or removed (the proof of Lemma 3.1). The number of rows n is then not
public. Therefore the queries count the rows *above* θ_k and compare this count with the margin.
This is the paper's test with n moved to the other side; the count has sensitivity 1 and is
monotone. The range of θ is fixed in advance, and rows may have any norm, so that no parameter is
taken from the data without privacy cost.

Calibration ``paper``: every step has ε₀ and δ₀ with ``2(Tε₀² + √(2 log(1/δ₀) T) ε₀) = ε`` and
``(T + 1) δ₀ = δ`` (Lemma 3.1). The sparse vector technique spends ε₀, and the noise has
z = √(2 log(2/δ₀))/ε₀ as in the pseudo-code (``statement``), or the larger 2√log(2/δ₀)/ε₀ of the
proof of Lemma 3.1 (``proof``). Calibration ``tight``: z is the least that the accountant allows for
T Gaussian steps and T ε-DP searches. The searches get the share `search_share` of the zCDP budget.
Their queries need only half the noise, because they are monotone.

Departures: k > 1 columns (‖a‖‖Xᵀa‖₂ instead of ‖a‖|⟨a,x⟩|, orthonormalised steps) are not in the
paper. With several clients, each runs the step on its own rows with its own threshold, and the
server, which need not be trusted, adds the results. A single client plays the part of the paper's
curator.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.algorithms.ssi import communication
from fedcore.federation.federation import Federation
from fedcore.linalg import orth
from fedcore.parts.budget import Budgeted, gaussian_start
from fedcore.parts.filtering import Noise, filtered_product, search_epsilon, step_events
from fedcore.parts.gram_products import gram_product
from fedcore.privacy import calibration
from fedcore.validation import CountOrZero, Share, one_of, real

COLUMNS = {
    "threshold": ("data units squared", "θ of the step, the largest of any client's"),
    "filtered": ("rows", "rows of all clients that sat out the step"),
}


@dataclass(frozen=True)
class Params(Budgeted):
    """All parameters of `Budgeted`, and the following.

    Attributes
    ----------
    rounds : int
        T, steps of the power method.
    failure : float
        β: probability that the search passes a threshold that no row exceeds.
    search_share : float
        Share of the zCDP budget that ``tight`` gives to the search.
    ratio : float
        Ratio of successive thresholds.
    constant : str
        Noise of the calibration ``paper``: ``statement`` takes the noise of the pseudo-code,
        ``proof`` the larger noise of the proof.
    """

    rounds: CountOrZero = 10
    failure: Share = 0.05
    search_share: Share = 0.1
    ratio: Annotated[float, real(above=1)] = 2.0
    constant: Annotated[str, one_of(("statement", "proof"))] = "statement"


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Algorithm 1; see the module's text.

    Returns
    -------
    dict
        ``basis`` of shape (n_features, n_components).
    """
    params.open(federation, "add_or_remove_one", bounded=False)
    step = gram_product
    if params.epsilon is not None and params.rounds:
        step = filtered_product(calibrate(params), params.failure, params.ratio)
    X = gaussian_start(federation, params, rng)
    record(0, basis=X, counts=dict.fromkeys(COLUMNS, 0))
    for t in record.rounds(params.rounds):
        federation.broadcast(X)
        X = orth(federation.sum(step))
        record(t, basis=X, counts=_counts(federation, params))
    return {"basis": X}


def calibrate(params: Params) -> Noise:
    """Noise of one step such that T steps spend (ε, δ)."""
    T, delta = params.rounds, params.delta
    assert params.epsilon is not None
    if params.calibration == "paper":
        delta = delta / (T + 1)
        root = 2.0 * math.log(1.0 / delta) * T
        epsilon = (math.sqrt(root + 2.0 * T * params.epsilon) - math.sqrt(root)) / (2.0 * T)
        factor = {"statement": math.sqrt(2.0), "proof": 2.0}[params.constant]
        return Noise(epsilon, factor * math.sqrt(math.log(2.0 / delta)) / epsilon, 4.0)
    multiplier = calibration.calibrate(
        lambda z: step_events(z, params.search_share, T), params.epsilon, delta
    )
    return Noise(search_epsilon(multiplier, params.search_share), multiplier, 2.0)


def _counts(federation: Federation, params: Params) -> dict[str, Any]:
    """Thresholds and filtered rows of the last step, read outside the protocol."""
    if params.epsilon is None:
        return dict.fromkeys(COLUMNS, 0)
    return {
        "threshold": max(federation.client_state("threshold")),
        "filtered": sum(federation.client_state("filtered")),
    }


ALGORITHM = Algorithm(
    paper="dppower",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    columns=COLUMNS,
    released=frozenset(["threshold"]),  # found by the sparse vector technique, which is paid for
    citation=(
        "Nguyen, Ene & Nguyen, *Adaptive power iteration method for differentially private PCA* "
        "(arXiv:2602.11454), Algorithm 1"
    ),
    look=("blue", "dash-dotted"),
)
