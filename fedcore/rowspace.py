"""Represent tall (d, p) matrices by few coordinates, if the clients have few samples.

Let S stack all samples, with n rows and d ≫ n features. Iterations on G = SᵀS that start from X
stay in the span of X and of the rows of S. A Cholesky factorisation with pivoting, S Sᵀ = L Lᵀ,
gives S = L Bᵀ with the orthonormal B = Sᵀ L⁻ᵀ. Let E be an orthonormal basis of the part of X that
is orthogonal to range(B). Coordinates in the orthonormal basis [B E] preserve inner products,
angles and QR factorisations. A product with G multiplies the coordinates along B by LᵀL, and those
along E by zero. As with a Gram matrix, products are accurate to ``eps ‖S‖²``. The cost of a product
does not grow with d.

A `Block` stores only the coordinates z of a matrix [B E] z. Messages and iterates of shape (d, p)
are sent and recorded as blocks. The ledger counts a block as the full matrix. A block becomes an
array when code reads its entries. The matrix [B E] is never formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse

from fedcore.linalg import orth
from fedcore.sparse import SparseRows

WIDE = 8  # features to a coordinate from which on coordinates are used
PRODUCTS = 8  # rounds whose blocks may take as much room, and as many operations, as S Sᵀ
SHARE_OUTSIDE = 1e-4  # of a squared length outside the rows, below which a direction of X has no E
FAR_MEAN = 100.0  # ‖S‖² to ‖S − 1 μᵀ‖² above which subtracting the mean costs S Sᵀ digits
FEATURE_BLOCK = 4096  # features at a time where a block of all would be another copy
FULL_RATIO = 16  # entries of a column to one that is stored, below which it is multiplied as it is
_EPS = float(np.finfo(np.float64).eps)


class Rows:
    """Rows of all sparse clients, minus the subtracted means, as one matrix S in double precision.

    Parameters
    ----------
    clients : sequence of SparseRows of shape (n_i, d)

    Attributes
    ----------
    matrix : scipy.sparse.csr_array of shape (n, d)
        Rows before the means are subtracted.
    means : ndarray of shape (u, d)
        The u different mean vectors that are subtracted from rows; u = 0 if nothing is subtracted.
    """

    def __init__(self, clients: Sequence[SparseRows]) -> None:
        matrices = [client.matrix.astype(np.float64, copy=False) for client in clients]
        self.matrix = scipy.sparse.vstack(matrices, format="csr")
        different: list[np.ndarray] = []
        of = []
        for mean in (client.mean for client in clients):
            if mean is None:
                continue
            at = (i for i, other in enumerate(different) if np.array_equal(mean, other))
            of.append(next(at, len(different)))
            if of[-1] == len(different):
                different.append(mean)
        self.means = different[0][None] if len(different) == 1 else np.array(different)
        self._of = np.repeat(of, [len(client) for client in clients]) if of else np.empty(0, int)

    def times(self, block: np.ndarray) -> np.ndarray:
        """Return S `block`."""
        found = self.matrix @ block
        if len(self.means):
            off = self.means @ block
            found -= off if len(off) == 1 else off[self._of]
        return found

    def gram_times(self, block: np.ndarray) -> np.ndarray:
        """Return Sᵀ S `block`."""
        return self.transposed_times(self.times(block))

    def transposed_times(self, block: np.ndarray) -> np.ndarray:
        """Return Sᵀ `block`."""
        found = self.matrix.T @ block
        if len(self.means):
            each = range(len(self.means))
            one = len(self.means) == 1
            sums = np.array([(block if one else block[self._of == i]).sum(axis=0) for i in each])
            for first in range(0, len(found), FEATURE_BLOCK):
                found[first : first + FEATURE_BLOCK] -= (
                    self.means[:, first : first + FEATURE_BLOCK].T @ sums
                )
        return found

    def products(self) -> tuple[np.ndarray, np.ndarray]:
        """Return S Sᵀ in Fortran order, and the squared norms of the rows before centring."""
        counts = np.bincount(self.matrix.indices, minlength=self.matrix.shape[1])
        often = FULL_RATIO * counts > self.matrix.shape[0]
        seldom, dense = self.matrix[:, ~often], self.matrix[:, often].toarray()
        found = (seldom @ seldom.T).toarray(order="F")
        found += dense @ dense.T
        squares = found.diagonal().copy()
        if len(self.means):
            cross = (self.matrix @ self.means.T)[:, self._of]
            found -= cross
            found -= cross.T
            found += (self.means @ self.means.T)[self._of[:, None], self._of]
        return found, squares


class DenseRows:
    """Rows of all dense clients as one matrix S, in double precision.

    Parameters
    ----------
    clients : sequence of ndarray of shape (n_i, d)
    """

    def __init__(self, clients: Sequence[np.ndarray]) -> None:
        self._parts = [client.astype(np.float64, copy=False) for client in clients]
        self._ends = np.cumsum([len(part) for part in self._parts])

    def times(self, block: np.ndarray) -> np.ndarray:
        """Return S `block`."""
        return np.vstack([part @ block for part in self._parts])

    def transposed_times(self, block: np.ndarray) -> np.ndarray:
        """Return Sᵀ `block`."""
        pieces = np.split(block, self._ends[:-1])
        rows = sum(piece.T @ part for piece, part in zip(pieces, self._parts, strict=True))
        return np.asarray(rows).T  # BLAS takes less time for few rows than for few columns

    def products(self) -> tuple[np.ndarray, np.ndarray]:
        """Return S Sᵀ in Fortran order, where S stacks all rows, and the rows' squared norms."""
        n, d = self._ends[-1], self._parts[0].shape[1]
        found = np.zeros((n, n))
        for start in range(0, d, FEATURE_BLOCK):
            rows = np.vstack([part[:, start : start + FEATURE_BLOCK] for part in self._parts])
            found += rows @ rows.T
        return found.T, found.diagonal().copy()


