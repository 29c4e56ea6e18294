"""Covariance spectrum with one top eigenvalue σ̄₁² and m equal smaller eigenvalues.

The m smaller eigenvalues are (1 − κ) σ̄₁², where κ is the relative gap. All other eigenvalues are
0.
"""

from __future__ import annotations


def top_share(minor: int, gap: float) -> float:
    """Return the top eigenvalue divided by the trace, ``1 / (1 + m (1 − κ))``.

    Parameters
    ----------
    minor : int
        Number m of smaller eigenvalues; with d features, m is d − 1 if no eigenvalue is 0.
    gap : float
        Relative gap κ.
    """
    return 1.0 / (1.0 + minor * (1.0 - gap))
