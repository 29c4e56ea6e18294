"""Low-rank matrix plus white noise.

In Section 5 of Philippenko, Scaman & Massoulié (AAAI 2025), 25 clients have 200 samples each, and d
= 200 features. The low-rank matrix has rank 5, and its five non-zero singular values are 1. The
noise has standard deviation 0 or 1e−6.
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
    """Draw a low-rank matrix plus white noise, ``S = U Σ Vᵀ + E``; divide its rows among clients.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_clients, samples, n_features : int
        Numbers of clients N, of rows per client nᵢ, and of features d.
    rank : int
        Rank of ``U Σ Vᵀ``. The orthonormal columns of U and V are Haar-distributed.
    singular_values : sequence of float, optional
        Diagonal of Σ (default: `rank` ones).
    noise : float
        Standard deviation of the entries of E.

    Returns
    -------
    list of ndarray of shape (samples, n_features)

    Raises
    ------
    InputError
        If a value is out of range, the rank is above the smaller dimension, or the number of
        singular values is not `rank`.
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
