"""Exact answers from products with the clients' data, for sparse clients with many features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse.linalg

from fedcore.linalg import column_space, gram_matrix, top_eigenvectors
from fedcore.sparse import SparseRows


def loss_outside(clients: Sequence[SparseRows], v: np.ndarray) -> float:
    """Return ``½‖S (I − Q Qᵀ)‖²_F = ½(‖S‖²_F − ‖S Q‖²_F)``, Q a basis of range(V).

    Rounding limits it to about 1e−16 ‖S‖²_F. It is NaN when `v` is not finite.

    Parameters
    ----------
    clients : sequence of SparseRows of shape (n_i, d)
    v : ndarray of shape (d, r)
    """
    q = column_space(v.astype(np.float64, copy=False))
    inside = sum(float(np.linalg.norm(client @ q) ** 2) for client in clients)
    return 0.5 * float(np.maximum(sum(client.squares() for client in clients) - inside, 0.0))


def leading_vectors(clients: Sequence[SparseRows], k: int) -> np.ndarray:
    """Return the k leading right singular vectors of S as columns, by Lanczos, shape (d, k).

    Parameters
    ----------
    clients : sequence of SparseRows of shape (n_i, d)
    k : int
    """
    d = clients[0].shape[1]
    if 8 * k > d:  # Lanczos would need a basis of the whole space
        return top_eigenvectors(gram_matrix(clients, np.dtype(np.float64)), k)
    # ARPACK's error is absolute for small eigenvalues, so the largest ones are made of order one.
    scale = sum(client.squares() for client in clients)

    def gram(block: np.ndarray) -> np.ndarray:
        return sum(client.T @ (client @ block) for client in clients) / scale

    operator = scipy.sparse.linalg.LinearOperator((d, d), matvec=gram, matmat=gram, dtype=float)
    start = np.random.default_rng(0).standard_normal(d)  # equal inputs give equal results
    values, vectors = scipy.sparse.linalg.eigsh(
        operator, k=k, which="LA", v0=start, ncv=min(d, 2 * k + 20)
    )
    return np.ascontiguousarray(vectors[:, np.argsort(-values)])
