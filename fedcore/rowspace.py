"""Blocks of wide sparse clients by few coordinates: cost by what is stored, not by features.

Let S have n rows and d ≫ n features. Iterations on G = SᵀS that start from X stay in the span of X
and of the rows. From S Sᵀ = L Lᵀ, a Cholesky factorisation with pivoting, follow S = L Bᵀ and the
orthonormal B = Sᵀ L⁻ᵀ. With E for what X has outside range(B), the columns of [B E] are an
orthonormal basis. In its coordinates inner products, angles and QR factorisations are those of the
blocks, and G multiplies those along B by LᵀL. As by a Gram matrix, products are accurate to
``eps ‖S‖²``.

A `Block` stands for [B E] z. Messages and iterates of shape (d, p) are such blocks, which count as
what they stand for and become arrays when somebody reads them. The basis itself is never made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from fedcore.sparse import SparseRows

WIDE = 8  # features to a coordinate from which on coordinates are used
PRODUCTS = 8  # rounds whose blocks may take as much room, and as many operations, as S Sᵀ
STEEP = 1e4  # condition number of XᵀX above which X is no start
FAR = 100.0  # ‖S‖² to ‖S − 1 μᵀ‖² above which subtracting the mean costs S Sᵀ digits
_EPS = float(np.finfo(np.float64).eps)


class Frame:
    """The orthonormal basis [B E] of the span of a start and of all rows.

    Parameters
    ----------
    rows : SparseRows of shape (n, d)
        S, in double precision.
    chosen : ndarray of int of shape (k,)
        Rows whose span is that of all.
    factor : ndarray of shape (n, k)
        L, in the order of `rows`.
    start : ndarray of shape (d, p)
        X, of full rank. It is not copied.

    Attributes
    ----------
    start : ndarray of shape (k + p, p)
        Coordinates of the Q of ``X = Q R``, R with a positive diagonal.

    Raises
    ------
    LinAlgError
        When X has nothing outside the rows in some direction.
    """

    def __init__(
        self, rows: SparseRows, chosen: np.ndarray, factor: np.ndarray, start: np.ndarray
    ) -> None:
        self._rows, self._chosen, self._factor, self._X = rows, chosen, factor, start
        self._triangle = factor[chosen]
        to_q = _inverse(scipy.linalg.cholesky(start.T @ start))
        along = scipy.linalg.solve_triangular(
            self._triangle, rows.times(start)[chosen] @ to_q, lower=True
        )
        beside = np.eye(len(to_q)) - along.T @ along
        if scipy.linalg.eigvalsh(beside)[0] < 1 / STEEP:
            raise np.linalg.LinAlgError("the start lies in the span of the rows")
        size = scipy.linalg.cholesky(beside)
        self._to_e = _inverse(size)  # E = (Q − B along) to_e, and Q = X to_q
        self._to_q, self._along = to_q, along
        self.start = np.vstack([along, size])
        self.n_features, self.n_coordinates = len(start), sum(along.shape)

    def block(self, inside: np.ndarray) -> Block:
        """Return [B E] `inside`."""
        return Block(self, inside)

    def gram_times(self, inside: np.ndarray) -> np.ndarray:
        """Return the coordinates of G [B E] `inside`."""
        k = self._factor.shape[1]
        found = np.zeros_like(inside)
        found[:k] = self._factor.T @ (self._factor @ inside[:k])
        return found

    def array(self, inside: np.ndarray) -> np.ndarray:
        """Return [B E] `inside` as an array of shape (d, ·)."""
        k = self._factor.shape[1]
        along = inside[:k].astype(np.float64, copy=False)
        beside = self._to_e @ inside[k:]
        weights = np.zeros((len(self._rows), inside.shape[1]))
        weights[self._chosen] = scipy.linalg.solve_triangular(
            self._triangle, along - self._along @ beside, lower=True, trans="T"
        )
        found = self._rows.transposed_times(weights)
        if np.abs(inside[k:]).max(initial=0.0) > _EPS * self.n_coordinates:  # else it is rounding
            found += self._X @ (self._to_q @ beside)
        return found.astype(inside.dtype, copy=False)


class Block:
    """The matrix [B E] z, made when it is read.

    Parameters
    ----------
    frame : Frame
    inside : ndarray of shape (k + p, c)
        z, which nobody writes into.

    Attributes
    ----------
    frame, inside
    shape, size, nbytes, dtype
        Those of the matrix, of shape (d, c) and in the precision of z.
    """

    ndim = 2

    def __init__(self, frame: Frame, inside: np.ndarray) -> None:
        self.frame, self.inside, self.dtype = frame, inside, inside.dtype
        self.shape = frame.n_features, inside.shape[1]
        self.size = self.shape[0] * self.shape[1]
        self.nbytes = self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.frame.array(self.inside).astype(dtype or self.dtype, copy=False)

    def astype(self, dtype: Any, copy: bool = True) -> Block:
        """Return the block in another precision."""
        return Block(self.frame, self.inside.astype(dtype, copy=copy))

    def gram_product(self) -> Block:
        """Return G times this matrix."""
        return Block(self.frame, self.frame.gram_times(self.inside))


def inside(matrix: np.ndarray | Block) -> np.ndarray:
    """Return the coordinates of a block; an array is its own."""
    return matrix.inside if isinstance(matrix, Block) else matrix


def frame_of(clients: Sequence[Any], start: np.ndarray) -> Frame | None:
    """Return the frame of the rows of all clients and of a start, None where none serves.

    That is for dense clients, for those that are not wide, and where S Sᵀ would take longer than
    products with S, or lose digits.

    Parameters
    ----------
    clients : sequence of SparseRows of shape (n_i, d), or of ndarray
    start : ndarray of shape (d, p)
    """
    (d, p), n = start.shape, sum(len(client) for client in clients)
    if not isinstance(clients[0], SparseRows) or WIDE * (n + p) > d or n * n > PRODUCTS * d * p:
        return None
    if np.linalg.cond(start.T @ start) > STEEP:
        return None
    mean = clients[0].mean
    if mean is not None and not all(np.array_equal(mean, other.mean) for other in clients[1:]):
        return None
    matrices = [client.matrix.astype(np.float64, copy=False) for client in clients]
    rows = SparseRows(scipy.sparse.vstack(matrices, format="csr"), mean)
    counts = np.bincount(rows.matrix.indices).astype(np.float64)
    if counts @ counts > 4 * PRODUCTS * p * (rows.stored + d * p):
        return None
    found = _triangular(rows)
    try:
        return None if found is None else Frame(rows, *found, start)
    except np.linalg.LinAlgError:
        return None


def _triangular(rows: SparseRows) -> tuple[np.ndarray, np.ndarray] | None:
    """Return rows that span all, and L with ``S Sᵀ = L Lᵀ``; None where digits would be lost."""
    matrix, n = rows.matrix, len(rows)
    square = (matrix @ matrix.T).toarray(order="F")
    sizes = square.diagonal().copy()
    if rows.mean is not None:
        cross = matrix @ rows.mean
        square -= cross[:, None] + cross - rows.mean @ rows.mean
    own, rounding = square.diagonal().copy(), _EPS * float(sizes.max())
    if sizes.sum() > FAR * own.sum():
        return None
    packed, pivots, k, _ = scipy.linalg.lapack.dpstrf(
        square, tol=n * rounding, lower=1, overwrite_a=True
    )
    factor = np.empty((n, k))
    factor[pivots - 1] = np.tril(packed[:, :k])
    left = np.maximum(own - np.einsum("ij,ij->i", factor, factor), 0.0).sum()
    if left > (n + np.sqrt(rows.shape[1])) * rounding:  # rows that are small, but not rounding
        return None
    return pivots[:k] - 1, factor


def _inverse(upper: np.ndarray) -> np.ndarray:
    """Return the inverse of an upper triangular matrix of few columns."""
    return scipy.linalg.solve_triangular(upper, np.eye(len(upper)))


def orthonormal(basis: np.ndarray) -> np.ndarray:
    """Return a basis, nearly orthonormal, without what small singular values of S cost it."""
    square = basis.T @ basis
    if not np.abs(square - np.eye(len(square))).max() > _EPS * len(basis) ** 0.5:
        return basis
    return basis @ _inverse(scipy.linalg.cholesky(square)).astype(basis.dtype)
