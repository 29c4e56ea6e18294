"""DP-PCA: Oja's method on minibatches with a private mean of the gradients.

The rows are split into T batches of B; with gradients gᵢ = aᵢ⟨aᵢ,w⟩ of a batch,

1. Λ̂, a private estimate of the top eigenvalue of the gradients' covariance: top eigenvalues of
   subsets of differences g₂ᵢ − g₂ᵢ₋₁ vote for a bin [2^{j/4}, 2^{(j+1)/4}) of a private histogram;
2. a private mean: for each coordinate a private histogram with bins of width 2τ finds an interval
   of length 4τ; gradients are clipped to the interval and averaged, with Gaussian noise;
3. ``w ← w + η_t ĝ, w ← w/‖w‖, η_t = h/((λ̄₁ − λ̄₂)(ξ + t))``, where the population's eigenvalue gap
   λ̄₁ − λ̄₂ is taken as known.

Neighbours: one row is replaced. A row is in one batch only, so that each batch has the whole budget
(ε, δ): half for step 1, and half, (ε₂, δ₂), for step 2. As in the paper's analysis, τ is so large
that it covers a gradient with high probability: τ = 2^{1/4} √(2 Λ̂ log(B d T/ζ)), ζ = 0.01.
``paper``: the histogram of each of the d' coordinates spends ε₂/(4√(2 d' log(4/δ₂))) and δ₂/4d',
and the mean gets noise with the multiplier √(2 log(2.5/δ₂))/(ε₂/2); this is proved for ε ≤ 4.
``tight``: the least noise that the accountant allows, with half of the zCDP budget for the
histograms.

The number of subsets that vote (`VOTES`), ζ and the split of the budget were chosen here, and not
checked against the full text. Departures: an empty histogram ends the paper's algorithm. Here the
step is skipped if the histogram of Λ̂ is empty, and the interval has the centre 0 if the histogram
of its coordinate is empty. k > 1 columns are flattened into d' = dk coordinates. Several clients
pass w on from one to the next.
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
    """Parameters of `Budgeted`, and these.

    Attributes
    ----------
    gap : float
        λ̄₁ − λ̄₂, eigenvalue gap of E aaᵀ, taken as known.
    rate : float
        h of the steps h / (gap (ξ + t)).
    offset : float
        ξ of the steps.
    batches : int
        T, number of batches into which every client splits its rows.
    """

    gap: Positive = 0.1
    rate: Positive = 4.0
    offset: Positive = 4.0
    batches: Count = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_small_epsilon(4.0)


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Algorithm 3; see the module's text.

    Returns
    -------
    dict
        ``basis`` of shape (n_features, n_components).
    """
    params.open(federation, "replace_one", bounded=False)
    W = gaussian_start(federation, params, rng)
    budget = None if params.epsilon is None else calibrate(params, W.size)

    def one_pass(data: np.ndarray, state: SimpleNamespace, W: np.ndarray) -> np.ndarray:
        stream = state.rng
        if params.epsilon is not None:
            if len(data) < params.batches:
                raise InputError(
                    f"the rows of every client are split into batches = {params.batches}, and one "
                    f"client has {len(data)}{EXACT}: choose batches of at most that"
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
    """Budget of one batch for gradients of `coordinates` numbers."""
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
    """Budget of one batch: (ε, δ) of Λ̂, (ε, δ) of a coordinate's histogram, z of the mean."""

    eigenvalue: tuple[float, float]
    coordinate: tuple[float, float]
    multiplier: float


def private_mean(
    gradients: np.ndarray, budget: Budget, batches: int, rng: np.random.Generator
) -> np.ndarray:
    """Private mean of the rows of `gradients`, shape (B, d'), within one batch's budget.

    `batches` is the number of batches of the run, which share the probability of failure `FAILURE`.

    Returns
    -------
    ndarray of shape (d',)
        Zero when no top eigenvalue is found.
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
    """Private estimate of the top eigenvalue of the gradients' covariance, on a grid of 2^{1/4}.

    Subsets vote for an interval of the grid. None when the gradients are too few or no interval has
    enough votes.
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
    """Fullest bin of a private histogram over all integers; None when no bin is seen.

    Stability-based histogram (Karwa & Vadhan, ITCS 2018, Lemma 2.3). The count of every non-empty
    bin gets Lap(2/ε) noise; the bin is seen when the noisy count is above ``1 + 2 log(2/δ)/ε``.
    The result is (ε, δ)-DP when one entry is replaced.
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
    """Noisy count above which a bin is seen, ``1 + 2 log(2/δ)/ε``."""
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
