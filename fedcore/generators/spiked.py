"""Spiked covariance model with k strong directions and Gaussian rows of unit norm.

The model is Model I of Guo, Li, Chang, Wang & Zhang, *FedPower: privacy-preserving distributed
eigenspace estimation*. Each of 20 clients has 100 000 rows from ``N(0, U Uᵀ + σ² I)``, with d =
100, k = 4 and σ = 0.6. U is an orthonormalised d × k matrix of N(0.5, 1) entries. Every row is
scaled to unit norm.

A client's rows M are drawn in chunks, and only the triangular factor R (d × d) of the QR
decomposition of M is kept. Therefore ``RᵀR = MᵀM``. The factor R suffices for methods that use only
products with MᵀM. The factors of all clients take 1.6 MB; the rows would take 1.6 GB. With the
factors, a `Reduction` states the number of rows and their largest norm.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedcore.errors import InputError
from fedcore.linalg import orth, triangular_factor
from fedcore.problems.clients import Clients, Reduction
from fedcore.validation import Count, NonNegative, checked

ROWS = 8192  # per chunk


@checked
def generate(
    rng: np.random.Generator,
    *,
    n_clients: Count = 20,
    samples: Count = 100_000,
    n_features: Count = 100,
    rank: Count = 4,
    noise: NonNegative = 0.6,
    reduce: bool = True,
) -> Clients | Iterator[np.ndarray]:
    """Draw every client's rows, and return the rows or (with `reduce`) their triangular factors.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_clients, samples, n_features, rank : int
        Numbers of clients, of rows per client, of features d, and of strong directions k.
    noise : float
        Standard deviation σ of the noise.
    reduce : bool
        Whether to return each client's triangular factor R instead of its rows.

    Returns
    -------
    Clients or iterator of ndarray of shape (samples, n_features)
        With `reduce`, factors of shape (min(samples, n_features), n_features), else rows.

    Raises
    ------
    InputError
        If a value is out of range, or the rank is above the number of features.
    """
    if rank > n_features:
        raise InputError(f"rank = {rank} is larger than n_features = {n_features}")
    U = orth(rng.normal(0.5, 1.0, (n_features, rank)))
    largest = 0.0

    def chunks() -> Iterator[np.ndarray]:
        nonlocal largest
        for start in range(0, samples, ROWS):
            size = min(ROWS, samples - start)
            rows = rng.standard_normal((size, rank)) @ U.T
            rows += noise * rng.standard_normal((size, n_features))
            rows /= np.linalg.norm(rows, axis=1, keepdims=True)
            largest = max(largest, float(np.linalg.norm(rows, axis=1).max()))
            yield rows

    if not reduce:
        return (np.concatenate(list(chunks())) for _ in range(n_clients))
    factors = [triangular_factor(chunks()) for _ in range(n_clients)]
    return Clients(factors, reduction=Reduction((samples,) * n_clients, largest))
