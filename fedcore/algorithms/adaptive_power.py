"""Adaptive power method for differentially private PCA.

The method is Algorithm 1 of Nguyen, Ene & Nguyen (arXiv:2602.11454), here called the paper. A step
of the power method multiplies x by AᵀA, where the rows a of A are the samples. The sparse vector
technique finds a threshold θ, a power of `ratio`, such that only a few rows a have a contribution
‖a‖|⟨a,x⟩| above θ to the product. The step leaves out these rows, so one row changes the sum by at
most θ. With the noise multiplier z, the step is:

    x ← Σ_{‖a‖|⟨a,x⟩| ≤ θ} a⟨a,x⟩ + θ z g,   g ~ N(0, I),    then x ← x/‖x‖, as the paper suggests.

Neighbouring data sets differ by one added or removed row, as in the proof of the paper's Lemma 3.1.
The number of rows n is therefore not public. Each query of the sparse vector technique counts the
rows *above* a threshold and compares the count with a margin. The paper's form of this comparison
contains n. The count has sensitivity 1, and is monotone: an added row never lowers it. No parameter
is taken from the data: the range of θ is fixed in advance, and rows may have any norm.

For T steps, ``calibration="paper"`` gives every step the budget (ε₀, δ₀) with ``2(Tε₀² + √(2
log(1/δ₀) T) ε₀) = ε`` and ``(T + 1) δ₀ = δ`` (Lemma 3.1). In each step, the search for θ by the
sparse vector technique is ε₀-DP. With ``constant="statement"``, z is √(2 log(2/δ₀))/ε₀, as in the
pseudo-code. With ``constant="proof"``, z is 2√log(2/δ₀)/ε₀, as in the proof of Lemma 3.1.
``calibration="tight"`` takes the least z with which, by the privacy accountant, T Gaussian releases
and T pure-DP searches for a threshold are (ε, δ)-DP together. The searches spend the share
`search_share` of the zCDP budget. For the same privacy loss of a search, the counts get half as
much noise as with ``calibration="paper"``. This noise suffices because the counts are monotone.

The paper computes only one column x (k = 1). For k > 1 columns X, each step orthonormalises X, and
‖a‖‖Xᵀa‖₂ replaces ‖a‖|⟨a,x⟩|. With several clients, each client runs the step on its own rows with
its own threshold. The server receives only noisy results, adds them up, and need not be trusted.
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
    """Hyper-parameters that the method adds to those of `Budgeted`, such as ε and δ.

    Attributes
    ----------
    rounds : int
        Number T of steps of the power method.
    failure : float
        Bound β on the probability that the search rejects a threshold although no row's
        contribution exceeds it.
    search_share : float
        Share of the zCDP budget that the calibration ``tight`` gives to the searches for
        thresholds.
    ratio : float
        Ratio of successive thresholds that a search tries.
    constant : str
        Formula for the noise with the calibration ``paper``. ``statement`` takes the formula in the
        pseudo-code of Nguyen, Ene & Nguyen, and ``proof`` takes the larger noise in the proof of
        their Lemma 3.1.
    """

    rounds: CountOrZero = 10
    failure: Share = 0.05
    search_share: Share = 0.1
    ratio: Annotated[float, real(above=1)] = 2.0
    constant: Annotated[str, one_of(("statement", "proof"))] = "statement"


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Algorithm 1 of Nguyen, Ene & Nguyen (arXiv:2602.11454).

    Returns
    -------
    dict
        Orthonormal ``basis`` of shape (n_features, n_components).
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
    """Return the noise of one step such that all T steps together spend (ε, δ)."""
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
    """Return the clients' largest threshold in the last step, and the number of rows left out."""
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
