"""Noise for products ``MᵀM Z`` with the Gram matrix of rows of norm at most 1.

Z has r orthonormal columns and depends on the data only through earlier releases.
"""

from __future__ import annotations

import math

from fedcore.privacy.accounting import Calibration, gaussian_noise_multiplier
from fedcore.validation import checked


def sensitivity(r: int) -> float:
    """Largest ``‖(aaᵀ − bbᵀ) Z‖_F`` over rows a, b: 1 for one column, √2 for more.

    One row a is replaced by another row b. ``‖(aaᵀ − bbᵀ) Z‖_F² ≤ ‖aaᵀ − bbᵀ‖_F² =
    ‖a‖⁴ + ‖b‖⁴ − 2 (aᵀb)² ≤ 2``, and for a single column the norm is at most ``‖aaᵀ − bbᵀ‖₂ ≤ 1``.
    Orthogonal unit rows attain both bounds: a in range(Z) for one column, a and b for more.
    """
    return math.sqrt(min(r, 2))


def theorem_6(r: int, steps: int, epsilon: float, delta: float) -> float:
    """Standard deviation of Theorem 6 of Guo et al. (FedPower), for T = `steps` products.

    ``2 √r max{√(T/ε), 2 √(2 T ln(1/δ)) / ε}``, (n/m) times their ν, because MᵀM is (n/m) times
    their A. The paper calls ν both a variance and a standard deviation; its proof uses the latter.
    """
    log = math.log(1.0 / delta)
    return (
        2.0
        * math.sqrt(r)
        * max(math.sqrt(steps / epsilon), 2.0 * math.sqrt(2.0 * steps * log) / epsilon)
    )


@checked
def standard_deviation(
    calibration: Calibration, r: int, steps: int, epsilon: float, delta: float
) -> float:
    """Standard deviation of the noise on every entry for (ε, δ)-DP of `steps` products together.

    Parameters
    ----------
    calibration : str
        ``paper`` for `theorem_6`, ``tight`` for the least noise at the exact `sensitivity`.
    r : int
        Columns of Z.
    steps : int
    epsilon, delta : float

    Raises
    ------
    InputError
        For an argument out of its range.
    """
    if calibration == "paper":
        return theorem_6(r, steps, epsilon, delta)
    return sensitivity(r) * gaussian_noise_multiplier(epsilon, delta, steps)