class Frame:
    """Orthonormal basis of the span of a starting matrix X and of the rows of S.

    Parameters
    ----------
    rows : Rows or DenseRows
        Rows of the (n, d) matrix S.
    chosen : ndarray of int of shape (k,)
        Indices of k rows that span the same space as all rows.
    factor : ndarray of shape (n, k)
        Cholesky factor L of S Sᵀ; row i of L belongs to row i of S.
    start : ndarray of shape (d, p)
        Starting matrix X with orthonormal columns, which is not copied.

    Attributes
    ----------
    start : ndarray of shape (k + p, p)
        Coordinates of X in this basis.

    Raises
    ------
    LinAlgError
        Raised if some direction of X lies almost in the span of the rows.
    """

    def __init__(
        self, rows: Rows | DenseRows, chosen: np.ndarray, factor: np.ndarray, start: np.ndarray
    ) -> None:
        self._rows, self._chosen, self._factor, self._X = rows, chosen, factor, start
        self._triangle = factor[chosen]
        self._along = scipy.linalg.solve_triangular(
            self._triangle, rows.times(start)[chosen], lower=True
        )
        beside = np.eye(start.shape[1]) - self._along.T @ self._along
        if scipy.linalg.eigvalsh(beside)[0] < SHARE_OUTSIDE:
            raise np.linalg.LinAlgError("the start lies in the span of the rows")
        self._size = scipy.linalg.cholesky(beside)  # E = (X − B along) size⁻¹
        self.start = np.vstack([self._along, self._size])
        self.n_features = len(start)

    def block(self, inside: np.ndarray) -> Block:
        """Return the matrix with the coordinates `inside`, as a `Block`."""
        return Block(self, inside)

    def gram_times(self, inside: np.ndarray) -> np.ndarray:
        """Return the coordinates of SᵀS M, where M has the coordinates `inside`."""
        k = self._factor.shape[1]
        found = np.zeros_like(inside)
        found[:k] = self._factor.T @ (self._factor @ inside[:k])
        return found

    def array(self, inside: np.ndarray) -> np.ndarray:
        """Return the matrix with the coordinates `inside` as an array with d rows."""
        k = self._factor.shape[1]
        beside = scipy.linalg.solve_triangular(self._size, inside[k:])
        weights = np.zeros((len(self._factor), inside.shape[1]))
        weights[self._chosen] = scipy.linalg.solve_triangular(
            self._triangle, inside[:k] - self._along @ beside, lower=True, trans="T"
        )
        found = self._rows.transposed_times(weights)
        if np.abs(beside).max(initial=0.0) > _EPS * len(inside):  # else it is rounding
            found += self._X @ beside
        return found.astype(inside.dtype, copy=False)


