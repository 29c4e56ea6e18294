"""DP-PCA: Oja's method on minibatches with a private mean of the gradients.

The method is Algorithm 3 of Liu, Kong, Jain & Oh (NeurIPS 2022), here called the paper. Each client
splits its rows into T batches of B rows. For each batch, the method updates the basis w in three
steps, with the gradients gᵢ = aᵢ⟨aᵢ,w⟩ of the rows aᵢ.

Step 1 computes Λ̂, a private estimate of the top eigenvalue of the gradients' covariance. The
differences g₂ᵢ − g₂ᵢ₋₁ of gradients are divided into subsets. In a private histogram, each subset
votes for the bin [2^{j/4}, 2^{(j+1)/4}) that contains the top eigenvalue of the subset's
covariance.

Step 2 computes a private mean ĝ of the gradients. For each coordinate, a private histogram with
bins of width 2τ finds an interval of length 4τ. The gradients are clipped to these intervals, and
Gaussian noise is added to their mean.

Step 3 updates ``w ← w + η_t ĝ, w ← w/‖w‖`` with ``η_t = h/((λ̄₁ − λ̄₂)(ξ + t))``, where h is `rate`
and ξ is `offset`. The gap λ̄₁ − λ̄₂ between the two largest eigenvalues of the population's matrix
E aaᵀ is taken as known.

Neighbouring data sets differ in one replaced row. Each row is in a single batch, so the computation
on each batch may spend the whole budget (ε, δ). Step 1 spends half of the batch's budget, and step
2 spends the other half, (ε₂, δ₂). As in the paper's analysis, step 2 takes τ = 2^{1/4} √(2 Λ̂ log(B
d' T/ζ)) with ζ = 0.01, which covers all gradients with high probability. A gradient has d' = dk
coordinates, because its k columns are flattened.

With ``calibration="paper"``, each coordinate's histogram has the budget (ε₂/(4√(2 d' log(4/δ₂))),
δ₂/4d'). For the mean, the paper's noise multiplier is √(2 log(2.5/δ₂))/(ε₂/2), which is proved to
suffice for ε ≤ 4. ``calibration="tight"`` takes the least noise with which, by the privacy
accountant, step 2 is (ε₂, δ₂)-DP. The histograms then get half of the zCDP budget of step 2.

The number of subsets that vote (`VOTES`), the failure probability ζ and the split of the budget are
fedcore's choices. These choices were not checked against the full text of the paper. The paper's
algorithm stops if a private histogram is empty. In fedcore, w keeps its value if the histogram of
step 1 is empty. If the histogram of a coordinate is empty, the coordinate's interval has the centre
0. With several clients, w passes from client to client.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.algorithms.private_oja import client_after_client, communication
from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.linalg import orth
from fedcore.parts.budget import Budgeted, gaussian_start
from fedcore.privacy import calibration
from fedcore.privacy.bounded_rows import without_endless_rows
from fedcore.privacy.events import Bounded, Event, Gaussian
from fedcore.privacy.mechanisms import derived
from fedcore.validation import Count, Positive
from fedcore.words import EXACT

FAILURE = 0.01  # ζ, probability that some gradient exceeds τ
VOTES = 4.0  # number of subsets that vote, in units of `needed`


@dataclass(frozen=True)
class Params(Budgeted):
    """Hyper-parameters that DP-PCA adds to those of `Budgeted`, such as ε and δ.

    Attributes
    ----------
    gap : float
        Gap λ̄₁ − λ̄₂ between the two largest eigenvalues of the population's matrix E aaᵀ, taken as
        known.
    rate : float
        Numerator h of the step sizes h / (gap (ξ + t)).
    offset : float
        Offset ξ of the step sizes h / (gap (ξ + t)).
    batches : int
        Number T of batches into which every client splits its rows.
    """

    gap: Positive = 0.1
    rate: Positive = 4.0
    offset: Positive = 4.0
    batches: Count = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_small_epsilon(4.0)


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Algorithm 3 of Liu, Kong, Jain & Oh (NeurIPS 2022).

    Returns
    -------
    dict
        Orthonormal ``basis`` of shape (n_features, n_components).
    """
    params.open(federation, "replace_one", bounded=False)
    W = gaussian_start(federation, params, rng)
    budget = None if params.epsilon is None else calibrate(params, W.size)

    def one_pass(data: np.ndarray, state: SimpleNamespace, W: np.ndarray) -> np.ndarray:
        stream = state.rng
        if params.epsilon is not None:
            if len(data) < params.batches:
                raise InputError(
                    f"batches = {params.batches} is larger than the number of rows of one client, "
                    f"{len(data)}{EXACT}: choose batches of at most the fewest rows of a client"
                )
            stream = state.privacy.bounded(params.epsilon, params.delta, "DP-PCA")
        for t, batch in enumerate(np.array_split(stream.permutation(len(data)), params.batches)):
            rows = without_endless_rows(data[batch])
            if budget is None:
                mean = rows.T @ (rows @ W) / max(len(rows), 1)
            else:
                gradients = (rows[:, :, None] * (rows @ W)[:, None, :]).reshape(len(rows), -1)
                mean = private_mean(gradients, budget, params.batches, stream).reshape(W.shape)
            W = orth(W + params.rate / (params.gap * (params.offset + t)) * mean)
        return derived(state, W)

    return {"basis": client_after_client(federation, one_pass, W, record)}


