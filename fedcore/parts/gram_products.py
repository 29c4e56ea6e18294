"""Products ``SᵢᵀSᵢ Z``, computed from the data Sᵢ or from a Gram matrix, whichever is cheaper.

A Gram matrix squares the condition number. Products with a Gram matrix are accurate to ``eps
‖S‖²``, while products with the data S are accurate to ``eps ‖S‖ ‖S Z‖``. A Gram matrix suffices for
computing the dominant eigenspace. A method that needs directions of small singular values should
multiply by Sᵢ and Sᵢᵀ instead.

For Z with 10 to 50 columns and a symmetric matrix M, BLAS computes ``(Zᵀ M)ᵀ`` 1.3 to 1.7 times as
fast as M Z. The module therefore returns products in column-major order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from fedcore.federation import lockstep
from fedcore.federation.execution import of_runs, stacked, summed
from fedcore.federation.lockstep import SMALL_PRODUCT, WIDTH
from fedcore.federation.state import StackedState
from fedcore.linalg import gram_matrix
from fedcore.privacy.bounded_rows import row_blocks
from fedcore.rowspace import Block, Rows
from fedcore.sparse import SparseRows

Multiply = Callable[[Any, np.ndarray], np.ndarray]

FILLED = 1.3  # a block whose last tile would make it larger by more than this is not narrowed
GATHERED = 1 << 20  # numbers of clients' matrices that are copied at a time


def _by_gram(clients: Sequence[np.ndarray], state: Any, Z: Any) -> Any:
    """Return ``(Σ SᵢᵀSᵢ) Z`` over all clients, or None if each client should multiply by its data.

    If Z is a `Block` of `fedcore.rowspace` (a matrix stored by few coordinates), the product is
    also a `Block`. Until a Gram matrix pays off (see `gram_pays_off`), the rows of several sparse
    clients are stacked and multiplied as one matrix, a `fedcore.rowspace.Rows`.

    The Gram matrix is ``clients.gram``, if this attribute exists. Otherwise the function computes
    the matrix when it pays off, and stores it in ``state.kept``, where later runs on the same data
    find it. But a run uses a stored matrix only after it has itself multiplied so many vectors that
    computing the matrix would pay off. A matrix that an earlier run has stored therefore changes no
    result.
    """
    if isinstance(Z, Block):
        return Z.gram_product()
    columns, _ = _counted(state, Z.shape[-1])
    gram = getattr(clients, "gram", None)
    if gram is None:
        n_features = Z.shape[-2]
        if not gram_pays_off(*_work(clients, n_features), n_features, columns):
            if len(clients) == 1 or not isinstance(clients[0], SparseRows):
                return None
            if not hasattr(state.kept, "rows"):
                state.kept.rows = Rows(clients)
            return _columns(_by_rows, state.kept.rows, _slots(state), Z)
        if not hasattr(state.kept, "gram"):
            state.kept.gram = gram_matrix(clients, np.result_type(*clients, Z))
        gram = state.kept.gram
    return _columns(_by_matrix, gram, _slots(state), Z)


@of_runs
@summed(_by_gram)
def gram_product(data: np.ndarray, state: Any, Z: np.ndarray) -> np.ndarray:
    """Client step: return ``Sᵢᵀ(Sᵢ Z)``, a reply for `Federation.sum` or `Federation.mean`.

    The sum over all clients needs only the d × d Gram matrix ``Σ SᵢᵀSᵢ``. Unless this matrix
    already exists, it is computed as soon as `gram_pays_off` says that it lowers the cost.

    Parameters
    ----------
    data : ndarray of shape (n_i, d)
        The client's rows.
    state : object
        The client's state, which keeps a computed Gram matrix.
    Z : ndarray of shape (d, r)

    Returns
    -------
    ndarray of shape (d, r)
    """
    return _columns(multiply_by_data, data, _slots(state), Z)


@of_runs
@stacked
def local_gram_product(data: np.ndarray, state: Any, Z: np.ndarray) -> np.ndarray:
    """Client step: return ``SᵢᵀSᵢ Z``, for local iterations and replies that are not added up.

    The client computes and keeps its own Gram matrix as soon as `gram_pays_off` says that the
    matrix lowers the cost. Such a Gram matrix has at most twice as many entries as the data.

    Parameters
    ----------
    data, state, Z
        See `gram_product`.

    Returns
    -------
    ndarray of shape (d, r)
    """
    products = local_products(data, state, Z.dtype, Z.shape[-1])
    return products.times(Z.swapaxes(-1, -2)).swapaxes(-1, -2)


@dataclass(frozen=True)
class LocalProducts:
    """Products with SᵢᵀSᵢ of one client, also in several runs, or of each of several clients.

    Attributes
    ----------
    by : callable
        Function ``by(matrix, rows)`` that returns ``rows SᵢᵀSᵢ``.
    matrix : ndarray or SparseRows
        Samples or Gram matrix of the client, or a stack of those of several clients.
    slots : list of int or None
        Places of the runs in their block (see `fedcore.federation.lockstep`), if they are stacked.
    clients : ndarray of int, optional
        Positions in the stack of the clients that take part, by default all.
    """

    by: Multiply
    matrix: Any
    slots: list[int] | None
    clients: np.ndarray | None = None

    def times(self, rows: np.ndarray) -> np.ndarray:
        """Return ``rows SᵢᵀSᵢ``, where rows have shape (…, p, d)."""
        if self.clients is None:
            return _multiplied(self.by, self.matrix, self.slots, rows)
        some = max(1, GATHERED // self.matrix[0].size)
        parts = [slice(first, first + some) for first in range(0, len(rows), some)]
        return np.concatenate([
            self.by(self.matrix[self.clients[part]], rows[part]) for part in parts
        ])  # fmt: skip

    def of(self, chosen: np.ndarray) -> LocalProducts:
        """Return the products of the runs, or the clients, for which `chosen` is true."""
        if self.slots is not None:
            return replace(self, slots=list(compress(self.slots, chosen)))
        now = np.arange(len(self.matrix)) if self.clients is None else self.clients
        return replace(self, clients=now[chosen])


def local_products(data: np.ndarray, state: Any, dtype: np.dtype, columns: int) -> LocalProducts:
    """Return the products with SᵢᵀSᵢ for one round.

    Parameters
    ----------
    data : ndarray or SparseRows of shape (n_i, d), or ndarray of shape (clients, n_i, d)
    state : object
        State of one client, stacked states of all clients, or stacked states of one client in
        several runs.
    dtype : numpy.dtype
        Precision of the rows.
    columns : int
        Upper limit on the number of vectors that each run multiplies in this round. This limit
        decides whether a Gram matrix is cheaper than products with the data.
    """
    (_, multiplied), kept, slots = _counted(state, columns), state.kept, _slots(state)
    n_features, each = data.shape[-1], [data]
    if len(data.shape) > 2:
        each = list(data)
    if kept is None or not gram_pays_off(*_work(each[:1], n_features), n_features, multiplied):
        return LocalProducts(multiply_by_data, data, slots)
    if not hasattr(kept, "own_gram"):
        dtype = np.result_type(data.dtype, dtype)
        made = np.array([gram_matrix([one], dtype) for one in each])
        kept.own_gram = made.reshape(*data.shape[:-2], n_features, n_features)
    return LocalProducts(_by_matrix, kept.own_gram, slots)


def _columns(by: Multiply, matrix: Any, slots: list[int] | None, Z: np.ndarray) -> np.ndarray:
    return _multiplied(by, matrix, slots, Z.swapaxes(-1, -2)).swapaxes(-1, -2)


def _multiplied(by: Multiply, matrix: Any, slots: list[int] | None, rows: np.ndarray) -> np.ndarray:
    """Return ``by(matrix, rows)``; the rows of several runs become one array.

    The reply for a run has the same bits beside any other runs. To this end the array has a row for
    every slot of a block of runs, with zeros for runs that are not there. If BLAS computes each row
    of a tile alike, the array has only as many tiles as these runs fill.
    """
    if slots is None:
        return by(matrix, rows)
    p, n_features = rows.shape[1:]
    tile, height = _tile(matrix, rows.dtype, WIDTH * p), WIDTH * p
    used: Any = slice(len(rows) * p)
    if tile is not None:
        height = _tiled(len(rows) * p, tile)
    else:
        used = (np.array(slots)[:, None] * p + np.arange(p)).ravel()
    block = np.zeros((height, n_features), rows.dtype)
    block[used] = rows.reshape(-1, n_features)
    return by(matrix, block)[used].reshape(rows.shape)


def _tile(matrix: Any, dtype: np.dtype, most: int) -> int | None:
    """Return the tile of products with a matrix, or None if they have all rows of a block."""
    tile = lockstep.tile()
    if tile is None or not isinstance(matrix, np.ndarray):
        return None
    double, large = matrix.dtype == dtype == np.float64, tile * matrix.size > SMALL_PRODUCT
    return tile if double and large and _tiled(most, tile) <= FILLED * most else None


def _tiled(rows: int, tile: int) -> int:
    return -(-rows // tile) * tile


def _by_matrix(gram: np.ndarray, rows: np.ndarray) -> np.ndarray:
    return rows @ gram


def _by_rows(all_rows: Rows, rows: np.ndarray) -> np.ndarray:
    return all_rows.gram_times(rows.T).T


def multiply_by_data(data: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return ``rows SᵀS`` for one client's samples S, by two products with the samples."""
    if isinstance(data, SparseRows):
        return (data.T @ (data @ rows.T)).T
    return (rows @ np.swapaxes(data, -1, -2)) @ data


