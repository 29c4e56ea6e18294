"""Rows of equal norm around one direction, with a chosen gap and a chosen coherence.

Experiments on Table 1 of Nguyen, Ene & Nguyen (*Adaptive power iteration method for differentially
private PCA*) use this model. A row is ``a = R (c v + √(1 − c²) w)`` with v = (1, …, 1)/√d. The
vector w is uniform on the unit sphere orthogonal to v. The random number c is independent of w, and
has mean zero and variance s. Therefore

    E aaᵀ = R² (s vvᵀ + (1 − s)/(d − 1) (I − vvᵀ)),     s = 1 / (1 + (d − 1)(1 − κ)).

All rows have norm R. The top eigenvector of E aaᵀ is v, and all other eigenvalues are equal. The
relative gap (σ̄₁² − σ̄₂²)/σ̄₁² of the eigenvalues is κ. If the number n of rows and d grow and κ is
fixed, the squared top singular value of the rows, σ₁² ≈ n R² s, grows like n/d, as in the paper's
comparison of rates. The distribution of c determines only the coherence Υ = maxᵢ |Uᵢ₁| ≈ maxᵢ |cᵢ|
/ √(n s), where U has the left singular vectors of the rows.

With ``sign``, c is ±√(s/h) with probability h, and 0 otherwise. The coherence is smallest for h =
1. For h = s, some rows are ±R v, and the coherence is the largest that the norm allows. With
``gaussian``, c is normal and clipped to [−1, 1]. Gaussian rows that are scaled to norm R have a c
of about this distribution.
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
    """Draw rows from the model, and divide them among the clients.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_samples, n_features : int
        Numbers n of rows and d of features.
    gap : float
        Relative gap κ.
    kind : str
        Distribution of the component c of a row along v.
    carriers : float
        Share h of the rows with a component along v, from s to 1 (always 1 for ``gaussian``).
    norm : float
        Norm R of every row.
    n_clients : int
        Number of parts into which the rows are divided, as evenly as possible.
    dtype : str

    Returns
    -------
    list of ndarray of shape (n_i, n_features)

    Raises
    ------
    InputError
        If a value is out of range, or there are fewer samples than clients.
    """
    require_valid(whole(n_clients), n_samples=n_samples)
    s = top_share(n_features - 1, gap)
    if not s <= carriers <= 1 or (kind == "gaussian" and carriers != 1):
        raise InputError(
            f"carriers must be from {s:.3g} to 1, and 1 if kind = 'gaussian', got {carriers!r}"
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
    if kind == "gaussian":
        return np.clip(np.sqrt(s) * rng.standard_normal(rows), -1.0, 1.0)
    signs = np.where(rng.random(rows) < 0.5, -1.0, 1.0)
    return np.sqrt(s / carriers) * signs * (rng.random(rows) < carriers)