def calibrate(params: Params, coordinates: int) -> Budget:
    """Return the privacy budget of one batch, for gradients of `coordinates` numbers."""
    assert params.epsilon is not None
    epsilon, delta = params.epsilon / 2.0, params.delta / 2.0
    small = delta / (4.0 * coordinates)
    if params.calibration == "paper":
        part = epsilon / (4.0 * math.sqrt(2.0 * coordinates * math.log(4.0 / delta)))
        z = math.sqrt(2.0 * math.log(2.5 / delta)) / (epsilon / 2.0)
        return Budget((epsilon, delta), (part, small), z)

    def part_of(z: float) -> float:
        return 1.0 / (z * math.sqrt(coordinates))

    def events(z: float) -> dict[Event, int]:
        return {Gaussian(z): 1, Bounded(part_of(z), small): coordinates}

    z = calibration.calibrate(events, epsilon, delta)
    return Budget((epsilon, delta), (part_of(z), small), z)


class Budget(NamedTuple):
    """Privacy budget of one batch.

    Attributes
    ----------
    eigenvalue : (float, float)
        Budget (ε, δ) for estimating the top eigenvalue of the gradients' covariance.
    coordinate : (float, float)
        Budget (ε, δ) for the histogram of one coordinate of the gradients.
    multiplier : float
        Noise multiplier for the mean of the gradients.
    """

    eigenvalue: tuple[float, float]
    coordinate: tuple[float, float]
    multiplier: float


def private_mean(
    gradients: np.ndarray, budget: Budget, batches: int, rng: np.random.Generator
) -> np.ndarray:
    """Return a private mean of the rows of `gradients`, shape (B, d'), within one batch's budget.

    `FAILURE` bounds the probability that any gradient of the run, in all `batches` batches, exceeds
    the bound τ, which sets the width of the bins.

    Returns
    -------
    ndarray of shape (d',)
        The private mean, or zeros if `top_eigenvalue` returns None.
    """
    B, d = gradients.shape
    top = top_eigenvalue(gradients, *budget.eigenvalue, rng)
    if top is None:
        return np.zeros(d)
    tau = 2.0**0.25 * math.sqrt(2.0 * top * math.log(B * d * batches / FAILURE))
    bins = np.clip(np.floor(gradients / (2.0 * tau)), -(2.0**60), 2.0**60).astype(np.int64)
    centres = np.zeros(d)
    for j in range(d):
        found = largest_bin(bins[:, j], *budget.coordinate, rng)
        centres[j] = 0.0 if found is None else (2.0 * found + 1.0) * tau
    cut = np.clip(gradients, centres - 2.0 * tau, centres + 2.0 * tau)
    moved = 4.0 * tau * math.sqrt(d) / B  # largest move of the mean by one row
    # The sum leaves out the centres: its rounding then is relative to τ, as the noise is.
    return (
        centres + (cut - centres).mean(axis=0) + moved * budget.multiplier * rng.standard_normal(d)
    )


def top_eigenvalue(
    gradients: np.ndarray, epsilon: float, delta: float, rng: np.random.Generator
) -> float | None:
    """Return a private estimate of the top eigenvalue of the gradients' covariance, or None.

    Subsets of the gradients vote for an interval [2^{j/4}, 2^{(j+1)/4}), and the upper end of the
    winning interval is the estimate. The result is None if there are too few gradients, or if no
    interval has enough votes.
    """
    subsets = math.ceil(VOTES * needed(epsilon, delta))
    pairs = len(gradients) // 2
    size = pairs // subsets
    if size < 1:
        return None
    half = gradients[: 2 * subsets * size]
    differences = (half[1::2] - half[::2]).reshape(subsets, size, -1)
    # ½ E ddᵀ is the covariance; the smaller Gram matrix has the same top eigenvalue.
    if size < differences.shape[2]:
        second = differences @ differences.transpose(0, 2, 1)
    else:
        second = differences.transpose(0, 2, 1) @ differences
    votes = np.linalg.eigvalsh(second)[:, -1] / (2.0 * size)
    positive = votes[votes > 0]
    found = largest_bin(np.floor(4.0 * np.log2(positive)).astype(np.int64), epsilon, delta, rng)
    return None if found is None else 2.0 ** ((found + 1.0) / 4.0)


def largest_bin(
    bins: np.ndarray, epsilon: float, delta: float, rng: np.random.Generator
) -> int | None:
    """Return the fullest bin of a private histogram over the integers; None if no bin is kept.

    The method is the stability-based histogram of Karwa & Vadhan (ITCS 2018, Lemma 2.3). The count
    of every bin that occurs in `bins` gets Lap(2/ε) noise. The private histogram keeps the bins
    with a noisy count above ``1 + 2 log(2/δ)/ε``. The result is (ε, δ)-DP for neighbours that
    differ in one replaced entry of `bins`.
    """
    if not len(bins):
        return None
    lowest = bins.min()
    if bins.max() - lowest < 10_000:
        counts = np.bincount(bins - lowest)
        values = np.flatnonzero(counts) + lowest
        counts = counts[counts > 0]
    else:
        values, counts = np.unique(bins, return_counts=True)
    noisy = counts + rng.laplace(0.0, 2.0 / epsilon, len(counts))
    best = int(np.argmax(noisy))
    return int(values[best]) if noisy[best] > needed(epsilon, delta) else None


def needed(epsilon: float, delta: float) -> float:
    """Return the noisy count ``1 + 2 log(2/δ)/ε`` above which a private histogram keeps a bin."""
    return 1.0 + 2.0 * math.log(2.0 / delta) / epsilon


ALGORITHM = Algorithm(
    paper="dppower",
    parameters=Params,
    run=run,
    communication=communication,
    case={  # the clients of the checks are small
        "sequential": True,
        "needs": lambda S, r: {"batches": 2, "clip": True},
    },
    citation=(
        "Liu, Kong, Jain & Oh, *DP-PCA: statistically optimal and differentially private PCA* "
        "(NeurIPS 2022), Algorithm 3"
    ),
    look=("vermillion", "dash-dotted"),
)
