"""Private mean of vectors of unknown scale.

Liu, Kong, Jain & Oh (NeurIPS 2022), the parts of their Algorithm 3 (see
`fedcore.algorithms.dp_pca`). Neighbours: one vector is replaced.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

FAILURE = 0.01  # ζ, probability that some gradient exceeds τ
VOTES = 4.0  # number of subsets that vote, in units of `needed`


class Budget(NamedTuple):
    """Budget of one batch: (ε, δ) of Λ̂, (ε, δ) of a coordinate's histogram, z of the mean."""

    eigenvalue: tuple[float, float]
    coordinate: tuple[float, float]
    multiplier: float


def private_mean(
    gradients: np.ndarray, budget: Budget, batches: int, rng: np.random.Generator
) -> np.ndarray:
    """Private mean of the rows of `gradients`, shape (B, d'), within one batch's budget.

    `batches` is the number of batches of the run, over which `FAILURE` is spread.

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
