"""Matrix with exact singular values; only some rows contribute to the top singular vector.

The rows are A = U Σ Vᵀ. The model shows the effect of the factor ‖U‖_∞ (largest absolute entry of
U) in Table 1 of Nguyen, Ene & Nguyen (*Adaptive power iteration method for differentially private
PCA*). The first column of U is ±1/√m in the first m = h n of the n rows (h is the parameter
`carriers`), and zero in the others. The other columns of U are orthonormalised random signs, which
makes their largest entry nearly minimal. Hence

    ‖U‖_∞² = 1 / (h n).

For h = 1, the two sides of this equation differ by a few per cent. All singular values except σ₁
are ``σ₁ √(1 − κ)``, where κ is the relative gap. The top right singular vector is (1, …, 1)/√d,
whose largest entry 1/√d is the smallest that a unit vector can have. If m < d, ‖U‖_∞ = 1/√m is
therefore larger than 1/√d. Each of the first m rows has a norm of at least σ₁/√m. Such long rows do
not matter if neighbouring data sets differ in one entry.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from fedcore.errors import InputError
from fedcore.linalg import orth
from fedcore.validation import Count, Positive, Share, checked, require_valid, whole


@checked
def generate(
    rng: np.random.Generator,
    *,
    n_samples: Count = 10_000,
    n_features: Annotated[int, whole(2)] = 20,
    gap: Share = 0.75,
    carriers: Positive = 1.0,
    top: Positive = 100.0,
) -> list[np.ndarray]:
    """Draw the matrix A, whose rows belong to a single client.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_samples, n_features : int
        Numbers n of rows and d of features.
    gap : float
        Relative gap κ = (σ₁² − σ₂²)/σ₁².
    carriers : float
        Share h of the rows with a component along the top right singular vector.
    top : float
        Largest singular value σ₁.

    Returns
    -------
    list of one ndarray of shape (n_samples, n_features)

    Raises
    ------
    InputError
        If there are fewer samples than features, or if h n is not a whole number.
    """
    require_valid(whole(n_features), n_samples=n_samples)
    m = round(carriers * n_samples)
    if not 1 <= m <= n_samples or abs(m - carriers * n_samples) > 1e-6:
        raise InputError(
            f"carriers * n_samples must be a whole number from 1 to n_samples = {n_samples}, got "
            f"carriers = {carriers!r}"
        )
    signs = rng.choice((-1.0, 1.0), (n_samples, n_features))
    signs[m:, 0] = 0.0
    sigma = np.full(n_features, top * math.sqrt(1.0 - gap))
    sigma[0] = top
    others = rng.standard_normal((n_features, n_features - 1))
    V = orth(np.column_stack([np.ones(n_features), others]))
    return [orth(signs) * sigma @ V.T]
