"""Total privacy loss ε at a given δ of many privacy events, composed by Google's dp-accounting.

Events are those of `fedcore.privacy.events`. They may be many, and chosen adaptively.

Gaussian events alone: exact up to rounding. Their adaptive composition is one Gaussian mechanism
with ``1/σ² = Σ 1/σᵢ²`` (Dong, Roth & Su, *Gaussian differential privacy*, JRSS-B 2022, Corollary
3.3), whose ε(δ) has a closed form (Balle & Wang, ICML 2018). One `Bounded` event alone: the closed
form of the pair that dominates every (ε, δ)-DP mechanism. Any other composition: privacy loss
distributions (PLD), an upper bound. Each event but the Gaussian ones is rounded up by at most one
grid step; see `_by_loss_distribution`.

The ε that a paper states itself stands beside its algorithm.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Annotated, Any

import numpy as np
import scipy  # its parts are loaded when they are used

from fedcore.errors import InputError
from fedcore.privacy.events import Bounded, Event
from fedcore.validation import one_of, real, require_at_least, require_positive

# Below this range noise drowns everything; above it noise hides nothing.
LEAST, MOST = 1e-9, 1e4
EPSILON = real(least=LEAST, most=MOST)
Epsilon = Annotated[float, EPSILON]
# A method's noise is the least that the accountant allows, or what the method's paper states.
Calibration = Annotated[str, one_of(("tight", "paper"))]
FAR = 700.0  # ln of an ε that is infinite or zero

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
        For a δ outside (0, 1), or without dp-accounting installed.

    Examples
    --------
    >>> from fedcore.privacy.events import Gaussian
    >>> round(epsilon({Gaussian(18.64): 10}, delta=1e-4), 3)
    0.5
    """
    require_delta(delta)
    return _epsilon(_key(events), float(delta))


def gaussian_noise_multiplier(epsilon: float, delta: float, steps: int = 1) -> float:
    """Return the least noise multiplier with which `steps` Gaussian releases are (ε, δ)-DP.

    It is that of one release, in closed form, times √steps.
    """
    require_positive(epsilon=epsilon)
    require_delta(delta)
    require_at_least(1, steps=steps)
    single = _library("gaussian_mechanism").get_sigma_gaussian(float(epsilon), float(delta))
    return float(single) * math.sqrt(steps)


def calibrate(
    events: Callable[[float], Mapping[Event, int]],
    target: float,
    delta: float,
    *,
    relative: float = 1e-6,
) -> float:
    """Return the least noise with which ``events(noise)`` spends at most ε = `target` at δ.

    Parameters
    ----------
    events : callable
        ``noise -> events``; their ε must fall as `noise` > 0 grows.
    target, delta : float
    relative : float
        Largest relative excess of the answer over the least noise. The answer is never too small.

    Raises
    ------
    InputError
        When no noise up to 1e12 is enough.
    """
    require_positive(target=target)

    def enough(noise: float) -> bool:
        return epsilon(events(noise), delta) <= target

    low = high = 1.0
    while not enough(high):
        low, high = high, 4.0 * high
        if high > 1e12:
            raise InputError(
                "no noise up to 1e12 is enough for these events: choose a larger epsilon or delta"
            )
    while low == high or enough(low):
        low, high = low / 4.0, low
        if low < 1e-12:
            return high

    def excess(log_noise: float) -> float:
        spent = epsilon(events(math.exp(log_noise)), delta)
        return min(math.log(spent / target), FAR) if spent > 0.0 else -FAR

    # ln ε is nearly linear in ln noise: Brent's method needs a third of a bisection's steps.
    root = scipy.optimize.brentq(
        excess, math.log(low), math.log(high), xtol=relative / 4.0, rtol=1e-14
    )
    above = math.exp(root) * (1.0 + relative / 2.0)
    low, high = (above, above) if enough(above) else (above, high)
    while high > low * (1.0 + relative):  # where rounding has moved the root
        middle = math.sqrt(low * high)
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
    if not key:
        return 0.0
    precision = sum(count / first**2 for kind, first, _, count in key if kind == "gaussian")
    if all(kind == "gaussian" for kind, *_ in key):
        sigma = 1.0 / math.sqrt(precision)
        with np.errstate(divide="ignore"):  # at an ε whose δ is zero
            return float(_library("gaussian_mechanism").get_epsilon_gaussian(sigma, delta))
    if len(key) == 1 and key[0][0] == "bounded" and key[0][3] == 1:
        return _by_domination(key[0][1], key[0][2], delta)
    try:
        return _by_loss_distribution(key, precision, delta)
    except OverflowError:
        raise InputError(
            "the privacy loss of one of these events is above 700, too large to be composed: "
            "choose a smaller epsilon"
        ) from None


def _by_domination(epsilon: float, delta: float, wanted: float) -> float:
    """ε at δ = `wanted` of one mechanism that is (`epsilon`, `delta`)-DP.

    The pair that dominates it has ``δ(ε) = δ₀ + (1 − δ₀)(e^ε₀ − e^ε)/(1 + e^ε₀)`` for ε ≤ ε₀
    (Kairouz, Oh & Viswanath, *The composition theorem for differential privacy*, ICML 2015).
    """
    if wanted < delta:
        return math.inf
    share = (wanted - delta) / (1.0 - delta) * (1.0 + math.exp(-epsilon))
    return max(0.0, epsilon + math.log1p(-share)) if share < 1.0 else 0.0


def _by_loss_distribution(key: Key, precision: float, delta: float) -> float:
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
    return float(total.get_epsilon_for_delta(delta))


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
