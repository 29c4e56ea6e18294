"""Low-rank matrix plus white noise.

Philippenko, Scaman & Massoulié (AAAI 2025), Section 5: 25 clients of 200 samples, d = 200, rank 5,
five singular values 1, noise of standard deviation 0 or 1e−6.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedcore.arrays import floats
from fedcore.errors import InputError
from fedcore.linalg import haar
from fedcore.validation import NON_NEGATIVE, Count, NonNegative, checked, require_valid


@checked
def generate(
    rng: np.random.Generator,
    *,
    n_clients: Count = 25,
    samples: Count = 200,
    n_features: Count = 200,
    rank: Count = 5,
    singular_values: Sequence[float] | None = None,
    noise: NonNegative = 0.0,
) -> list[np.ndarray]:
    """Draw a low-rank matrix plus white noise, ``S = U Σ Vᵀ + E``.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_clients, samples, n_features : int
        N, nᵢ (rows per client) and d.
    rank : int
        Rank of the noise-free part; U and V have Haar-distributed orthonormal columns.
    singular_values : sequence of float, optional
        Diagonal of Σ; `rank` ones when not given.
    noise : float
        Standard deviation of the entries of E.

    Returns
    -------
    list of ndarray of shape (samples, n_features)

    Raises
    ------
    InputError
        For a value out of range, a rank above the smaller dimension, or a number of singular values
        that is not `rank`.
    """
    n = n_clients * samples
    if rank > min(n, n_features):
        raise InputError(
            f"rank = {rank} is larger than min(n_clients * samples, n_features) = "
            f"{min(n, n_features)}"
        )
    sigma = np.ones(rank) if singular_values is None else floats(singular_values, "singular_values")
    if sigma.shape != (rank,):
        raise InputError(f"singular_values needs {rank} numbers, got {sigma.size}")
    require_valid(NON_NEGATIVE, **{f"singular_values[{i}]": float(s) for i, s in enumerate(sigma)})
    left, right = haar(n, rank, rng), haar(n_features, rank, rng)
    matrix = (left * sigma) @ right.T
    if noise:
        matrix += noise * rng.standard_normal(matrix.shape)
    return list(matrix.reshape(n_clients, samples, n_features))
