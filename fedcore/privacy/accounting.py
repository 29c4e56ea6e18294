"""Total privacy loss ε at a given δ of many privacy events.

Events are those of `fedcore.privacy.events`. They may be many, and chosen adaptively.

Gaussian and `Bounded` events: exact up to rounding, in closed form. Gaussian mechanisms together
are one with ``1/σ² = Σ 1/σᵢ²`` (Dong, Roth & Su, *Gaussian differential privacy*, JRSS-B 2022,
Corollary 3.3), whose δ(ε) Balle & Wang state (ICML 2018). Every (ε, δ)-DP mechanism is dominated by
a pair with three losses, ε, −ε and ∞ (Kairouz, Oh & Viswanath, *The composition theorem for
differential privacy*, ICML 2015), so that several together have binomially many.

A Laplace mechanism's loss has a closed form, too. It is rounded up to a grid, so that its ε is an
upper bound. The same holds for compositions with too many losses.

The ε that a paper states itself stands beside its algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache, reduce
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy import special

from fedcore.errors import InputError
from fedcore.privacy.events import Bounded, Event, Gaussian
from fedcore.validation import one_of, real, require_at_least, require_positive

# Below this range noise drowns everything; above it noise hides nothing.
LEAST, MOST = 1e-9, 1e4
EPSILON = real(least=LEAST, most=MOST)
Epsilon = Annotated[float, EPSILON]
# A method's noise is the least that the accountant allows, or what the method's paper states.
Calibration = Annotated[str, one_of(("tight", "paper"))]
MAX_LOSSES = 100_000  # that are summed up; more are rounded up to a grid of as many
GRID = 10_000  # losses of all Laplace mechanisms of one scale

Key = tuple[tuple[str, float, float, int], ...]


def epsilon(events: Mapping[Event, int], delta: float) -> float:
    """Return an ε for which the composition of `events` is (ε, δ)-DP: the least known to us.

    Parameters
    ----------
    events : mapping of Event to int
        How often each was applied to the same record.
    delta : float
        In (0, 1).

    Raises
    ------
    InputError
        For a δ outside (0, 1).

    Examples
    --------
    >>> from fedcore.privacy.events import Gaussian
    >>> round(epsilon({Gaussian(18.64): 10}, delta=1e-4), 3)
    0.5
    """
    require_delta(delta)
    return _epsilon(_key(events), float(delta))


def gaussian_noise_multiplier(epsilon: float, delta: float, steps: int = 1) -> float:
    """Return the least noise multiplier with which `steps` Gaussian releases are (ε, δ)-DP."""
    require_positive(epsilon=epsilon)
    require_delta(delta)
    require_at_least(1, steps=steps)
    return calibrate(lambda noise: {Gaussian(noise): steps}, float(epsilon), delta)


def calibrate(events: Callable[[float], Mapping[Event, int]], target: float, delta: float) -> float:
    """Return the least noise with which ``events(noise)`` spends at most ε = `target` at δ.

    Parameters
    ----------
    events : callable
        ``noise -> events``; their ε must fall as `noise` > 0 grows.
    target, delta : float

    Raises
    ------
    InputError
        When no noise up to 1e12 is enough.
    """
    require_positive(target=target)
    require_delta(delta)

    def enough(noise: float) -> bool:
        return _loss(_key(events(noise))).within(target, delta)

    high = 1.0
    while not enough(high):
        high *= 4.0
        if high > 1e12:
            raise InputError(
                "no noise up to 1e12 is enough for these events: choose a larger epsilon or delta"
            )
    while enough(high / 4.0):
        high /= 4.0
        if high < 1e-12:
            return high
    return least(enough, high / 4.0, high)


def least(enough: Callable[[float], bool], low: float, high: float) -> float:
    """Return the least number for which `enough` holds, above `low` and at most `high`.

    It is found by bisection, to the last bit. `enough` holds for `high`.
    """
    while low < (middle := low + (high - low) / 2.0) < high:
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def require_delta(delta: Any) -> None:
    """Require a δ strictly between 0 and 1."""
    real(above=0, below=1)(delta, "delta")


def _key(events: Mapping[Event, int]) -> Key:
    """Sorted counts of events; events count as one if their privacy loss is the same."""
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
    loss, high = _loss(key), 1.0
    if loss.within(0.0, delta):
        return 0.0
    while not loss.within(high, delta):
        high *= 2.0
        if math.isinf(high):
            return high
    return least(lambda epsilon: loss.within(epsilon, delta), 0.0, high)


class Loss(NamedTuple):
    """Privacy loss of a composition.

    Attributes
    ----------
    endless : float
        Probability of an infinite loss, which is δ at ε = ∞.
    more : callable
        ``ε -> δ(ε) − endless``.
    """

    endless: float
    more: Callable[[float], float]

    def within(self, epsilon: float, delta: float) -> bool:
        """Whether the composition is (`epsilon`, `delta`)-DP."""
        return self.more(epsilon) <= delta - self.endless


def _loss(key: Key) -> Loss:
    """Return the loss of all events together.

    δ(ε) is that of one Gaussian mechanism at ε − l, averaged over the losses l of all other events.
    """
    endless, parts = 0.0, [(np.zeros(1), np.ones(1))]
    mu = math.sqrt(sum(n / first**2 for kind, first, _, n in key if kind == "gaussian"))
    for kind, first, delta, count in key:
        if kind == "laplace" and count <= GRID // 4:
            parts.append(_of_laplace(1.0 / first, count))
        elif kind != "gaussian":
            parts.append(_of_bounded(1.0 / first if kind == "laplace" else first, count))
            lost = delta if count == 1 else -math.expm1(count * math.log1p(-delta))
            endless += lost - endless * lost
    losses, weights = reduce(_together, sorted(parts, key=lambda part: len(part[0])))
    weights = (1.0 - endless) * weights

    def more(epsilon: float) -> float:
        rest = epsilon - losses
        if not mu:
            return float(weights @ -np.expm1(np.minimum(rest, 0.0)))
        with np.errstate(invalid="ignore"):  # both are −∞ where the noise is far larger than ε
            above = special.log_ndtr(mu / 2.0 - rest / mu)
            below = special.log_ndtr(-mu / 2.0 - rest / mu)
            return float(weights @ (np.exp(above) * -np.expm1(np.fmin(rest + below - above, 0.0))))

    return Loss(endless, more)


Losses = tuple[np.ndarray, np.ndarray]  # finite losses and their probabilities


def _of_bounded(epsilon: float, count: int) -> Losses:
    """Each loss is +ε with probability ``e^ε/(1 + e^ε)``, and otherwise −ε."""
    ups = np.arange(count + 1)
    downs = count - ups
    ways = special.gammaln([count + 1]) - special.gammaln(ups + 1) - special.gammaln(downs + 1)
    chances = ups * special.log_expit(epsilon) + downs * special.log_expit(-epsilon)
    return epsilon * (ups - downs), np.exp(ways + chances)


def _of_laplace(epsilon: float, count: int) -> Losses:
    """One loss is at most l with probability ``exp((l − ε)/2)/2`` for l in [−ε, ε), else at most ε.

    It is rounded up to the next of evenly spaced losses.
    """
    steps = GRID // count
    below = 0.5 * np.exp(epsilon * (np.arange(steps) / steps - 1.0))
    one = np.diff(below, prepend=0.0, append=1.0)
    total = reduce(np.convolve, [one] * count)
    return epsilon * (2.0 * np.arange(len(total)) / steps - count), total


def _together(one: Losses, other: Losses) -> Losses:
    losses = np.add.outer(one[0], other[0]).ravel()
    weights = np.multiply.outer(one[1], other[1]).ravel()
    if len(losses) <= MAX_LOSSES:
        return losses, weights
    grid, step = np.linspace(losses.min(), losses.max(), MAX_LOSSES, retstep=True)
    up = np.ceil((losses - grid[0]) / step).astype(int)
    return grid, np.bincount(np.minimum(up, MAX_LOSSES - 1), weights, MAX_LOSSES)
