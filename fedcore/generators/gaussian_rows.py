"""Gaussian rows of Theorem 1.2 of `dppower`, and rows of the same spectrum without sampling.

Nguyen, Ene & Nguyen, *Adaptive power iteration method for differentially private PCA*: rows of
N(0, Σ̄²) with tr Σ̄² = 1, over L = √log(n/β). Σ̄² has the top direction v = (1, …, 1)/√d and m
further directions, all with the eigenvalue ``(1 − κ) σ̄₁²``; the others have none:

    σ̄₁² = 1 / (1 + m (1 − κ)).

The relative gap κ, the top eigenvalue (through m) and d so vary one by one. The constant of L is 1.

``exact``: the columns of the standard normal matrix are orthonormalised first, so that the rows'
own gap is κ to rounding: at κ below √(d/n) that of a sample is not. The longest row then has norm 1
in place of the factor 1/L. ``kind`` ``sign`` takes ±1 for the normal entries: the rows' coherence
is then about the least.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from fedcore.errors import InputError
from fedcore.linalg import orth
from fedcore.privacy.bounded_rows import row_norms
from fedcore.validation import Count, Share, checked, one_of, require_at_least, whole

FAILURE = 0.05  # β


@checked
def generate(
    rng: np.random.Generator,
    *,
    n_samples: Count = 10_000,
    n_features: Annotated[int, whole(2)] = 20,
    gap: Share = 0.75,
    minor: Count | None = None,
    kind: Annotated[str, one_of(("normal", "sign"))] = "normal",
    exact: bool = False,
) -> list[np.ndarray]:
    """Draw rows of one client.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_samples, n_features : int
        n and d.
    gap : float
        κ.
    minor : int, optional
        m; all d − 1 other directions by default.
    kind : str
        Distribution of the coordinates before they are scaled.
    exact : bool
        Whether the spectrum is that of the rows, not of their distribution.

    Returns
    -------
    list of one ndarray of shape (n_samples, n_features)

    Raises
    ------
    InputError
        For more minor directions than there are, or `exact` with fewer rows than directions.
    """
    minor = n_features - 1 if minor is None else minor
    if minor >= n_features:
        raise InputError(f"minor = {minor}: n_features = {n_features} leaves {n_features - 1}")
    require_at_least(minor + 1 if exact else 1, n_samples=n_samples)
    if kind == "normal":
        coordinates = rng.standard_normal((n_samples, minor + 1))
    else:
        coordinates = rng.choice((-1.0, 1.0), (n_samples, minor + 1))
    if exact:
        coordinates = orth(coordinates)
    deviations = np.full(minor + 1, math.sqrt((1.0 - gap) * top_variance(minor, gap)))
    deviations[0] = math.sqrt(top_variance(minor, gap))
    rows = (coordinates * deviations) @ directions(n_features)[:, : minor + 1].T
    return [rows / (row_norms(rows).max() if exact else longest(n_samples))]


def top_variance(minor: int, gap: float) -> float:
    """Return σ̄₁²."""
    return 1.0 / (1.0 + minor * (1.0 - gap))


def longest(n_samples: int) -> float:
    """Return L, which few rows exceed in norm."""
    return math.sqrt(math.log(n_samples / FAILURE))


def directions(n_features: int) -> np.ndarray:
    """Return an orthogonal matrix with first column (1, …, 1)/√d, a reflection, shape (d, d)."""
    normal = np.full(n_features, -1.0 / math.sqrt(n_features))
    normal[0] += 1.0
    return np.eye(n_features) - (2.0 / (normal @ normal)) * np.outer(normal, normal)
