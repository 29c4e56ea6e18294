"""Sparse client matrices in CSR format, with the operations that need no dense copy.

If a client's matrix is sparse, the functions that run at the client get a `SparseRows` in place of
an array. These functions may multiply by the matrix and by its transpose, and may read its shape
and norms. All other operations of NumPy raise an error, so no function makes a dense copy by
accident. Centring subtracts the same vector from all rows, which adds a correction of rank one to
every product.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NoReturn

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from fedcore.errors import InputError
from fedcore.words import feature, row

SMALL_SIDE = 64  # of the shorter side of a matrix whose norm is computed densely


def refuse(what: str) -> NoReturn:
    """Raise an `InputError` for an operation that would need a dense matrix."""
    raise InputError(
        f"{what} needs dense samples, but these clients are sparse: call .toarray() on every "
        "client's matrix, or take a method that only multiplies by the samples (block_krylov)"
    )


class SparseRows(np.lib.mixins.NDArrayOperatorsMixin):
    """Matrix ``S − 1 μᵀ``, with a CSR matrix S and a subtracted mean μ (zero without centring).

    Parameters
    ----------
    matrix : scipy.sparse.csr_array of shape (n, d)
        The matrix S in float32 or float64, with sorted, unique indices. S is not copied.
    mean : ndarray of shape (d,), optional
        The mean μ in double precision.
    """

    ndim = 2

    def __init__(self, matrix: scipy.sparse.csr_array, mean: np.ndarray | None = None) -> None:
        self.matrix, self.mean = matrix, mean
        self.shape: tuple[int, int] = matrix.shape
        self.dtype: np.dtype = matrix.dtype

    def __repr__(self) -> str:
        """Return the shape and the number of stored entries as text."""
        centred = "" if self.mean is None else ", centred"
        return f"SparseRows({self.shape[0]} × {self.shape[1]}, {self.stored} stored{centred})"

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> SparseRows:
        """Return the rows that a slice selects."""
        if not isinstance(rows, slice):
            refuse("reading single rows or entries")
        return SparseRows(self.matrix[rows], self.mean)

    @property
    def T(self) -> _Transposed:
        """Return the transpose, an object that supports only products."""
        return _Transposed(self)

    @property
    def stored(self) -> int:
        """Return the number of stored entries."""
        return int(self.matrix.nnz)

    @property
    def nbytes(self) -> int:
        """Return the size in bytes of the stored entries, their indices and the mean."""
        return sum(part.nbytes for part in self.parts)

    @property
    def parts(self) -> tuple[np.ndarray, ...]:
        """Return the arrays indptr, indices and data and, if the matrix is centred, the mean."""
        found = self.matrix.indptr, self.matrix.indices, self.matrix.data
        return found if self.mean is None else (*found, self.mean)

    def astype(self, dtype: Any, copy: bool = True) -> SparseRows:
        """Return the matrix in another precision.

        Parameters
        ----------
        dtype : data-type
            Precision of the result.
        copy : bool, default=True
            Whether to copy the stored entries even if they have this precision already.
        """
        return SparseRows(self.matrix.astype(dtype, copy=copy), self.mean)

    def centred(self, mean: np.ndarray) -> SparseRows:
        """Return the rows minus `mean`.

        If more than half of a column's entries are stored, the column's mean is subtracted from all
        its entries. Without this subtraction, products would lose digits if the column's mean is
        far larger than its standard deviation. A column with fewer stored entries stays unchanged;
        its mean is then subtracted in every product. If no column changes, the result and this
        matrix share the stored entries.

        Parameters
        ----------
        mean : ndarray of shape (d,)
            Vector in double precision that is subtracted from every row.
        """
        matrix, left = self.matrix, mean if self.mean is None else self.mean + mean
        filled = 2 * np.bincount(matrix.indices, minlength=self.shape[1]) > len(self)
        at = np.flatnonzero(filled & (left != 0.0))
        if len(at):
            entries = np.tile(left[at], len(self)), np.tile(at, len(self))
            ends = len(at) * np.arange(len(self) + 1)
            moved = scipy.sparse.csr_array((*entries, ends), shape=self.shape)
            matrix = (matrix - moved).astype(self.dtype)
            left = np.where(filled, 0.0, left)
        return SparseRows(matrix, left)

    def whole_columns(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the indices and the values of the columns in which every row stores an entry."""
        whole = np.bincount(self.matrix.indices, minlength=self.shape[1]) == len(self)
        entries = self.matrix.data[whole[self.matrix.indices]]
        less = 0.0 if self.mean is None else self.mean[whole]
        return np.flatnonzero(whole), entries.reshape(len(self), -1) - less

    def sum(self) -> np.ndarray:
        """Return the sum of all rows in double precision, shape (d,)."""
        values, others, missing = self._groups()
        return np.bincount(self.matrix.indices, values, self.shape[1]) + missing * others

    def times(self, block: np.ndarray) -> np.ndarray:
        """Return the product of this matrix and `block`, shape (n,) or (n, k).

        Parameters
        ----------
        block : ndarray of shape (d,) or (d, k)
            Vector or matrix on the right of the product.
        """
        found = self.matrix @ block
        return found if self.mean is None else found - (self.mean @ block).astype(found.dtype)

    def transposed_times(self, block: np.ndarray) -> np.ndarray:
        """Return the product of the transpose and `block`, shape (d,) or (d, k).

        Parameters
        ----------
        block : ndarray of shape (n,) or (n, k)
            Vector or matrix on the right of the product.
        """
        found = self._columns @ block
        if self.mean is None:
            return found
        sums = block.sum(axis=0, dtype=np.float64)
        return found - np.multiply.outer(self.mean, sums).astype(found.dtype)

    @cached_property
    def _columns(self) -> scipy.sparse.csc_array:
        return self.matrix.T  # shares the arrays

    def gram(self, dtype: Any = None) -> np.ndarray:
        """Return the (d, d) Gram matrix of the rows, computed by a sparse product.

        Parameters
        ----------
        dtype : data-type, optional
            Precision of the computation, by default the precision of the matrix.
        """
        matrix = self.matrix if dtype is None else self.matrix.astype(dtype, copy=False)
        found = (matrix.T @ matrix).toarray()
        if self.mean is not None:
            cross = np.multiply.outer(self.mean, np.asarray(matrix.sum(axis=0, dtype=np.float64)))
            square = len(self) * np.multiply.outer(self.mean, self.mean)
            found = (found - cross - cross.T + square).astype(found.dtype)
        return found

    @property
    def work_of_gram(self) -> int:
        """Return the number of multiplications in the sparse product of `gram`."""
        return int((np.diff(self.matrix.indptr).astype(np.int64) ** 2).sum())

    def toarray(self) -> np.ndarray:
        """Return the matrix as a dense array."""
        dense = self.matrix.toarray()
        return dense if self.mean is None else (dense - self.mean).astype(self.dtype)

    def blocks(self, rows: int) -> Iterator[np.ndarray]:
        """Yield dense blocks of at most `rows` rows, in double precision.

        Parameters
        ----------
        rows : int
            Number of rows of every block but the last, which may have fewer.
        """
        for first in range(0, len(self), rows):
            dense = self.matrix[first : first + rows].toarray().astype(np.float64, copy=False)
            yield dense if self.mean is None else dense - self.mean

    def _groups(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return centred stored values, and the centred value and number of each column's zeros."""
        values = self.matrix.data
        missing = len(self) - np.bincount(self.matrix.indices, minlength=self.shape[1])
        if self.mean is None:
            return values, np.zeros(self.shape[1]), missing
        return values - self.mean[self.matrix.indices], -self.mean, missing

    def any(self) -> bool:
        """Return True if some entry is not zero."""
        values, others = self._entries()
        return bool(values.any() or others.any())

    def max(self) -> float:
        """Return the largest entry of the matrix."""
        values, others = self._entries()
        return float(max(values.max(initial=-np.inf), others.max(initial=-np.inf)))

    def min(self) -> float:
        """Return the smallest entry of the matrix."""
        values, others = self._entries()
        return float(min(values.min(initial=np.inf), others.min(initial=np.inf)))

    def _entries(self) -> tuple[np.ndarray, np.ndarray]:
        """Return two arrays that together contain every value of the matrix at least once."""
        values, others, missing = self._groups()
        return values, others[missing > 0]

    def squares_of_columns(self) -> np.ndarray:
        """Return each column's sum of squares in double precision, shape (d,)."""
        values, others, missing = self._groups()
        squares = np.square(values, dtype=np.float64)
        return np.bincount(self.matrix.indices, squares, self.shape[1]) + missing * others**2

    def over(self, scales: np.ndarray) -> SparseRows:
        """Return the matrix with column j divided by ``scales[j]``, in the same precision.

        Parameters
        ----------
        scales : ndarray of shape (d,)
            Divisors of the columns.
        """
        values = (self.matrix.data / scales[self.matrix.indices]).astype(self.dtype)
        parts = values, self.matrix.indices, self.matrix.indptr
        mean = None if self.mean is None else self.mean / scales
        return SparseRows(scipy.sparse.csr_array(parts, shape=self.shape), mean)

    def squares(self) -> float:
        """Return the sum of the squares of all entries in double precision."""
        values, others, missing = self._groups()
        return float(np.einsum("i,i->", values, values, dtype=np.float64) + missing @ others**2)

    def row_norms(self) -> np.ndarray:
        """Return the Euclidean norms of the rows in double precision, shape (n,)."""
        if self.mean is not None:
            refuse("the norm of a centred row")
        with np.errstate(over="ignore"):
            squares = self.matrix.astype(np.float64).power(2).sum(axis=1)
            return np.sqrt(np.asarray(squares))

    def largest_of_rows(self) -> np.ndarray:
        """Return the largest absolute value in every row before centring, shape (n,)."""
        return abs(self.matrix).max(axis=1).toarray().ravel()

    def scaled_rows(self, factors: np.ndarray) -> SparseRows:
        """Return the matrix with row i multiplied by ``factors[i]``, in the same precision.

        Parameters
        ----------
        factors : ndarray of shape (n,)
            Factors of the rows.
        """
        if self.mean is not None:
            refuse("scaling centred rows")
        every = np.repeat(factors, np.diff(self.matrix.indptr))
        changed = (self.matrix.data * every).astype(self.dtype)
        parts = changed, self.matrix.indices, self.matrix.indptr
        return SparseRows(scipy.sparse.csr_array(parts, shape=self.shape))

    def spectral_norm(self) -> float:
        """Return the spectral norm, by a dense computation if a side is small, else by Lanczos."""
        largest = max(self.max(), -self.min())
        if not largest:
            return 0.0
        exponent = int(np.frexp(largest)[1])  # entries of order one: no square leaves the range
        matrix = self.matrix.astype(np.float64)
        matrix.data = np.ldexp(matrix.data, -exponent)
        scaled = SparseRows(matrix, None if self.mean is None else np.ldexp(self.mean, -exponent))
        if len(self) <= SMALL_SIDE:
            return float(np.ldexp(np.linalg.norm(next(scaled.blocks(SMALL_SIDE)), 2), exponent))
        if self.shape[1] <= SMALL_SIDE:
            return float(np.ldexp(np.sqrt(np.linalg.norm(scaled.gram(), 2)), exponent))
        start = np.random.default_rng(0).standard_normal(min(self.shape))
        values = scipy.sparse.linalg.svds(
            scaled.operator(), k=1, v0=start, return_singular_vectors=False
        )
        return float(np.ldexp(values[0], exponent))

    def operator(self) -> scipy.sparse.linalg.LinearOperator:
        """Return the matrix as a SciPy linear operator."""
        return scipy.sparse.linalg.LinearOperator(
            self.shape, dtype=self.dtype, matvec=self.times, rmatvec=self.transposed_times,
            matmat=self.times, rmatmat=self.transposed_times,
        )  # fmt: skip

    def __array__(self, dtype: Any = None, copy: Any = None) -> NoReturn:
        refuse("this step or measure")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        """Compute ``np.matmul``; raise an `InputError` for every other NumPy ufunc."""
        first, second = inputs if len(inputs) == 2 else (inputs[0], None)
        other: Any = second if first is self else first
        plain = method == "__call__" and not options and isinstance(other, np.ndarray)
        if ufunc is not np.matmul or not plain:
            refuse(f"np.{ufunc.__name__}")
        return self.times(other) if first is self else self.transposed_times(other.T).T

    def __array_function__(
        self, function: Callable[..., Any], types: Any, args: Sequence[Any], options: dict[str, Any]
    ) -> Any:
        """Compute NumPy's norm, result type or shape; refuse every other NumPy function."""
        if function not in FUNCTIONS:
            refuse(f"np.{function.__name__}")
        return FUNCTIONS[function](*args, **options)


class _Transposed:
    """Transpose of a `SparseRows`, which can only be multiplied."""

    __array_ufunc__ = None  # an array times this asks __rmatmul__

    def __init__(self, rows: SparseRows) -> None:
        self.T = rows
        self.shape, self.dtype = rows.shape[::-1], rows.dtype

    def __matmul__(self, block: Any) -> np.ndarray:
        return self.T.gram() if block is self.T else self.T.transposed_times(block)

    def __rmatmul__(self, block: np.ndarray) -> np.ndarray:
        return self.T.times(block.T).T


def _norm(rows: SparseRows, ord: Any = None, **options: Any) -> float:
    """Return the Frobenius norm or, with ``ord=2``, the spectral norm."""
    if options or ord not in (None, "fro", 2):
        refuse(f"np.linalg.norm with {options or ord}")
    return rows.spectral_norm() if ord == 2 else float(np.sqrt(rows.squares()))


def _result_type(*parts: Any) -> np.dtype:
    return np.result_type(*(p.dtype if isinstance(p, SparseRows) else p for p in parts))


FUNCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    np.linalg.norm: _norm,
    np.result_type: _result_type,
    np.shape: lambda rows: rows.shape,
}


