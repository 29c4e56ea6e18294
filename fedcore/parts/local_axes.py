"""A client's own axes, for methods that multiply ``G = SᵢᵀSᵢ`` many times between two messages.

Let ``G = Q Λ Qᵀ``, Q of shape (n, r) with orthonormal columns, r ≤ n. A block that a client turns
by ``G + (low rank)`` stays in the span of Q and of the blocks that it began with. Let C be an
orthonormal basis of what these have outside range(Q). In coordinates along [Q C], G multiplies row
j by λⱼ: a product costs n p operations in place of n² p. The coordinates keep inner products, so
that norms, angles, QR factorisations and residuals are the same.

What remains of a round are three products with Q: two that split the message, of which the second
is needed for r < n only, and one that forms the reply. The decomposition costs as much as some
thousands of products with single vectors, and is made when it pays (`axes_pay_off`). Its
eigenvalues are exact to ``eps ‖Sᵢ‖²``, as are products by the Gram matrix.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.linalg

from fedcore.federation import lockstep
from fedcore.linalg import gram_matrix, qr_householder
from fedcore.parts.gram_products import local_gram_product
from fedcore.sparse import SparseRows

# Operations of a product n × n × p below which most of its time is that of a call, which axes need
# as well.
CALL = 50_000


class LocalAxes(NamedTuple):
    """Eigenvectors Q of ``G = SᵢᵀSᵢ``, shape (n, r), and its eigenvalues, shape (r,)."""

    basis: np.ndarray
    squares: np.ndarray


class Split(NamedTuple):
    """A block of columns, ``Q inside + outside`` with ``Qᵀ outside = 0``."""

    inside: np.ndarray  # (r, p)
    outside: np.ndarray  # (n, p); (n, 0) for r = n, where nothing is outside


class Coordinates(Protocol):
    """Coordinates of one round: of the block X that the client kept, and of the message Z.

    Attributes
    ----------
    X, Z : ndarray of shape (coordinates, p)
    """

    X: np.ndarray
    Z: np.ndarray

    def multiply(self, X: np.ndarray) -> np.ndarray:
        """Return ``G X`` for a block in these coordinates."""
        ...

    def kept(self, X: np.ndarray) -> Any:
        """Return a block in these coordinates as the client keeps it until the next round."""
        ...

    def features(self, X: np.ndarray) -> np.ndarray:
        """Return a block in these coordinates as one of features, shape (n, p)."""
        ...


def coordinates(
    data: np.ndarray, state: Any, X: np.ndarray | Split, Z: np.ndarray, columns: int
) -> Coordinates:
    """Return the coordinates of a round: axes once they pay, until then the features.

    Sparse clients have no axes, which would be dense.

    Parameters
    ----------
    data : ndarray or SparseRows of shape (n_i, n)
    state : object
        The client's state, with ``state.kept``.
    X : ndarray of shape (n, p) or Split
        What ``kept`` returned in the round before.
    Z : ndarray of shape (n, p)
        The message.
    columns : int
        Vectors that this run has multiplied so far, and need not have with axes. Whether an earlier
        run has made the axes changes no result.
    """
    may = not isinstance(data, SparseRows) and len(Z) * Z.size >= CALL
    if isinstance(X, Split) or (may and axes_pay_off(len(data), len(Z), columns)):
        return _Along(local_axes(data, state, np.result_type(data, Z)), id(state.kept), X, Z)
    return _Features(data, state, X, Z)


def as_features(X: np.ndarray | Split, state: Any) -> np.ndarray:
    """Return what ``kept`` returned as a block of features, shape (n, p)."""
    return state.kept.axes.basis @ X.inside + X.outside if isinstance(X, Split) else X


class _Features:
    """The features themselves as coordinates."""

    def __init__(self, data: np.ndarray, state: Any, X: np.ndarray, Z: np.ndarray) -> None:
        self._data, self._state, self.X, self.Z = data, state, X, Z

    def multiply(self, X: np.ndarray) -> np.ndarray:
        return local_gram_product(self._data, self._state, X)

    def kept(self, X: np.ndarray) -> np.ndarray:
        return X

    features = kept


class _Along:
    """Coordinates along Q and an orthonormal C of c ≤ 2 p columns; none for r = n."""

    def __init__(self, axes: LocalAxes, key: Any, X: np.ndarray | Split, Z: np.ndarray) -> None:
        self._axes, self._key = axes, key
        (n, r), p = axes.basis.shape, Z.shape[1]
        x, z = X if isinstance(X, Split) else self._split(X), self._split(Z)
        self._beyond, rest = np.zeros((n, 0), Z.dtype), np.zeros((0, 2 * p), Z.dtype)
        if r < n:
            self._beyond, rest = qr_householder(np.hstack([x.outside, z.outside]))
        self.X = np.vstack([x.inside, rest[:, :p]])
        self.Z = np.vstack([z.inside, rest[:, p:]])
        self._scale = np.append(axes.squares, np.zeros(len(rest), Z.dtype))[:, None]

    def multiply(self, X: np.ndarray) -> np.ndarray:
        return self._scale * X

    def kept(self, X: np.ndarray) -> Split:
        r = len(self._axes.squares)
        return Split(X[:r], self._beyond @ X[r:])

    def features(self, X: np.ndarray) -> np.ndarray:
        part = self.kept(X)
        return self._turned_back(part.inside) + part.outside

    def _split(self, X: np.ndarray) -> Split:
        Q = self._axes.basis
        inside = lockstep.product((self._key, "into axes"), Q.T.__matmul__, X)
        whole = Q.shape[0] == Q.shape[1]
        return Split(inside, X[:, :0] if whole else X - self._turned_back(inside))

    def _turned_back(self, inside: np.ndarray) -> np.ndarray:
        key = self._key, "out of axes"
        return lockstep.product(key, self._axes.basis.__matmul__, inside)


def axes_pay_off(n_samples: int, n_features: int, columns: int) -> bool:
    """Whether, after products with `columns` vectors that axes would have saved, to make them.

    The eigenvectors of r × r numbers, r the smaller size, take about 9 r³ operations, and 6 n r²
    more for r < n. A product takes 4 n n_i operations a vector, or 2 n² by the Gram matrix. As with
    `gram_pays_off`, deciding at that moment costs at most twice what hindsight would.
    """
    n, r = n_features, min(n_samples, n_features)
    once = 9 * r**3 + (6 * n * r**2 if r < n else 0)
    return columns * min(2 * n**2, 4 * n * n_samples) >= once


def local_axes(data: np.ndarray, state: Any, dtype: np.dtype) -> LocalAxes:
    """Return the client's axes; they are made once and kept with the data.

    Parameters
    ----------
    data : ndarray of shape (n_i, n)
    state : object
        The client's state, with ``state.kept``.
    dtype : numpy.dtype
        Precision of the products.
    """
    if not hasattr(state.kept, "axes"):
        state.kept.axes = _axes(data, state, dtype)
    return state.kept.axes


def _axes(data: np.ndarray, state: Any, dtype: np.dtype) -> LocalAxes:
    m, n = data.shape
    if m >= n:
        gram = getattr(state.kept, "gram", None)
        squares, basis = scipy.linalg.eigh(
            gram_matrix([data], dtype) if gram is None else gram, check_finite=False
        )
        return LocalAxes(basis, np.maximum(squares, 0))
    # QR of Sᵢᵀ first: Q is then orthonormal along small singular values, too.
    basis, factor = qr_householder(data.T.astype(dtype))
    squares, rotation = scipy.linalg.eigh(factor @ factor.T, check_finite=False)
    return LocalAxes(basis @ rotation, np.maximum(squares, 0))
