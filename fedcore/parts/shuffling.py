"""Amplification of privacy by shuffling.

Feldman, McMillan & Talwar, *Hiding among the clones: a simple and nearly optimal analysis of
privacy amplification by shuffling* (FOCS 2021).
"""

from __future__ import annotations

import math

from fedcore.privacy.accounting import least


def local_budget(epsilon: float, delta: float, n: int) -> tuple[float, float] | None:
    """Return (ε₀, δ₀) that each of n shuffled local randomisers may spend for (ε, δ) in all.

    Half of δ goes to the amplification, half to the local δ₀. The theorem holds for
    ``ε₀ ≤ log(n / (16 log(2/δ)))``; the result is None when this gives no ε₀ above ε.
    """
    if n <= 16.0 * math.log(4.0 / delta) * math.exp(min(epsilon, 700.0)):
        return None
    highest, log_term = math.log(n / (16.0 * math.log(4.0 / delta))), math.log(8.0 / delta)

    def excess(local: float) -> float:
        e = math.exp(local)
        inner = 8.0 * math.sqrt(e * log_term / n) + 8.0 * e / n
        return math.log1p((e - 1.0) / (e + 1.0) * inner) - epsilon

    local = -least(lambda minus: excess(-minus) <= 0.0, -highest, 0.0)
    share = (math.exp(epsilon) + 1.0) * (1.0 + math.exp(-local) / 2.0) * n
    return local, delta / (2.0 * share)
