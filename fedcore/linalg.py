"""Linear algebra that several algorithms and metrics share.

Every basis has orthonormal columns. In QR factorisations without pivoting, R has a non-negative
diagonal, so that signs do not depend on the LAPACK library. Only `orth_householder` and
`triangular_factor` return the signs that LAPACK chooses.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from fedcore.sparse import SparseRows

_LAPACK = {
    np.dtype(kind): scipy.linalg.get_lapack_funcs(("geqrf", "orgqr"), dtype=kind)
    for kind in (np.float32, np.float64)
}
TALL_ROWS = 1 << 16  # rows above which `orth` takes them block by block
_BLOCK = 64  # columns, at least as many as LAPACK's QR takes at once
Packed = tuple[np.ndarray, np.ndarray]  # what geqrf returns: R above reflectors, and their scales


def _packed(matrix: np.ndarray) -> Packed:
    """Return LAPACK's packed QR factorisation, 3 to 5 times as fast as SciPy for small matrices."""
    matrix = np.asarray(matrix)  # which sparse samples refuse with a sentence
    matrix = matrix if matrix.dtype in _LAPACK else matrix.astype(np.float64)
    if not matrix.size:  # LAPACK refuses zero rows, and prints so
        return matrix, np.zeros(0, matrix.dtype)
    geqrf, _ = _LAPACK[matrix.dtype]
    packed, scales, _, _ = geqrf(matrix, lwork=_BLOCK * max(matrix.shape[1], 1))
    return packed, scales


def _columns(found: Packed) -> np.ndarray:
    """Return the thin factor Q of a packed QR factorisation, the result of `_packed`."""
    packed, scales = found
    if not packed.size:
        return packed[:, :0]
    _, orgqr = _LAPACK[packed.dtype]
    return orgqr(packed[:, : len(scales)], scales, lwork=_BLOCK * max(len(scales), 1))[0]


def _signs(found: Packed) -> np.ndarray:
    """Return the signs of R's diagonal entries, and 1 for an entry that is zero."""
    diagonal = np.diagonal(found[0])
    return np.where(diagonal < 0, -1.0, 1.0).astype(diagonal.dtype)


def _triangle(found: Packed) -> np.ndarray:
    """Return the triangular factor R of a packed QR factorisation, the result of `_packed`."""
    packed, scales = found
    return np.triu(packed[: len(scales)])


