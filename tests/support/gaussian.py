"""The Gaussian mechanism in closed form."""

from __future__ import annotations

import math

from scipy import stats


def gaussian_delta(sigma: float, epsilon: float) -> float:
    """δ of one release of sensitivity 1 (Balle & Wang, ICML 2018, Theorem 8)."""
    low, high = 1 / (2 * sigma) - epsilon * sigma, -1 / (2 * sigma) - epsilon * sigma
    return float(stats.norm.cdf(low) - math.exp(epsilon) * stats.norm.cdf(high))