def checked(matrix: Any, who: str) -> SparseRows:
    """Check one client's sparse matrix, in any of SciPy's formats.

    Parameters
    ----------
    matrix : sparse array or matrix of scipy.sparse, or SparseRows
    who : str
        Name of the matrix in error messages.

    Returns
    -------
    SparseRows
        The matrix in float64 (float32 stays float32), with sorted, unique indices. `matrix` is not
        changed. The result and `matrix` share those arrays that need no change.

    Raises
    ------
    InputError
        Raised if the matrix is no SciPy sparse matrix, is not two-dimensional, is empty, is not
        numeric, or has invalid indices. Raised if an entry is not a finite number.
    """
    if isinstance(matrix, SparseRows):
        return matrix
    if not scipy.sparse.issparse(matrix):
        raise InputError(
            f"{who} is sparse, but not of scipy.sparse: call .toarray() on it, or make it "
            "a csr_array"
        )
    if matrix.ndim != 2:
        raise InputError(f"{who}: expected a 2-D (samples, features) matrix, got {matrix.ndim}-D")
    if 0 in matrix.shape:
        raise InputError(f"{who} is empty (shape {matrix.shape}): drop it or give it data")
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"{who} has dtype {matrix.dtype}: give real numbers")
    if hasattr(matrix, "check_format"):
        try:  # sparse products do not check indices: wrong ones would read foreign memory
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise InputError(f"{who} is not a valid sparse matrix: {error}") from error
    rows = scipy.sparse.csr_array(matrix)  # another object around the same arrays
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    if rows.dtype != np.float32:
        rows = rows.astype(np.float64, copy=False)
    if not np.isfinite(rows.data).all():
        at = int(np.argmin(np.isfinite(rows.data)))
        place = int(np.searchsorted(rows.indptr, at, side="right")) - 1
        column = feature(int(rows.indices[at]))
        wrong = str(rows.data[at]).replace("nan", "NaN")
        raise InputError(
            f"{who} has {wrong} at row {row(who, place)}, {column}: drop this row or replace the "
            "value"
        )
    return SparseRows(rows)
