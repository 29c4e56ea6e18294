"""The clients' matrices, in memory or in a file that is read on first use."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple, overload

import numpy as np

from fedcore import sparse, words
from fedcore.errors import Advice, InputError
from fedcore.sparse import SparseRows
from fedcore.user_tables import frames
from fedcore.user_tables.labelled import (
    as_array,
    column_names,
    column_order,
    numbers,
    one_per_client,
    per_client,
    per_row,
    row_labels,
)
from fedcore.words import counted

Matrices = Sequence[Any] | np.ndarray  # one ndarray or SparseRows per client
FLOATS = np.dtype(np.float32), np.dtype(np.float64)


class Labelled(NamedTuple):
    """Samples and their labels, of one client or, with a leading axis, of several of equal size."""

    X: np.ndarray  # (m, d), or (clients, m, d)
    y: np.ndarray  # (m,), or (clients, m)


@dataclass(frozen=True)
class Reduction:
    """Facts about rows Sᵢ of which only a factor Rᵢ with ``RᵢᵀRᵢ = SᵢᵀSᵢ`` is kept.

    Results that depend on the Gram matrices alone agree for Rᵢ and Sᵢ, up to rounding.

    Attributes
    ----------
    samples : tuple of int
        Number of rows of every Sᵢ.
    largest_row : float
        Largest Euclidean norm of a row of any Sᵢ.
    """

    samples: tuple[int, ...]
    largest_row: float


class Clients(Sequence[Any]):
    """Client matrices, with their shapes and precisions known before they are read.

    Parameters
    ----------
    matrices : sequence of ndarray or SparseRows of shape (n_i, d), or callable
        The matrices, or a function that returns them, called at most once, on the first access to
        a matrix. Clients of equal size may be one array of shape (n_clients, m, d).
    shapes, dtypes : sequence of (int, int), sequence of numpy.dtype, optional
        Shapes and precisions of the matrices, required with a function. A sequence that comes with
        them, such as `fedcore.files.lazy.LazyMatrices`, is read matrix by matrix when used.
    gram : ndarray of shape (d, d), optional
        ``Σ SᵢᵀSᵢ``. With it, methods that need only sums of products do not read the matrices.
    labels : sequence of ndarray of shape (n_i,), optional
        One label per sample.
    reduction : Reduction, optional
        Facts about the rows, if the matrices are factors of them.

    Attributes
    ----------
    shapes : list of (int, int)
    dtypes : list of numpy.dtype
    sparse : bool
        Whether the matrices are `SparseRows`.
    gram : ndarray or None
    kept, kept_of : SimpleNamespace, list of SimpleNamespace
        Results that steps derive from all data, and from those of each client, for later runs.
        They must depend on the data alone.
    reduction : Reduction or None
    labels : sequence of ndarray or None
    """

    def __init__(
        self,
        matrices: Matrices | Callable[[], Matrices],
        shapes: Sequence[tuple[int, int]] | None = None,
        dtypes: Sequence[np.dtype] | None = None,
        gram: np.ndarray | None = None,
        labels: Matrices | None = None,
        reduction: Reduction | None = None,
    ) -> None:
        self._read = matrices if callable(matrices) else None
        self._stack: np.ndarray | None = matrices if isinstance(matrices, np.ndarray) else None
        here = shapes is None  # else nothing is read here
        self._matrices = [] if callable(matrices) else list(matrices) if here else matrices
        self.shapes = [m.shape for m in self._matrices] if shapes is None else list(shapes)
        self.dtypes = [m.dtype for m in self._matrices] if dtypes is None else list(dtypes)
        self.sparse = here and len(self) > 0 and isinstance(self._matrices[0], SparseRows)
        self.gram = gram
        self.kept = SimpleNamespace()
        self.kept_of = [SimpleNamespace() for _ in self.shapes]
        self.labels = labels
        self.reduction = reduction

    def __len__(self) -> int:
        return len(self.shapes)

    @overload
    def __getitem__(self, i: int) -> Any: ...
    @overload
    def __getitem__(self, i: slice) -> list[Any]: ...
    def __getitem__(self, i: int | slice) -> Any:
        """Return matrix `i`; the first call reads all matrices that a function returns."""
        if self._read is not None:
            found, self._read = self._read(), None
            self._stack = found if isinstance(found, np.ndarray) else None
            self._matrices = list(found)
        return self._matrices[i]

    def hold(self) -> None:
        """Keep all matrices in memory, where each would be made when it is read."""
        self._matrices = self[:]

    def labelled(self, i: int) -> Labelled:
        """Return the samples of client `i` with their labels."""
        assert self.labels is not None
        return Labelled(self[i], self.labels[i])

    @property
    def uniform(self) -> bool:
        """Whether all matrices have the same shape and precision, and could be one array."""
        return len(set(zip(self.shapes, self.dtypes, strict=True))) == 1 and not self.sparse

    @property
    def stack(self) -> np.ndarray:
        """Return the matrices of `uniform` clients as one array of shape (n_clients, m, d).

        The first access makes it, in as much memory as the matrices take, unless they were given
        as one array, or are one of a file.
        """
        if self._read is not None:
            self[0]  # reads all, maybe as one array
        if self._stack is None:
            self._stack = np.stack(self[:])
        return self._stack

    @property
    def labelled_stack(self) -> Labelled:
        """Return `stack` with the labels, of shape (n_clients, m)."""
        return Labelled(self.stack, self.stacked_labels)

    @property
    def stacked_labels(self) -> np.ndarray:
        """Return the labels of `uniform` clients as one array of shape (n_clients, m)."""
        assert self.labels is not None
        if not isinstance(self.labels, np.ndarray):
            self.labels = np.stack(self.labels)
        return self.labels

    @property
    def n_samples(self) -> int:
        """Samples of all clients."""
        if self.reduction is not None:
            return sum(self.reduction.samples)
        return sum(rows for rows, _ in self.shapes)

    @property
    def n_features(self) -> int:
        """Columns of every matrix."""
        return self.shapes[0][1]

    @property
    def single(self) -> bool:
        """Whether all matrices are float32."""
        return all(dtype == np.float32 for dtype in self.dtypes)

    @cached_property
    def largest(self) -> float:
        """Largest absolute value of an entry; with `gram`, the largest norm of a column of S."""
        if self.gram is not None:
            return float(np.sqrt(np.diagonal(self.gram).max()))
        return max(float(max(matrix.max(), -matrix.min())) for matrix in self)

    @cached_property
    def squares(self) -> float:
        """Sum of the squares of all entries, ‖S‖²_F, in double precision."""
        if self.sparse:
            return sum(matrix.squares() for matrix in self)
        return float(sum(np.einsum("ij,ij->", m, m, dtype=np.float64) for m in self))


def check_clients(
    clients: Sequence[Any] | Mapping[Any, Any], names: Sequence[Any] | None = None
) -> list[Any]:
    """Check client matrices and return them as C-contiguous float arrays, or as sparse rows.

    Parameters
    ----------
    clients : sequence or mapping of array-like of shape (n_i, d)
        Dense matrices, data frames with numeric columns, or sparse matrices of `scipy.sparse` in
        any format.
    names : sequence, optional
        Names of the columns in their order, if not those of the first client.

    Returns
    -------
    list of ndarray, or list of SparseRows, of shape (n_i, d)
        float64 (float32 stays float32), C-contiguous; copied only if necessary. Sparse matrices
        become `fedcore.sparse.SparseRows`. The columns of data frames are matched by their names
        and have the order of the first client's.

    Raises
    ------
    InputError
        When there is no client, or a client is empty, is not a 2-D numeric matrix, has masked
        entries, contains NaN or infinity, or differs from the first client in the number or the
        names of features, or is sparse where the first client is dense, or the reverse.
    """
    clients = client_list(clients)
    if not len(clients):
        raise InputError("there are no clients: a federation needs at least one")
    first = names is None  # else others have been told of these columns
    orders: list[list[int] | None] = []
    if not first or any(column_names(client) is not None for client in clients):
        if first:
            frames.require_same({words.client(i): frame for i, frame in enumerate(clients)})
        names = column_names(clients[0]) if first else names
        for i, client in enumerate(clients):
            order = column_order(column_names(client), names, words.client(i), words.client(0))
            orders.append(order)
    with np.errstate(over="ignore", invalid="ignore"):
        done = [_is_checked(client) for client in clients]
    checked: list[Any] = []
    for i, (client, ready) in enumerate(zip(clients, done, strict=True)):
        order = orders[i] if orders else None
        checked.append(client if ready else check_matrix(client, words.client(i), order))
        _require_same_form(checked)
    if first and names is not None:
        frames.tell(names, checked)
    return checked


def _is_checked(matrix: Any) -> bool:
    """Whether `check_matrix` would return this matrix itself; then nobody need be named."""
    if type(matrix) is not np.ndarray or matrix.ndim != 2 or not matrix.size:
        return False
    fits = matrix.dtype in FLOATS and matrix.flags.c_contiguous
    return bool(fits and np.isfinite(matrix.sum()))  # an overflow of the sum is looked at later


def check_each(clients: Iterable[Any]) -> Iterator[np.ndarray]:
    """Yield dense matrices that come one after the other, checked as `check_clients` does.

    Raises
    ------
    InputError
        As `check_clients`, and for a sparse matrix.
    """
    width = 0
    for i, client in enumerate(clients):
        matrix = check_client(client, i)
        if isinstance(matrix, SparseRows):
            sparse.refuse("a problem file")
        width = width or matrix.shape[1]
        require_width(matrix, i, width)
        yield matrix
    if not width:
        check_clients([])  # says that one is needed


def check_client(client: Any, i: int) -> Any:
    """Check the matrix of client `i` as `check_clients` does, without the others."""
    return check_matrix(client, words.client(i))


def check_like(matrix: Any, who: str, names: Sequence[Any] | None, whose: str) -> Any:
    """Check a matrix whose columns, if they have names, come in the order of `names`.

    Without `names`, the names can only be the numbers of the columns.
    """
    own = column_names(matrix)
    order = None
    if own is not None:
        wanted = range(len(own)) if names is None else names
        if names is None and {*own} != {*wanted}:
            raise InputError(
                f"{who} has column names and {whose} has none, so that nothing matches them: give "
                "an array with the columns in the order of the fit, or fit data frames"
            )
        frames.require_names(matrix, who, wanted, whose)
        order = column_order(own, wanted, who, whose)
    return check_matrix(matrix, who, order)


def check_matrix(matrix: Any, who: str, order: Sequence[int] | None = None) -> Any:
    """Check one matrix as `check_clients` does, with columns in `order`; messages say `who`."""
    _require_present(matrix, who)
    if hasattr(matrix, "toarray") or isinstance(matrix, SparseRows):
        return sparse.checked(matrix, who)
    names = column_names(matrix)
    if names is None:
        data = as_array(matrix, who)
    else:
        data = frames.of_frame(matrix, names, who)
    if data.ndim != 2:
        raise InputError(
            f"{who}: expected a 2-D (samples, features) array, got {data.ndim}-D. Reshape your "
            "data: one row for each sample"
        )
    if 0 in data.shape:
        lacking = "sample" if data.shape[0] == 0 else "feature"
        raise InputError(
            f"{who} is empty and has 0 {lacking}(s) (shape={data.shape}) while a minimum of 1 is "
            "required. Drop it or give it samples"
        )
    if data.dtype.kind == "c":
        raise InputError(f"{who} is of {data.dtype}. Complex data not supported: give real numbers")
    if data.dtype.kind not in "biuf":
        data = numbers(data, who)
    if order is not None:
        data = data[:, order]
    if data.dtype != np.float32:
        data = data.astype(np.float64, copy=False)
    if not np.isfinite(data).all():
        row, column = np.argwhere(~np.isfinite(data))[0]
        at = f"row {words.row(who, row)}, {words.feature(column)}"
        wrong = str(data[row, column]).replace("nan", "NaN")
        raise InputError(f"{who} has {wrong} at {at}")
    return np.ascontiguousarray(data)


def client_list(clients: Any) -> Sequence[Any]:
    """Return an iterable of one matrix per client, or a mapping of names to them, as a sequence.

    Raises
    ------
    InputError
        For a single matrix, a string, a set, or an object that is not iterable.
    """
    # `toarray` identifies sparse matrices without an import of scipy.sparse.
    require_no_path(clients, "clients")
    if hasattr(clients, "toarray"):
        raise InputError("clients is one sparse matrix: pass a list, [matrix]")
    shape = getattr(clients, "shape", ())  # polars has no ``ndim``
    if getattr(clients, "ndim", None) == 2 or len(shape) == 2:
        raise InputError("clients must be a list of matrices; for one client pass [matrix]")
    return one_per_client(clients, "clients", "matrix")


def client_names(clients: Any) -> list[str] | None:
    """Return the names of clients that are given by their names."""
    return [str(name) for name in clients] if isinstance(clients, Mapping) else None


def require_no_path(value: Any, who: str) -> None:
    """Refuse the path of a file, and say what reads it."""
    if isinstance(value, str | os.PathLike):
        path = os.fspath(value)
        call = f"from fedcore.user_tables import own_files; matrix = own_files.read({path!r}).x"
        read = Advice("read it", call=call)
        raise InputError(f"{who} is a text and no matrix; if it is a path", advice=[read])


def _require_same_form(checked: Sequence[Any]) -> None:
    """Require that the last client is dense or sparse and as wide as the first."""
    first, last, i = checked[0], checked[-1], len(checked) - 1
    if isinstance(first, SparseRows) != isinstance(last, SparseRows):
        forms = ["sparse" if isinstance(m, SparseRows) else "dense" for m in (last, first)]
        raise InputError(
            f"{words.client(i)} is {forms[0]} and {words.client(0)} is {forms[1]}: make all "
            "sparse, by scipy.sparse.csr_array, or all dense, by .toarray()"
        )
    require_width(last, i, first.shape[1])


def require_width(matrix: Any, i: int, n_features: int) -> None:
    """Require that client `i` has as many features as client 0."""
    if matrix.shape[1] != n_features:
        own = counted(matrix.shape[1], "feature")
        raise InputError(f"{words.client(i)} has {own}, {words.client(0)} has {n_features}")


def _require_present(client: Any, who: str) -> None:
    if client is None:
        raise InputError(f"{who} is None; leave it out or give it a matrix")
    require_no_path(client, who)


def require_size(clients: Clients, what: str = "the data") -> None:
    """Require data that are not all zero, whose products with SᵀS neither overflow nor underflow.

    The square of the largest entry must be a normal number. This square times the number of
    entries, a bound of ‖S‖_F², must be finite; of columns with a Gram matrix, as many as they are.

    Parameters
    ----------
    clients : Clients
    what : str
        Name of the data in the message.

    Raises
    ------
    InputError
        With a scale to divide the data by.
    """
    largest, dtype = clients.largest, np.result_type(*clients.dtypes)
    if not largest:
        raise InputError("the data of all clients are zero: there is no subspace to find")
    limits = np.finfo(dtype)
    entries = float(clients.n_features) * (clients.n_samples if clients.gram is None else 1)
    low, high = np.sqrt(float(limits.tiny)), np.sqrt(float(limits.max) / entries)
    if not low <= largest <= high:
        raise InputError(
            f"the largest entry of {what} is {largest:.3g}: in {dtype}, squares and sums of "
            f"squares leave the range; divide the data by {10.0 ** round(np.log10(largest)):g}"
        )


def check_labels(labels: Any, clients: Sequence[Any], given: Any = None) -> list[np.ndarray]:
    """Check the labels of clients and return them in the precision of the clients' samples.

    Parameters
    ----------
    labels : sequence or mapping of array-like of shape (n_i,)
    clients : sequence of ndarray of shape (n_i, d)
        Result of `check_clients`.
    given : sequence or mapping, optional
        The clients before `check_clients`: their names and the labels of their rows.

    Returns
    -------
    list of ndarray of shape (n_i,)

    Raises
    ------
    InputError
        When a client's labels are missing, too few, too many, not numbers, or not finite, or have
        names or an index that the clients have not.
    """
    vectors = per_client(labels, "labels", "vector", client_names(given), len(clients))
    rows = [None] * len(clients) if given is None else map(row_labels, client_list(given))
    return [
        _own_labels(vector, samples, words.client(i), own)
        for i, (vector, samples, own) in enumerate(zip(vectors, clients, rows, strict=True))
    ]


def _own_labels(
    given: Any, samples: np.ndarray, who: str, rows: Sequence[Any] | None
) -> np.ndarray:
    """Check the labels of one client, whose rows have the labels `rows`."""
    y = numbers(
        per_row(given, f"the labels of {who}", len(samples), rows, "have"), f"the labels of {who}"
    )
    if not np.isfinite(y).all():
        row = int(np.argmin(np.isfinite(y)))
        raise InputError(f"the labels of {who} have {y[row]} at row {row}")
    return y.astype(samples.dtype)


def require_alike(held_out: Clients, clients: Clients) -> None:
    """Require held-out samples with labels, of as many clients and features as `clients`.

    Raises
    ------
    InputError
    """
    if len(held_out) != len(clients):
        raise InputError(f"held-out samples of {len(held_out)} clients do not fit {len(clients)}")
    if held_out.n_features != clients.n_features:
        raise InputError(
            f"held-out samples have {counted(held_out.n_features, 'feature')}, the clients' "
            f"own have {clients.n_features}: give both the same"
        )
    if held_out.labels is None or clients.labels is None:
        raise InputError("held-out samples measure a classifier: give labels to them and the rest")
