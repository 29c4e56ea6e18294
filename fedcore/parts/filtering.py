"""Differentially private product AᵀA X that leaves out the rows of A that contribute most.

The adaptive power method (Nguyen, Ene & Nguyen, arXiv:2602.11454, Algorithm 1) makes one such
product per step. The rows of A may have any norm. The contribution of a row a is ‖a‖‖Xᵀa‖. The
sparse vector technique finds the least threshold θ that only few contributions exceed. The product
leaves out the rows whose contribution exceeds θ. The sum over the kept rows gets Gaussian noise
proportional to θ.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from fedcore.privacy.bounded_rows import LONGEST_ROW, product, row_norms, transposed_product
from fedcore.privacy.events import Bounded, Event, Gaussian

LOWEST, HIGHEST = 2.0**-40, 2.0**20  # ends of the range of θ


class Noise(NamedTuple):
    """Noise of one filtered product, such as a step of the adaptive power method makes.

    Attributes
    ----------
    search : float
        Privacy loss ε of one search by the sparse vector technique.
    multiplier : float
        Standard deviation z of the noise on the sum, in units of the threshold θ.
    query_scale : float
        Factor in ``query_scale / search``, the scale of the Laplace noise of each query in the
        search.
    """

    search: float
    multiplier: float
    query_scale: float


def step_events(multiplier: float, share: float, steps: int) -> dict[Event, int]:
    """Return the privacy events (charges) of `steps` steps, each with one search and one noisy sum.

    An ε-DP search is ε²/2-zCDP, and a sum with noise multiplier z is 1/(2z²)-zCDP.
    """
    return {Gaussian(multiplier): steps, Bounded(search_epsilon(multiplier, share)): steps}


def filtered_product(noise: Noise, failure: float, ratio: float) -> Any:
    """Return the client step that finds the threshold θ and releases ``Σ_{kept} a(aᵀX) + θ z G``.

    z is the noise multiplier, and G is a Gaussian matrix. The sum is over the rows a whose
    contribution is at most θ.
    """
    margin = (2.0 + noise.query_scale) * math.log(1.0 / failure) / noise.search
    first, last = (round(math.log(end, ratio)) for end in (LOWEST, HIGHEST))

    def step(data: np.ndarray, state: SimpleNamespace, X: np.ndarray) -> np.ndarray:
        if not hasattr(state.kept, "norms"):
            state.kept.norms = row_norms(data)
        with np.errstate(over="ignore", invalid="ignore"):
            Y = product(data, X)
            scores = state.kept.norms * row_norms(Y)
        # Rows whose products over- or underflow are left out at every threshold.
        scores[~(state.kept.norms <= LONGEST_ROW)] = np.inf
        k = state.privacy.above_threshold(
            _minus_counts_above(scores, ratio, first, last),
            -margin,
            sensitivity=1.0,
            epsilon=noise.search,
            monotone=noise.query_scale == 2.0,
        )
        state.threshold = float(ratio) ** (last if k is None else first + k)
        over = scores > state.threshold
        state.filtered = int(over.sum())
        Y[over] = 0.0
        value = transposed_product(data, Y)
        return state.privacy.gaussian(
            value, sensitivity=state.threshold, noise_multiplier=noise.multiplier
        )

    return step


def search_epsilon(multiplier: float, share: float) -> float:
    """Return the ε of a threshold search that spends a fraction `share` of a step's zCDP budget."""
    return math.sqrt(share / (1.0 - share)) / multiplier


def _minus_counts_above(scores: np.ndarray, ratio: float, first: int, last: int) -> Iterator[float]:
    """Yield minus the number of scores above ``ratio^k`` for k = `first`, …, `last`."""
    with np.errstate(divide="ignore"):
        least = np.ceil(np.log(scores) / math.log(ratio))  # the row is above ratio^k for k < this
    bins = np.clip(least, first, last + 1).astype(np.intp) - first
    above = len(scores) - np.cumsum(np.bincount(bins, minlength=last - first + 2))
    yield from (-float(count) for count in above[: last - first + 1])
