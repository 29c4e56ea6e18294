"""Spiked covariance model: Gaussian rows with k strong directions, normalised.

Model I of Guo, Li, Chang, Wang & Zhang, *FedPower: privacy-preserving distributed eigenspace
estimation*: 20 clients of 100 000 rows from ``N(0, U Uᵀ + σ² I)``, d = 100, k = 4, σ = 0.6, U the
orthonormalised d × k matrix of N(0.5, 1) entries; every row is then scaled to unit norm.

The rows of a client are drawn in chunks, and only the triangular factor of their QR decomposition
is kept: a client is the d × d factor R of its rows M, with ``RᵀR = MᵀM``. Methods that use products
with MᵀM alone need no more. The factors take 1.6 MB, the rows 1.6 GB. The number and the largest
norm of the rows are kept as well (`Reduction`). Measured: a cell takes 0.8 s of CPU time and
0.13 GB of memory on the factors, 8 s and 1.7 GB on the rows.
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
    """Draw from the spiked covariance model, with rows of unit norm.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_clients, samples, n_features, rank : int
        m, rows per client n/m, d and k.
    noise : float
        σ.
    reduce : bool
        Whether to keep the triangular factors instead of the rows.

    Returns
    -------
    Clients or iterator of ndarray of shape (samples, n_features)
        Factors of shape (min(samples, n_features), n_features) when reduced.

    Raises
    ------
    InputError
        For a value out of range, or a rank above the number of features.
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