def _slots(state: Any) -> list[int] | None:
    """Return the places of stacked runs in their block; None if no runs are stacked."""
    return state.slots if isinstance(state, StackedState) else None


def _counted(state: Any, columns: int) -> tuple[int, int]:
    """Count the multiplied vectors of one or several runs; return the counts before and after."""
    before = getattr(state, "columns_seen", 0)
    if isinstance(state, StackedState):
        before = np.max(before)  # equally many in all runs
    before = int(before)
    width = 1 if _slots(state) is None else WIDTH
    now = before + width * columns
    state.columns_seen = now
    return before, now


def local_gram(data: np.ndarray, state: Any) -> np.ndarray:
    """Return the client's (d, d) Gram matrix SᵢᵀSᵢ in double precision.

    The matrix is computed once and kept with the data. Private releases use this matrix, because
    their sensitivity holds only for sums in double precision (see `fedcore.privacy.bounded_rows`).
    """
    if not hasattr(state.kept, "double_gram"):
        state.kept.double_gram = gram_matrix(row_blocks(data), np.dtype(np.float64))
    return state.kept.double_gram


def local_gram_product_in_double(data: np.ndarray, state: Any, Z: np.ndarray) -> np.ndarray:
    """Client step: return ``SᵢᵀSᵢ Z`` in double precision, for replies to which noise is added.

    Parameters
    ----------
    data, state, Z
        See `gram_product`.

    Returns
    -------
    ndarray of shape (d, r)
    """
    if data.dtype == np.float64:
        return local_gram_product(data, state, Z)
    return (Z.T.astype(np.float64) @ local_gram(data, state)).T