class Block:
    """Matrix with d rows, stored as few coordinates; its entries are computed when they are read.

    Parameters
    ----------
    frame : Frame
    inside : ndarray of shape (k + p, c)
        Coordinates in the basis `frame`. The array must not be changed.

    Attributes
    ----------
    shape, size, nbytes, dtype
        Attributes of the represented matrix, which has shape (d, c) and the precision of `inside`.
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
        """Return the block with coordinates in another precision."""
        return Block(self.frame, self.inside.astype(dtype, copy=copy))

    def gram_product(self) -> Block:
        """Return SᵀS times this matrix as a block, where S stacks all clients' rows."""
        return Block(self.frame, self.frame.gram_times(self.inside))


def orthonormal(basis: np.ndarray) -> np.ndarray:
    """Return `basis` itself if it is orthonormal up to rounding, else orthonormalise it."""
    p = basis.shape[1]
    near = np.abs(basis.T @ basis - np.eye(p)).max() <= 16 * p * _EPS
    return basis if near else orth(basis)


def inside(matrix: np.ndarray | Block) -> np.ndarray:
    """Return the coordinates of a `Block`; return an array unchanged."""
    return matrix.inside if isinstance(matrix, Block) else matrix


def frame_of(clients: Sequence[Any], start: np.ndarray) -> Frame | None:
    """Return a basis of the span of `start` and all rows, or None if it is slow or inaccurate.

    Let S stack all clients' rows. The basis is slow if the features do not far outnumber the
    samples, or if S Sᵀ costs more than several products with S. The basis is inaccurate if S Sᵀ
    loses digits, or if a direction of `start` lies almost in the span of the rows.

    Parameters
    ----------
    clients : sequence of SparseRows of shape (n_i, d), or of ndarray
    start : ndarray of shape (d, p)
        Starting matrix with orthonormal columns.
    """
    (d, p), n = start.shape, sum(len(client) for client in clients)
    if WIDE * (n + p) > d or n * n > PRODUCTS * d * p:
        return None
    rows: Rows | DenseRows
    if isinstance(clients[0], SparseRows):
        rows = Rows(clients)
        if len(rows.means) > PRODUCTS * p:
            return None
        counts = np.bincount(rows.matrix.indices).astype(np.float64)
        if counts @ counts > 4 * PRODUCTS * p * (rows.matrix.nnz + d * p):
            return None
    else:
        rows = DenseRows(clients)
    found = _triangular(rows, d)
    try:
        return None if found is None else Frame(rows, *found, start)
    except np.linalg.LinAlgError:
        return None


def _triangular(rows: Rows | DenseRows, d: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Return indices of spanning rows and Cholesky factor of S Sᵀ; None if S Sᵀ is inaccurate."""
    square, sizes = rows.products()
    n, own, rounding = len(square), square.diagonal().copy(), _EPS * float(sizes.max())
    if sizes.sum() > FAR_MEAN * own.sum():
        return None
    packed, pivots, k, _ = scipy.linalg.lapack.dpstrf(
        square, tol=n * rounding, lower=1, overwrite_a=True
    )
    factor = np.empty((n, k))
    factor[pivots - 1] = np.tril(packed[:, :k])
    left = np.maximum(own - np.einsum("ij,ij->i", factor, factor), 0.0).sum()
    rest = (n + np.sqrt(d)) * rounding
    return (pivots[:k] - 1, factor) if left <= rest else None  # small rows are not rounding
