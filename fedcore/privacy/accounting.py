"""Total privacy loss ε of a composition of privacy events, at a given δ.

An event (see `fedcore.privacy.events`) describes how one noisy release depends on one row of data.
Later releases may depend on the results of earlier ones.

Gaussian mechanisms, and mechanisms known only to be (ε, δ)-DP (`Bounded`), are composed in closed
form, exactly up to rounding. Several Gaussian mechanisms equal one Gaussian mechanism with ``1/σ² =
Σ 1/σᵢ²`` (Dong, Roth & Su, *Gaussian differential privacy*, JRSS-B 2022, Corollary 3.3). Balle &
Wang (ICML 2018) give the δ(ε) of a Gaussian mechanism, its least δ for a given ε. Every (ε, δ)-DP
mechanism is dominated by a pair of distributions with the three privacy losses ε, −ε and ∞
(Kairouz, Oh & Viswanath, *The composition theorem for differential privacy*, ICML 2015). The number
of losses +ε among the finite losses of several equal mechanisms therefore has a binomial
distribution.

The loss of a Laplace mechanism also has a distribution in closed form. Laplace losses, and
compositions with more than `MAX_LOSSES` losses, are rounded to a grid of evenly spaced losses. The
probability of each loss is divided between the two nearest grid points, so that the total
probabilities under the two neighbouring data sets do not change. This rounding never makes δ(ε)
smaller (Doroshenko et al., *Connect the dots*, PETS 2022). The error in δ(ε) is of second order in
the grid's step.

If a paper has its own formula for ε, the code of the formula is in the module of the paper's
algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy import special

from fedcore.privacy.events import Bounded, Event
from fedcore.validation import real

# Below this range noise drowns everything; above it noise hides nothing.
LEAST_EPSILON, MOST_EPSILON = 1e-9, 1e4
EPSILON = real(least=LEAST_EPSILON, most=MOST_EPSILON)
Epsilon = Annotated[float, EPSILON]
MAX_LOSSES = 2048  # most losses of a composition; more are put on a grid of this size
CELLS = 512  # number of cells of a Laplace mechanism's grid
CUT = 1e-3  # largest share of δ that cut-off upper tails have; their losses count as infinite

Key = tuple[tuple[str, float, float, int], ...]


def epsilon(events: Mapping[Event, int], delta: float) -> float:
    """Return the least ε for which this accountant proves the composition of `events` (ε, δ)-DP.

    Parameters
    ----------
    events : mapping of Event to int
        For each event, the number of times that it was charged to the same record (row of data).
    delta : float
        Number δ in (0, 1).

    Raises
    ------
    InputError
        Raised if δ is not in (0, 1).

    Examples
    --------
    >>> from fedcore.privacy.events import Gaussian
    >>> round(epsilon({Gaussian(18.64): 10}, delta=1e-4), 3)
    0.5
    """
    require_delta(delta)
    return _epsilon(_key(events), float(delta))


def is_private(events: Mapping[Event, int], epsilon: float, delta: float) -> bool:
    """Return whether the composition of `events` is (`epsilon`, `delta`)-DP."""
    return _loss(_key(events), delta).within(epsilon, delta)


def find_least(enough: Callable[[float], bool], low: float, high: float) -> float:
    """Return the least number above `low` and at most `high` for which `enough` holds.

    Bisection finds the number to the last bit. `enough` must hold for `high`.
    """
    while low < (middle := low + (high - low) / 2.0) < high:
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def require_delta(delta: Any) -> None:
    """Raise an `InputError` unless δ is strictly between 0 and 1."""
    real(above=0, below=1)(delta, "delta")


def _key(events: Mapping[Event, int]) -> Key:
    """Return sorted counts of events; events with equal privacy loss are counted together."""
    counts: dict[tuple[str, float, float], int] = {}
    for event, count in events.items():
        if isinstance(event, Bounded):
            part = ("bounded", float(event.epsilon), float(event.delta))
        else:
            part = (type(event).__name__.lower(), float(event.noise_multiplier), 0.0)
        counts[part] = counts.get(part, 0) + count
    return tuple((*part, count) for part, count in sorted(counts.items()) if count)


@lru_cache(maxsize=4096)
def _epsilon(key: Key, delta: float) -> float:
    loss, high = _loss(key, delta), 1.0
    if loss.within(0.0, delta):
        return 0.0
    while not loss.within(high, delta):
        high *= 2.0
        if math.isinf(high):
            return high
    return find_least(lambda epsilon: loss.within(epsilon, delta), 0.0, high)


class Loss(NamedTuple):
    """Privacy loss of a composition of events.

    Attributes
    ----------
    endless : float
        Probability that the loss is infinite; δ(ε) tends to this value for ε → ∞.
    more : callable
        Function ``ε -> δ(ε) − endless``.
    """

    endless: float
    more: Callable[[float], float]

    def within(self, epsilon: float, delta: float) -> bool:
        """Return whether the composition is (`epsilon`, `delta`)-DP."""
        return self.more(epsilon) <= delta - self.endless


def _loss(key: Key, delta: float) -> Loss:
    """Return the privacy loss of all events together; δ decides how far tails are cut off.

    All Gaussian events together act as one Gaussian mechanism. The δ(ε) of the composition is
    δ(ε − l) of this Gaussian mechanism, averaged over the total losses l of all other events.
    """
    endless = 0.0
    for _, _, own, count in key:
        lost = own if count == 1 else -math.expm1(count * math.log1p(-own))
        endless += lost - endless * lost
    cut = CUT * max(delta - endless, 0.0) / (1 + len(key))
    mu = math.sqrt(sum(n / first**2 for kind, first, _, n in key if kind == "gaussian"))
    parts = [Losses(np.zeros(1), np.ones(1))]
    with np.errstate(all="ignore"):
        for kind, first, _, count in key:
            if kind != "gaussian":
                one = _laplace(1.0 / first) if kind == "laplace" else _bounded(first)
                parts.append(_repeated(one, count, cut / count).losses())
        losses, weights, lost = reduce(_together, sorted(parts, key=lambda part: len(part.values)))
    weights = (1.0 - endless) * weights

    def more(epsilon: float) -> float:
        with np.errstate(all="ignore"):  # infinities of one sign, where the noise is far from ε
            rest = epsilon - losses
            if not mu:
                return float(weights @ -np.expm1(np.minimum(rest, 0.0)))
            above = special.log_ndtr(mu / 2.0 - rest / mu)
            below = special.log_ndtr(-mu / 2.0 - rest / mu)
            return float(weights @ (np.exp(above) * -np.expm1(np.fmin(rest + below - above, 0.0))))

    return Loss(endless + (1.0 - endless) * lost, more)


class Losses(NamedTuple):
    """Privacy losses and their probabilities; `lost` is the total probability of cut-off losses."""

    values: np.ndarray
    weights: np.ndarray
    lost: float = 0.0


class Grid(NamedTuple):
    """Privacy losses ``low + i · step`` with probabilities `weights`; `lost` is as in `Losses`."""

    low: float
    step: float
    weights: np.ndarray
    lost: float = 0.0

    def losses(self) -> Losses:
        """Return the same losses and probabilities, with the losses as an array."""
        return Losses(self.low + self.step * np.arange(len(self.weights)), self.weights, self.lost)

    def of_step(self, step: float) -> Grid:
        """Return the losses rounded to a grid of the given step, which is at least `self.step`."""
        if step == self.step:
            return self
        at = self.step * np.arange(len(self.weights))
        return Grid(self.low, step, _on_grid(at, self.weights, step), self.lost)


def _bounded(epsilon: float) -> Grid:
    """Return the losses ±ε of an (ε, 0)-DP mechanism; +ε has probability ``e^ε/(1 + e^ε)``."""
    return Grid(-epsilon, 2.0 * epsilon, special.expit([-epsilon, epsilon]))


def _laplace(epsilon: float) -> Grid:
    """Return the distribution of a Laplace mechanism's privacy loss, rounded to a grid.

    The loss is at most l with probability ``exp((l − ε)/2)/2`` for l in [−ε, ε), and never above ε.
    Each interval between grid points adds ``exp((l − ε)/2) tanh(step/4)/2`` to the probability of
    the loss l at each of its two ends.
    """
    step = 2.0 * epsilon / CELLS
    ends = np.ones(CELLS + 1)
    ends[1:-1] = 2.0
    weights = 0.5 * ends * np.exp(0.5 * step * np.arange(-CELLS, 1)) * math.tanh(step / 4.0)
    weights[[0, -1]] += 0.5 * math.exp(-epsilon), 0.5
    return Grid(-epsilon, step, weights)


def _repeated(one: Grid, count: int, cut: float) -> Grid:
    """Return the distribution of the total loss of `count` equal mechanisms.

    Each addition of two losses cuts a probability of at most `cut` off each tail.
    """
    total = Grid(0.0, one.step, np.ones(1))
    while count:
        if count % 2:
            total = _added(total, one, cut)
        count //= 2
        if count:
            one = _added(one, one, cut)
    return total


def _added(one: Grid, other: Grid, cut: float) -> Grid:
    """Return the distribution of the sum of two losses, with at most `MAX_LOSSES` values."""
    step = max(one.step, other.step)
    weights = np.convolve(one.of_step(step).weights, other.of_step(step).weights)
    low, lost = one.low + other.low, one.lost + other.lost
    if len(weights) <= MAX_LOSSES:
        return Grid(low, step, weights, lost)
    below = int(np.searchsorted(np.cumsum(weights), cut))
    end = len(weights) - int(np.searchsorted(np.cumsum(weights[::-1]), cut))
    kept, lost = weights[below:end].copy(), lost + float(weights[end:].sum())
    kept[0] += weights[:below].sum()
    wider = step * math.ceil(len(kept) / (MAX_LOSSES - 2))
    return Grid(low + below * step, step, kept, lost).of_step(wider)


def _on_grid(values: np.ndarray, weights: np.ndarray, step: float) -> np.ndarray:
    """Divide the probabilities of the losses `values` between the points of a grid."""
    at = (values - values.min()) / step
    below = at.astype(int)
    up = weights * (np.expm1((below - at) * step) / math.expm1(-step))
    size = int(below.max()) + 2
    return np.bincount(below, weights - up, size) + np.bincount(below + 1, up, size)


def _together(one: Losses, other: Losses) -> Losses:
    lost = one.lost + other.lost
    if len(one.values) * len(other.values) <= MAX_LOSSES:
        values = np.add.outer(one.values, other.values).ravel()
        return Losses(values, np.multiply.outer(one.weights, other.weights).ravel(), lost)
    step = float(np.ptp(one.values) + np.ptp(other.values)) / (MAX_LOSSES - 4)
    grids = [_on_grid(part.values, part.weights, step) for part in (one, other)]
    low = float(one.values.min() + other.values.min())
    return Grid(low, step, np.convolve(grids[0], grids[1]), lost).losses()