def gram_pays_off(entries: int, making: int, n_features: int, columns: int) -> bool:
    """Return whether a Gram matrix should be computed after products with `columns` vectors.

    For each vector, a product with the data costs 4 operations per entry of the data, and a product
    with the Gram matrix costs 2 d² operations. For dense samples of shape (n, d), which have n d
    entries, computing the matrix costs n d² operations. For n ≤ d/2 the matrix never pays off. For
    n > d/2 it pays off after ``n d / (4 n − 2 d)`` vectors. A run that computes the matrix at that
    moment has a total cost of at most twice the cost of the best choice in hindsight. For sparse
    samples, only stored entries count. The matrix never pays off if d² exceeds twice the number of
    entries. A computed matrix therefore never takes much more memory than the samples.

    Parameters
    ----------
    entries : int
        Number of entries that a product with the data reads.
    making : int
        Number of operations for computing the Gram matrix.
    n_features : int
    columns : int
        Number of vectors multiplied so far.
    """
    return columns * (4 * entries - 2 * n_features**2) >= making


def _work(clients: Sequence[Any], n_features: int) -> tuple[int, int]:
    """Return the number of entries of the clients' data, and of operations for a Gram matrix."""
    if isinstance(clients[0], SparseRows):
        stored = sum(client.stored for client in clients)
        return stored, sum(client.work_of_gram for client in clients)
    entries = sum(map(len, clients)) * n_features
    return entries, entries * n_features
