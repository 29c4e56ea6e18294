"""Find the least noise with which given noisy releases are (ε, δ)-DP together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

from fedcore.errors import InputError
from fedcore.privacy.accounting import find_least, is_private, require_delta
from fedcore.privacy.events import Event, Gaussian
from fedcore.validation import POSITIVE, one_of, require_valid, whole

# A method's noise is the least that the accountant allows, or what the method's paper states.
Calibration = Annotated[str, one_of(("tight", "paper"))]


def gaussian_noise_multiplier(epsilon: float, delta: float, steps: int = 1) -> float:
    """Return the least noise multiplier for (ε, δ)-DP of `steps` Gaussian releases together."""
    require_valid(POSITIVE, epsilon=epsilon)
    require_delta(delta)
    require_valid(whole(1), steps=steps)
    return calibrate(lambda noise: {Gaussian(noise): steps}, float(epsilon), delta)


def calibrate(events: Callable[[float], Mapping[Event, int]], target: float, delta: float) -> float:
    """Return the least noise with which the releases ``events(noise)`` are (`target`, `delta`)-DP.

    Parameters
    ----------
    events : callable
        Function ``noise -> events`` that returns how often each privacy event occurs. The total ε
        of the events must fall as the noise grows.
    target, delta : float
        The ε and the δ that the releases may spend in total.

    Raises
    ------
    InputError
        Raised if a noise of 4¹⁹ (about 2.7e11) is not enough.
    """
    require_valid(POSITIVE, target=target)
    require_delta(delta)

    def enough(noise: float) -> bool:
        return is_private(events(noise), target, delta)

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
    return find_least(enough, high / 4.0, high)