def qr_positive(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the thin QR factorisation whose R has a non-negative diagonal.

    Parameters
    ----------
    matrix : ndarray of shape (m, k)

    Returns
    -------
    q : ndarray of shape (m, min(m, k))
    r : ndarray of shape (min(m, k), k)
    """
    found = _packed(matrix)
    signs = _signs(found)
    return _columns(found) * signs, _triangle(found) * signs[:, None]


def orth(matrix: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of range(`matrix`), the Q of a thin QR with diag(R) >= 0.

    Parameters
    ----------
    matrix : ndarray of shape (…, m, k), k <= m
        One matrix or a stack of matrices. The result for a matrix of a stack does not depend on the
        other matrices.
    """
    if matrix.ndim > 2:
        return _orth_of_stack(matrix)
    if len(matrix) > TALL_ROWS:
        return _orth_by_blocks(matrix)
    found = _packed(matrix)
    return _columns(found) * _signs(found)


def _orth_of_stack(stack: np.ndarray) -> np.ndarray:
    """Orthonormalise every matrix of a stack by two rounds of Cholesky QR.

    The result equals Householder QR up to rounding if the condition number is at most about 1e7, or
    1e3 in single precision (Yamamoto, Nakatsukasa, Yanagisawa & Fukaya, ETNA 2015). Each matrix
    with a larger condition number is orthonormalised separately by `orth`.
    """
    rows, least = np.swapaxes(stack, -1, -2), 100 * np.sqrt(np.finfo(stack.dtype).eps)
    try:
        for _ in range(2):
            with np.errstate(over="ignore", invalid="ignore"):  # these fail
                L = np.linalg.cholesky(rows @ np.swapaxes(rows, -1, -2))
            diagonal = np.diagonal(L, axis1=-2, axis2=-1)
            if not (diagonal.min(axis=-1) > least * diagonal.max(axis=-1)).all():
                raise np.linalg.LinAlgError
            rows = np.linalg.inv(L) @ rows
    except np.linalg.LinAlgError:
        if len(stack) == 1:
            return orth(stack[0])[None]
        return np.concatenate([_orth_of_stack(one[None]) for one in stack])
    return np.swapaxes(rows, -1, -2)


def _orth_by_blocks(matrix: np.ndarray) -> np.ndarray:
    """Orthonormalise a tall matrix by QR of row blocks that fit into the processor's cache."""
    d, k = matrix.shape
    rows = max(TALL_ROWS // 8, 8 * k)
    blocks = [slice(first, first + rows) for first in range(0, d, rows)]
    out, triangles = np.empty((d, k), np.float32 if matrix.dtype == np.float32 else float), []
    for block in blocks:
        q, r = qr_positive(matrix[block])
        out[block, : len(r)] = q
        triangles.append(r)
    ends = np.cumsum([len(r) for r in triangles])[:-1]
    for block, part in zip(blocks, np.split(orth(np.vstack(triangles)), ends), strict=True):
        out[block] = out[block, : len(part)] @ part
    return out


def orth_householder(matrix: np.ndarray) -> np.ndarray:
    """Return the thin Q of LAPACK's QR factorisation, with LAPACK's signs."""
    return _columns(_packed(matrix))


def column_space(v: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of range(`v`).

    The rank k of `v` is counted after scaling its columns to length one. A very short column
    therefore still counts. A singular value of the scaled matrix counts as zero if it is at most
    ``(2 + r/2) eps``. This tolerance is needed because QR rounds: a linearly dependent column can
    give a singular value of this size. If `v` has full rank, the basis equals `orth(v)` up to
    rounding. If `v` has lower rank, the basis comes from QR with pivoting.

    Parameters
    ----------
    v : ndarray of shape (d, r)

    Returns
    -------
    ndarray of shape (d, k)
        All entries are NaN if `v` is not finite.
    """
    d, r = v.shape
    if not np.isfinite(v).all():
        return np.full((d, min(d, r)), np.nan, v.dtype)
    columns = np.ldexp(v, -_exponents(v))
    q, factor = qr_positive(columns)
    rank = _rank(factor)
    if rank == r:
        return q
    unit = _unit_columns(columns)
    q = scipy.linalg.qr(unit, mode="economic", pivoting=True, check_finite=False)[0]
    return np.ascontiguousarray(q[:, :rank])


def lost_directions(v: np.ndarray, margin: float = 100.0) -> int:
    """Count the directions of range(`v`) that rounding leaves with too few correct digits.

    Let s be a singular value of `v` with columns scaled to length one. Rounding rotates the
    direction of s by about ``eps / s`` (measured: 0.5 to 6 times this angle for sums over 500 to
    10⁶ samples). A direction with ``s <= margin · eps`` counts as lost. With the default margin,
    fewer than two digits of a lost direction are correct.

    Parameters
    ----------
    v : ndarray of shape (d, r)
    margin : float, default=100

    Returns
    -------
    int
        Number of lost directions, or r if `v` contains NaN or infinity.
    """
    if not np.isfinite(v).all():
        return v.shape[1]
    return v.shape[1] - _rank(qr_positive(np.ldexp(v, -_exponents(v)))[1], margin)


class RangeBasis(NamedTuple):
    """Thin SVD ``V = basis @ diag(sigma) @ rotation.T`` without the zero singular values of V."""

    basis: np.ndarray  # (d, k), orthonormal columns spanning range(V)
    sigma: np.ndarray  # (k,), descending, all above zero
    rotation: np.ndarray  # (r, k), orthonormal columns: eigenvectors of VᵀV


def range_basis(v: np.ndarray) -> RangeBasis:
    """Return the thin SVD of `v` without zero singular values.

    Jacobi's method (LAPACK's xGEJSV) computes a small singular value to full precision if it is
    small because some columns are short (Drmač & Veselić, SIAM J. Matrix Anal. Appl. 2008).

    Parameters
    ----------
    v : ndarray of shape (d, r)

    Returns
    -------
    RangeBasis
        All entries are NaN if `v` is not finite.
    """
    basis, sigma, rotation, exponent = _decomposition(v)
    return RangeBasis(basis, np.ldexp(sigma, exponent), rotation)


def _decomposition(v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, int]:
    """Return ``(basis, sigma, rotation, e)``; the singular values of `v` are ``sigma · 2^e``."""
    q = column_space(v)
    k, r = q.shape[1], v.shape[1]
    if not k or not np.isfinite(q).all():
        return q, np.full(k, np.nan, v.dtype), np.full((r, k), np.nan, v.dtype), 0
    exponent = int(_exponents(v).max())
    inside = (q.T @ np.ldexp(v, -exponent)).T  # (r, k): at least as many rows as columns
    gejsv = scipy.linalg.get_lapack_funcs("gejsv", (inside,))
    # joba=2: rows and columns of any scale; jobr=0: small values are not set to zero.
    sigma, left, right, work, _, info = gejsv(inside, joba=2, jobr=0, jobp=0)
    if info:
        raise np.linalg.LinAlgError(f"xGEJSV ended with info = {info}")
    return q @ right, sigma * (work[0] / work[1]), left[:, :k], exponent


def _exponents(v: np.ndarray) -> np.ndarray:
    """Return each column's exponent e with ``2^(e−1) ≤ max |v| < 2^e``, or 0 for a zero column."""
    return np.frexp(np.abs(v).max(axis=0))[1]


def _exponent(matrix: np.ndarray) -> int:
    """Return the e with ``2^(e−1) ≤ max |matrix| < 2^e``; 0 if the maximum is 0 or not finite."""
    return int(np.frexp(max(matrix.max(), -matrix.min()))[1])


def _unit_columns(matrix: np.ndarray) -> np.ndarray:
    """Return the matrix with all columns scaled to length one, except zero columns."""
    lengths = np.linalg.norm(matrix, axis=0)
    return matrix / np.where(lengths > 0, lengths, 1)


def _rank(factor: np.ndarray, margin: float = 0.0) -> int:
    """Scale the columns of R to length one, and count the singular values above a tolerance.

    The tolerance is ``margin · eps`` or the rounding error of QR, whichever is larger.

    Parameters
    ----------
    factor : ndarray of shape (k, r)
        Factor R of a QR factorisation. The squares of R's entries must not overflow or underflow.
    """
    values = scipy.linalg.svdvals(_unit_columns(factor), check_finite=False)
    tolerance = max(margin, 2 + factor.shape[1] / 2) * np.finfo(factor.dtype).eps
    return int(np.count_nonzero(values > tolerance))


def outside(basis: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return ``M − X (Xᵀ M)``, the part of `matrix` M outside the range of the orthonormal X.

    Parameters
    ----------
    basis : ndarray of shape (d, p)
        Orthonormal columns of X.
    matrix : ndarray of shape (d, k)

    Returns
    -------
    ndarray of shape (d, k)
    """
    return matrix - basis @ (basis.T @ matrix)


def condition_number(v: np.ndarray) -> float:
    """Return ``sigma_max(V) / sigma_min(V)``, or infinity if `column_space` drops directions of V.

    Short columns make the condition number large but not infinite. The condition number is NaN if
    `v` is not finite.
    """
    sigma = _decomposition(v)[1]
    if len(sigma) < v.shape[1]:
        return float("inf")
    with np.errstate(divide="ignore", over="ignore"):
        return float(sigma[0].astype(np.float64) / sigma[-1])


def spectral_norm(matrix: np.ndarray) -> float:
    """Return ‖matrix‖₂ by Lanczos iterations, or by a dense SVD for a small matrix.

    A matrix with small or very large entries is first scaled by a power of two. Without this
    scaling, squares could overflow or underflow. Also, ARPACK (SciPy's Lanczos code) would accept
    every error below about 4e-11 (float32: 2e-5).

    Parameters
    ----------
    matrix : ndarray or SparseRows of shape (m, k)
    """
    if isinstance(matrix, SparseRows):
        return matrix.spectral_norm()
    if min(matrix.shape) <= 64:
        return float(np.linalg.norm(matrix, 2))
    exponent = _exponent(matrix)
    if not 0 <= exponent <= np.finfo(matrix.dtype).maxexp // 4:
        return float(np.ldexp(spectral_norm(np.ldexp(matrix, -exponent)), exponent))
    if not matrix.any():
        return 0.0  # Lanczos fails on a zero matrix
    # A fixed start, so that equal inputs give equal results on one machine.
    start = np.random.default_rng(0).standard_normal(min(matrix.shape)).astype(matrix.dtype)
    with contextlib.suppress(scipy.sparse.linalg.ArpackError):
        values = scipy.sparse.linalg.svds(matrix, k=1, v0=start, return_singular_vectors=False)
        return float(values[0])
    return float(np.linalg.norm(matrix, 2))


def top_eigenvectors(matrix: np.ndarray, k: int) -> np.ndarray:
    """Return eigenvectors of the k largest eigenvalues of a symmetric matrix, largest first.

    A small matrix is decomposed densely, a large matrix by Lanczos iterations with a fixed start. A
    large matrix is first scaled by a power of two, because ARPACK's error is absolute for small
    eigenvalues.

    Parameters
    ----------
    matrix : ndarray of shape (d, d)
    k : int

    Returns
    -------
    ndarray of shape (d, k)
        All entries are NaN if `matrix` is not finite.
    """
    d = len(matrix)
    if not np.isfinite(matrix).all():
        return np.full((d, k), np.nan, matrix.dtype)
    if d > 256 and 8 * k < d:
        start = np.random.default_rng(0).standard_normal(d).astype(matrix.dtype)
        scaled = np.ldexp(matrix, -_exponent(matrix))
        with contextlib.suppress(scipy.sparse.linalg.ArpackNoConvergence):
            values, vectors = scipy.sparse.linalg.eigsh(scaled, k=k, which="LA", v0=start)
            return np.ascontiguousarray(vectors[:, np.argsort(-values)])
    _, vectors = scipy.linalg.eigh(matrix, subset_by_index=(d - k, d - 1), check_finite=False)
    return np.ascontiguousarray(vectors[:, ::-1])


def procrustes(z: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Return the orthogonal matrix D that minimises ``‖z D − target‖_F``.

    Parameters
    ----------
    z, target : ndarray of shape (…, d, r)

    Returns
    -------
    ndarray of shape (…, r, r)
        D is ``W1 W2ᵀ`` from the SVD ``zᵀ target = W1 Λ W2ᵀ``.
    """
    w1, _, w2_t = np.linalg.svd(np.swapaxes(z, -1, -2) @ target)
    return w1 @ w2_t


def sin_theta(basis: np.ndarray, other: np.ndarray) -> float:
    """Return the sine of the largest principal angle between U and Z, ``‖(I − Z Zᵀ) U‖₂``.

    Parameters
    ----------
    basis : ndarray of shape (d, r)
        Orthonormal columns of Z; Z has at least as many columns as U.
    other : ndarray of shape (d, k)
        Orthonormal columns of U.
    """
    return float(np.linalg.norm(outside(basis, other), 2))


def haar(rows: int, columns: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a (rows, columns) matrix with orthonormal columns, uniformly (Haar measure).

    Parameters
    ----------
    rows, columns : int
        Shape of the matrix, with `columns` at most `rows`.
    rng : numpy.random.Generator
    """
    return orth(rng.standard_normal((rows, columns)))


def gram_matrix(blocks: Sequence[Any], dtype: np.dtype | None = None) -> np.ndarray:
    """Return the (d, d) Gram matrix ``Σ SᵢᵀSᵢ`` of the blocks Sᵢ.

    Parameters
    ----------
    blocks : sequence of ndarray or SparseRows of shape (n_i, d)
    dtype : data-type, optional
        Precision of the computation, by default the precision of the blocks.
    """
    dtype = np.result_type(*blocks) if dtype is None else dtype
    if any(isinstance(block, SparseRows) for block in blocks):
        return sum(block.gram(dtype) for block in blocks)
    syrk = scipy.linalg.get_blas_funcs("syrk", dtype=dtype)
    gram = np.zeros((blocks[0].shape[1],) * 2, dtype, order="F")
    for block in blocks:
        # The transpose of C-contiguous data is what BLAS reads without a copy.
        gram = syrk(1.0, block.T.astype(dtype, copy=False), beta=1.0, c=gram, overwrite_c=True)
    gram += np.triu(gram, 1).T
    return gram


def upper_triangle(matrix: np.ndarray) -> np.ndarray:
    """Return the d (d + 1) / 2 entries on and above the diagonal, row by row.

    Clients send symmetric matrices in this form, to save traffic. The inverse function is
    `from_upper_triangle`.
    """
    return matrix[_upper(len(matrix))]


def from_upper_triangle(entries: np.ndarray, d: int) -> np.ndarray:
    """Return the symmetric (d, d) matrix from its entries on and above the diagonal."""
    matrix = np.zeros((d, d), entries.dtype)
    matrix[_upper(d)] = entries
    matrix += np.triu(matrix, 1).T
    return matrix


@lru_cache(maxsize=1)  # every client of a run sends a triangle of one size
def _upper(d: int) -> np.ndarray:
    """Return the (d, d) boolean mask of the upper triangle."""
    return np.triu(np.ones((d, d), bool))


def triangular_factor(blocks: Iterable[np.ndarray]) -> np.ndarray:
    """Return the factor R of a QR factorisation of the stacked `blocks`, by TSQR.

    R has at most d rows. For the stacked matrix S and every X, ``‖S X‖_F = ‖R X‖_F``. Unlike the
    Gram matrix, R is accurate to machine precision relative to ‖S‖.

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
        factor = _triangle(_packed(stacked))
    if factor is None:
        raise ValueError("triangular_factor needs at least one block")
    return factor
