"""Total privacy loss ε at a given δ of many privacy events.

Events are those of `fedcore.privacy.events`. They may be many, and chosen adaptively.

Gaussian and `Bounded` events: exact up to rounding, in closed form. Gaussian mechanisms together
are one with ``1/σ² = Σ 1/σᵢ²`` (Dong, Roth & Su, *Gaussian differential privacy*, JRSS-B 2022,
Corollary 3.3), whose δ(ε) Balle & Wang state (ICML 2018). Every (ε, δ)-DP mechanism is dominated by
a pair with three losses, ε, −ε and ∞ (Kairouz, Oh & Viswanath, *The composition theorem for
differential privacy*, ICML 2015), so that several together have binomially many.

Any other composition: Google's dp-accounting composes privacy loss distributions (PLD), and gives
an upper bound. Each event but the Gaussian ones is rounded up by at most one grid step; see
`_by_loss_distribution`.

The ε that a paper states itself stands beside its algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import Annotated, Any, NamedTuple

import numpy as np
from scipy import special

from fedcore.errors import InputError
from fedcore.privacy.events import Bounded, Event, Gaussian, Laplace
from fedcore.validation import one_of, real, require_at_least, require_positive

# Below this range noise drowns everything; above it noise hides nothing.
LEAST, MOST = 1e-9, 1e4
EPSILON = real(least=LEAST, most=MOST)
Epsilon = Annotated[float, EPSILON]
# A method's noise is the least that the accountant allows, or what the method's paper states.
Calibration = Annotated[str, one_of(("tight", "paper"))]
LARGEST = 700.0  # loss whose exponential is a floating-point number
TERMS = 100_000  # losses that are summed up in closed form

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
        For a δ outside (0, 1), or where dp-accounting is needed and not installed.

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
        elif isinstance(event, Laplace) and event.noise_multiplier < 1.0 / LARGEST:
            part = ("bounded", 1.0 / float(event.noise_multiplier), 0.0)  # a PLD cannot hold it
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
    precision = sum(count / first**2 for kind, first, _, count in key if kind == "gaussian")
    bounded = [(first, second, count) for kind, first, second, count in key if kind == "bounded"]
    known = len(bounded) == sum(kind != "gaussian" for kind, *_ in key)
    if known and math.prod(count + 1 for *_, count in bounded) <= TERMS:
        return _in_closed_form(precision, bounded)
    try:
        return _by_loss_distribution(key, precision)
    except OverflowError:
        raise InputError(
            "the privacy loss of one of these events is above 700, too large to be composed: "
            "choose a smaller epsilon"
        ) from None


def _in_closed_form(precision: float, bounded: Sequence[tuple[float, float, int]]) -> Loss:
    """Loss of a Gaussian mechanism with 1/σ² = `precision`, and `bounded` events (ε, δ, count).

    δ(ε) is that of the Gaussian mechanism at ε − l, averaged over the sums l of the others' finite
    losses. Each finite loss is +ε with probability ``e^ε/(1 + e^ε)``, and otherwise −ε.
    """
    losses, logs, endless = np.zeros(1), np.zeros(1), 0.0
    for epsilon, delta, count in bounded:
        ups = np.arange(count + 1)
        downs = count - ups
        ways = special.gammaln([count + 1]) - special.gammaln(ups + 1) - special.gammaln(downs + 1)
        chances = ups * special.log_expit(epsilon) + downs * special.log_expit(-epsilon)
        losses = np.add.outer(losses, epsilon * (ups - downs)).ravel()
        logs = np.add.outer(logs, ways + chances).ravel()
        lost = delta if count == 1 else -math.expm1(count * math.log1p(-delta))
        endless += lost - endless * lost
    weights, mu = (1.0 - endless) * np.exp(logs), math.sqrt(precision)

    def more(epsilon: float) -> float:
        rest = epsilon - losses
        if not mu:
            return float(weights @ -np.expm1(np.minimum(rest, 0.0)))
        with np.errstate(invalid="ignore"):  # both are −∞ where the noise is far larger than ε
            above = special.log_ndtr(mu / 2.0 - rest / mu)
            below = special.log_ndtr(-mu / 2.0 - rest / mu)
            return float(weights @ (np.exp(above) * -np.expm1(np.fmin(rest + below - above, 0.0))))

    return Loss(endless, more)


def _by_loss_distribution(key: Key, precision: float) -> Loss:
    losses = _library("pld.privacy_loss_distribution")
    parameters = _library("pld.common").DifferentialPrivacyParameters
    # Every event but the Gaussian is rounded up by at most one step of the grid. The widest part
    # has some 20 000 steps: the Gaussian of standard deviation √precision, or the sum of the rest.
    pure = sum(
        count * (1.0 / first if kind == "laplace" else first)
        for kind, first, _, count in key
        if kind != "gaussian"
    )
    widest = max(min(pure, 1.0), 10.0 * math.sqrt(precision))
    grid = {"value_discretization_interval": 1e-4 * (widest or 1.0)}
    total = losses.identity(**grid)
    if precision:
        sigma = 1.0 / math.sqrt(precision)
        total = total.compose(losses.from_gaussian_mechanism(sigma, **grid))
    for kind, first, second, count in key:
        if kind == "gaussian":
            continue
        if kind == "laplace":
            one = losses.from_laplace_mechanism(first, **grid)
        else:
            one = losses.from_privacy_parameters(parameters(first, second), **grid)
        total = total.compose(one.self_compose(count))
    endless = float(total.get_delta_for_epsilon(math.inf))
    return Loss(endless, lambda epsilon: float(total.get_delta_for_epsilon(epsilon)) - endless)


def _library(module: str) -> ModuleType:
    """Import a module of dp-accounting, which only private runs need."""
    import importlib

    try:
        return importlib.import_module(f"dp_accounting.{module}")
    except ModuleNotFoundError as error:
        raise InputError(
            f"privacy accounting needs the package dp-accounting ({error}): "
            "pip install dp-accounting, or pip install '.[privacy]' in fedcore's checkout"
        ) from error
