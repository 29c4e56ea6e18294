"""Small data sets for the checks, made without the code that is being checked."""

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
    """Return an (n, d) matrix with the singular values `sigma`, up to rounding."""
    rng = np.random.default_rng(seed)
    left = np.linalg.qr(rng.standard_normal((n, len(sigma))))[0]
    right = np.linalg.qr(rng.standard_normal((d, len(sigma))))[0]
    return (left * sigma) @ right.T


def cut(matrix: np.ndarray, sizes: Sequence[int]) -> list[np.ndarray]:
    """Cut a matrix into consecutive blocks of rows with the given sizes."""
    return np.split(matrix, np.cumsum(sizes)[:-1])


def uneven_clients() -> list[np.ndarray]:
    """Return clients of unequal sizes; their stacked matrix has a gap after singular value 3."""
    return cut(spectrum_matrix(sum(SIZES), FEATURES, SPECTRUM, seed=1), SIZES)


def short_clients() -> Iterator[list[np.ndarray]]:
    """Yield two splits of the same rows into clients, some of which have very few rows.

    Two clients of the first split, and all of the second, have fewer than RANK rows.
    """
    for sizes in ([RANK - 1, *SIZES[1:], 1], [RANK - 1] * (sum(SIZES) // (RANK - 1))):
        yield cut(np.vstack(uneven_clients()), sizes)


def sparse_clients() -> list[scipy.sparse.csr_array]:
    """Return sparse `uneven_clients`; the smaller half of each client's entries is set to zero."""
    return [
        scipy.sparse.csr_array(np.where(np.abs(s) < np.median(np.abs(s)), 0.0, s))
        for s in uneven_clients()
    ]


def starting_basis(d: int = FEATURES, seed: int = 11) -> np.ndarray:
    """Return a Gaussian matrix of shape (d, RANK)."""
    return np.random.default_rng(seed).standard_normal((d, RANK))


def labels_of(clients: Sequence[np.ndarray], r: int = RANK) -> list[np.ndarray]:
    """Return labels from a shared rank-r representation and each client's own weights (heads)."""
    B = np.linalg.qr(np.random.default_rng(23).standard_normal((clients[0].shape[1], r)))[0]
    heads = [np.ones(r) + s.sum(axis=0)[:r] for s in clients]
    return [(s @ B @ w + 0.1 * np.sin(100 * s[:, 0])).astype(s.dtype)
            for s, w in zip(clients, heads, strict=True)]  # fmt: skip


def images(
    sizes: Sequence[int] = (7, 12, 5, 12), *, seed: int = 7, draw: int = 0, dtype: Any = np.float64
) -> Clients:
    """Return clients with Gaussian samples, which each client labels by its own linear scores."""
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
    """Return new samples for the clients of `images`, labelled by the same linear scores."""
    return images(sizes, seed=seed, draw=1, dtype=dtype)
