"""Linear algebra that several algorithms and metrics share.

Every basis has orthonormal columns, and every QR factorisation has a positive diagonal in R, so
that equal inputs give equal bytes whatever LAPACK's own sign convention is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.linalg


def qr_positive(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Thin QR factorisation with a non-negative diagonal in R.

    Parameters
    ----------
    matrix : ndarray of shape (m, k)

    Returns
    -------
    q : ndarray of shape (m, min(m, k))
        Orthonormal columns.
    r : ndarray of shape (min(m, k), k)
        Upper triangular, diagonal >= 0.
    """
    q, r = scipy.linalg.qr(matrix, mode="economic", check_finite=False)
    signs = np.where(np.diagonal(r) < 0, -1.0, 1.0).astype(r.dtype)
    return q * signs, r * signs[:, None]


def orth(matrix: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of range(`matrix`) by thin QR, signs fixed by diag(R) >= 0.

    Parameters
    ----------
    matrix : ndarray of shape (m, k), k <= m

    Returns
    -------
    ndarray of shape (m, k)
    """
    return qr_positive(matrix)[0]


class RangeBasis(NamedTuple):
    """Thin SVD of V without its numerically zero part: ``V = basis @ diag(sigma) @ rotation.T``."""

    basis: np.ndarray  # (d, k), orthonormal columns spanning range(V)
    sigma: np.ndarray  # (k,), descending, all above the tolerance
    rotation: np.ndarray  # (r, k), orthonormal columns: eigenvectors of VᵀV


def range_basis(v: np.ndarray) -> RangeBasis:
    """Thin SVD of `v`, dropping singular values below ``max(d, r) * eps * sigma_max``.

    Parameters
    ----------
    v : ndarray of shape (d, r)

    Returns
    -------
    RangeBasis
        With k = numerical rank of `v` columns.
    """
    left, sigma, right_t = scipy.linalg.svd(v, full_matrices=False, check_finite=False)
    tolerance = max(v.shape) * np.finfo(v.dtype).eps * (sigma[0] if sigma.size else 0.0)
    keep = sigma > tolerance
    return RangeBasis(left[:, keep], sigma[keep], right_t[keep].T)


def off(basis: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return ``P⊥ M = M − X (Xᵀ M)``, the part of M outside of range(X), X orthonormal.

    Parameters
    ----------
    basis : ndarray of shape (d, p)
    matrix : ndarray of shape (d, k)

    Returns
    -------
    ndarray of shape (d, k)
    """
    return matrix - basis @ (basis.T @ matrix)


def condition_number(v: np.ndarray) -> float:
    """Return ``kappa(V) = sigma_max(V) / sigma_min(V)``; infinite when `v` is rank-deficient.

    The rank is that of `range_basis`.
    """
    sigma = range_basis(v).sigma
    return float(sigma[0] / sigma[-1]) if len(sigma) == v.shape[1] else float("inf")


def spectral_norm(matrix: np.ndarray) -> float:
    """Return ‖matrix‖₂ from products with vectors (Lanczos), or densely when it is small.

    Parameters
    ----------
    matrix : ndarray of shape (m, k)
    """
    if min(matrix.shape) <= 64:
        return float(np.linalg.norm(matrix, 2))
    # The start is fixed, so that equal inputs give equal bytes, and has no structure.
    start = np.random.default_rng(0).standard_normal(min(matrix.shape)).astype(matrix.dtype)
    return float(scipy.sparse.linalg.svds(matrix, k=1, v0=start, return_singular_vectors=False)[0])


def top_eigenvectors(matrix: np.ndarray, k: int) -> np.ndarray:
    """Eigenvectors of the k largest eigenvalues of a symmetric matrix, largest first.

    Dense when the matrix is small, by Lanczos iterations from a fixed start when it is large.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
    k : int

    Returns
    -------
    ndarray of shape (d, k)
    """
    d = len(matrix)
    if d > 256 and 8 * k < d:
        start = np.random.default_rng(0).standard_normal(d).astype(matrix.dtype)
        with contextlib.suppress(scipy.sparse.linalg.ArpackNoConvergence):
            values, vectors = scipy.sparse.linalg.eigsh(matrix, k=k, which="LA", v0=start)
            return np.ascontiguousarray(vectors[:, np.argsort(-values)])
    _, vectors = scipy.linalg.eigh(matrix, subset_by_index=(d - k, d - 1), check_finite=False)
    return np.ascontiguousarray(vectors[:, ::-1])


def procrustes(z: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Orthogonal matrix D that minimises ``‖z D − target‖_F``.

    Parameters
    ----------
    z, target : ndarray of shape (d, r)

    Returns
    -------
    ndarray of shape (r, r)
        ``W1 W2ᵀ`` with ``zᵀ target = W1 Λ W2ᵀ``.
    """
    w1, _, w2_t = scipy.linalg.svd(z.T @ target, check_finite=False)
    return w1 @ w2_t


def sin_theta(basis: np.ndarray, other: np.ndarray) -> float:
    """Sine of the largest principal angle, ``‖(I − Z Zᵀ) U‖₂``.

    Parameters
    ----------
    basis : ndarray of shape (d, r)
        Orthonormal columns Z, r >= k.
    other : ndarray of shape (d, k)
        Orthonormal columns U.
    """
    return float(np.linalg.norm(other - basis @ (basis.T @ other), 2))


def haar(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Draw an orthonormal (rows, columns) matrix from the Haar measure: QR of a Gaussian one."""
    return orth(rng.standard_normal((rows, columns)))


def gram_matrix(blocks: Sequence[np.ndarray], dtype: np.dtype | None = None) -> np.ndarray:
    """Return ``Σ SᵢᵀSᵢ`` of the blocks Sᵢ, shape (d, d).

    Parameters
    ----------
    blocks : sequence of ndarray of shape (n_i, d)
    dtype : data-type, optional
        Precision to compute in; the default is that of the blocks.
    """
    dtype = np.result_type(*blocks) if dtype is None else dtype
    syrk = scipy.linalg.get_blas_funcs("syrk", dtype=dtype)
    gram = np.zeros((blocks[0].shape[1],) * 2, dtype, order="F")
    for block in blocks:
        # The transpose of C-contiguous data is what BLAS reads without a copy.
        gram = syrk(1.0, block.T.astype(dtype, copy=False), beta=1.0, c=gram, overwrite_c=True)
    gram += np.triu(gram, 1).T
    return gram


def triangular_factor(blocks: Iterable[np.ndarray]) -> np.ndarray:
    """R factor of the vertical stack of `blocks`, by QR block after block (TSQR).

    ``‖S X‖_F = ‖R X‖_F`` for every X, with R of at most d rows: what a metric needs of the data,
    and, unlike the Gram matrix, accurate to machine precision relative to ‖S‖.

    Parameters
    ----------
    blocks : iterable of ndarray of shape (n_i, d)

    Returns
    -------
    ndarray of shape (min(n, d), d)
    """
    factor: np.ndarray | None = None
    for block in blocks:
        stacked = block if factor is None else np.vstack([factor, block])
        factor = scipy.linalg.qr(stacked, mode="r", check_finite=False)[0][: min(stacked.shape)]
    if factor is None:
        raise ValueError("triangular_factor needs at least one block")
    return factor
