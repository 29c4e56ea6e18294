"""Small problems on which the checks run; none is made with the code under test."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse

from fedcore.problems.clients import Clients

SIZES = (3, 17, 8, 12)  # uneven, and one client with no more samples than components
FEATURES = 9
RANK = 3
SPECTRUM = np.array([5.0, 4.0, 3.0, 0.4, 0.3, 0.25, 0.2, 0.1, 0.05])  # a clear gap after RANK
CLASSES = 3


def spectrum_matrix(n: int, d: int, sigma: np.ndarray, seed: int) -> np.ndarray:
    """Matrix with exactly these singular values, from NumPy's own QR."""
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.standard_normal((n, len(sigma))))[0]
    right = np.linalg.qr(rng.standard_normal((d, len(sigma))))[0]
    return (left * sigma) @ right.T


def cut(matrix: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """Return consecutive blocks of rows, of these sizes."""
    return np.split(matrix, np.cumsum(sizes)[:-1])


def uneven_clients() -> list[np.ndarray]:
    """Return uneven clients of full rank, with a gap after the third singular value."""
    return cut(spectrum_matrix(sum(SIZES), FEATURES, SPECTRUM, seed=1), SIZES)


def short_clients() -> Iterator[list[np.ndarray]]:
    """Yield the same rows, dealt so that one client has fewer than RANK rows, then every client."""
    for sizes in ([RANK - 1, *SIZES[1:], 1], [RANK - 1] * (sum(SIZES) // (RANK - 1))):
        yield cut(np.vstack(uneven_clients()), sizes)


def sparse_clients() -> list[scipy.sparse.csr_array]:
    """Return `uneven_clients` with zeros in place of the smaller half of each client's entries."""
    return [
        scipy.sparse.csr_array(np.where(np.abs(s) < np.median(np.abs(s)), 0.0, s))
        for s in uneven_clients()
    ]


def starting_basis(d: int = FEATURES, seed: int = 11) -> np.ndarray:
    """Gaussian matrix of shape (d, RANK)."""
    return np.random.default_rng(seed).standard_normal((d, RANK))


def labels_of(clients: Sequence[np.ndarray], r: int = RANK) -> list[np.ndarray]:
    """Labels by a representation of rank r, with a head per client that depends on its own data."""
    B = np.linalg.qr(np.random.default_rng(23).standard_normal((clients[0].shape[1], r)))[0]
    heads = [np.ones(r) + s.sum(axis=0)[:r] for s in clients]
    return [(s @ B @ w + 0.1 * np.sin(100 * s[:, 0])).astype(s.dtype)
            for s, w in zip(clients, heads, strict=True)]  # fmt: skip


def images(
    sizes: Sequence[int] = (7, 12, 5, 12), *, seed: int = 7, draw: int = 0, dtype: Any = np.float64
) -> Clients:
    """Gaussian samples; each client's classes come from linear scores of its own."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((FEATURES, CLASSES))
    forms = [common + 0.5 * rng.standard_normal((FEATURES, CLASSES)) for _ in sizes]
    rng = np.random.default_rng([seed, draw])
    x = [rng.standard_normal((size, FEATURES)).astype(dtype) for size in sizes]
    y = [(a @ form).argmax(axis=1).astype(dtype) for a, form in zip(x, forms, strict=True)]
    return Clients(x, labels=y)


def held_out(
    sizes: Sequence[int] = (7, 12, 5, 12), *, seed: int = 7, dtype: Any = np.float64
) -> Clients:
    """Other draws than `images`, with the same linear forms, to measure on."""
    return images(sizes, seed=seed, draw=1, dtype=dtype)
