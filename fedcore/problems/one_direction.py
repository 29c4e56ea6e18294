"""Spectrum of a population with one top direction, below which all eigenvalues are equal.

κ is the relative gap: m further directions have the eigenvalue (1 − κ) σ̄₁², where σ̄₁² is the top
one, and all others have the eigenvalue 0.
"""

from __future__ import annotations


def top_share(minor: int, gap: float) -> float:
    """Return the top eigenvalue over the trace, ``1 / (1 + m (1 − κ))``.

    Parameters
    ----------
    minor : int
        m, the number of further directions; d − 1 if no eigenvalue is 0.
    gap : float
        κ.
    """
    return 1.0 / (1.0 + minor * (1.0 - gap))
