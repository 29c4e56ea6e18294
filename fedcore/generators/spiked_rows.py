"""Rows of equal norm around one direction, with a chosen gap and a chosen coherence.

The model behind the empirical Table 1 of Nguyen, Ene & Nguyen (*Adaptive power iteration method for
differentially private PCA*). A row is ``a = R (c v + √(1 − c²) w)`` with v = (1, …, 1)/√d, w
uniform on the unit sphere orthogonal to v, and c independent of w with mean zero and variance s:

    E aaᵀ = R² (s vvᵀ + (1 − s)/(d − 1) (I − vvᵀ)),     s = 1 / (1 + (d − 1)(1 − κ)):

All norms are R. The top direction of the population is v, all other eigenvalues are equal, and the
relative gap (σ̄₁² − σ̄₂²)/σ̄₁² is κ. At a constant gap, σ₁² ≈ n R² s is of the order of n/d; in
this setting the paper compares rates. The distribution of c determines only the coherence
Υ = maxᵢ |Uᵢ₁| ≈ maxᵢ |cᵢ| / √(n s). ``sign``: c = ±√(s/h) with probability h and 0 otherwise. For
h = 1 the coherence is least; for h = s some rows are ±R v, and the coherence is the largest that
the norm allows. ``gaussian``: c is normal and clipped to ±1, so that c has about the distribution
that it has for normalised Gaussian rows.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from fedcore.errors import InputError
from fedcore.problems.one_direction import top_share
from fedcore.validation import Count, Positive, Share, checked, one_of, require_valid, whole

ENTRIES = 2**22  # per block of rows


@checked
def generate(
    rng: np.random.Generator,
    *,
    n_samples: int = 10_000,
    n_features: Annotated[int, whole(2)] = 20,
    gap: Share = 0.75,
    kind: Annotated[str, one_of(("gaussian", "sign"))] = "gaussian",
    carriers: Positive = 1.0,
    norm: Positive = 1.0,
    n_clients: Count = 1,
    dtype: Annotated[str, one_of(("float64", "float32"))] = "float64",
) -> list[np.ndarray]:
    """Draw spiked rows.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_samples, n_features : int
        n and d.
    gap : float
        κ.
    kind : str
        Distribution of c.
    carriers : float
        h, share of the rows with a component along v, from s to 1; 1 for ``gaussian``.
    norm : float
        R, norm of every row.
    n_clients : int
        Number of parts into which the rows are split, as evenly as possible.
    dtype : str

    Returns
    -------
    list of ndarray of shape (n_i, n_features)

    Raises
    ------
    InputError
        For a value out of range, or fewer samples than clients.
    """
    require_valid(whole(n_clients), n_samples=n_samples)
    s = top_share(n_features - 1, gap)
    if not s <= carriers <= 1 or (kind == "gaussian" and carriers != 1):
        raise InputError(
            f"carriers must be from {s:.3g} to 1, and 1 for gaussian; got {carriers!r}"
        )
    rows = np.empty((n_samples, n_features), dtype)
    step = max(1, ENTRIES // n_features)
    for start in range(0, n_samples, step):
        block = rng.standard_normal((min(step, n_samples - start), n_features))
        block -= block.mean(axis=1, keepdims=True)
        c = _along_top(rng, len(block), s, kind, carriers)
        length = np.linalg.norm(block, axis=1)
        block *= (norm * np.sqrt(1.0 - c**2) / length)[:, None]
        block += (norm / np.sqrt(n_features) * c)[:, None]
        rows[start : start + step] = block
    return np.array_split(rows, n_clients)


def _along_top(
    rng: np.random.Generator, rows: int, s: float, kind: str, carriers: float
) -> np.ndarray:
    """Draw c of shape (rows,)."""
    if kind == "gaussian":
        return np.clip(np.sqrt(s) * rng.standard_normal(rows), -1.0, 1.0)
    signs = np.where(rng.random(rows) < 0.5, -1.0, 1.0)
    return np.sqrt(s / carriers) * signs * (rng.random(rows) < carriers)
