"""The clients' matrices, in memory or in a file that is read on first use."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import Any, NamedTuple, overload

import numpy as np

from fedcore.errors import InputError
from fedcore.sparse import SparseRows
from fedcore.words import counted

Matrices = Sequence[Any] | np.ndarray  # one ndarray or SparseRows per client


class Labelled(NamedTuple):
    """Samples X and labels y of one client, or stacked arrays of several clients of equal size.

    Parameters
    ----------
    X : ndarray of shape (m, d) or (clients, m, d)
    y : ndarray of shape (m,) or (clients, m)
    """

    X: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Reduction:
    """Facts about the clients' original rows Sᵢ, if factors Rᵢ with ``RᵢᵀRᵢ = SᵢᵀSᵢ`` replace them.

    A result that depends only on the Gram matrices ``SᵢᵀSᵢ`` is the same for Rᵢ and Sᵢ, up to
    rounding.

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
    """Sequence of client matrices that knows shapes and data types before it reads a matrix.

    Parameters
    ----------
    matrices : sequence of ndarray or SparseRows of shape (n_i, d), or callable
        Matrices, or a function that returns them. The function is called at most once, at the first
        access to a matrix. Clients of equal size may be one array of shape (n_clients, m, d).
    shapes, dtypes : sequence of (int, int), sequence of numpy.dtype, optional
        Shapes and data types of the matrices, required if `matrices` is a function. If `shapes` is
        given, a matrix of a sequence such as `fedcore.files.lazy.LazyMatrices` is read only when it
        is used.
    gram : ndarray of shape (d, d), optional
        Gram matrix ``Σ SᵢᵀSᵢ``. If `gram` is given, methods that need only products with the Gram
        matrix do not read the clients' matrices.
    labels : sequence of ndarray of shape (n_i,), optional
        One label per sample.
    reduction : Reduction, optional
        Facts about the original rows, if `matrices` contains factors in place of the clients' rows.

    Attributes
    ----------
    shapes : list of (int, int)
    dtypes : list of numpy.dtype
    sparse : bool
        Whether the matrices are `SparseRows`.
    gram : ndarray or None
    kept, kept_of : SimpleNamespace, list of SimpleNamespace
        Computed results that later runs use again: `kept` for all clients together, and `kept_of`
        for each client. These results must depend only on the data.
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
        """Return matrix `i`; if the matrices come from a function, the first call reads all."""
        if self._read is not None:
            found, self._read = self._read(), None
            self._stack = found if isinstance(found, np.ndarray) else None
            self._matrices = list(found)
        return self._matrices[i]

    def hold(self) -> None:
        """Keep all matrices in memory; otherwise lazy matrices are made again at each access."""
        self._matrices = self[:]

    def labelled(self, i: int) -> Labelled:
        """Return the samples of client `i` with their labels.

        Parameters
        ----------
        i : int
            Index of the client.
        """
        assert self.labels is not None
        return Labelled(self[i], self.labels[i])

    @property
    def uniform(self) -> bool:
        """True if all matrices are dense and have the same shape and data type."""
        return len(set(zip(self.shapes, self.dtypes, strict=True))) == 1 and not self.sparse

    @property
    def stack(self) -> np.ndarray:
        """The matrices of `uniform` clients as one array of shape (n_clients, m, d).

        The first access copies the matrices into this array, unless they already are one array.
        """
        if self._read is not None:
            self[0]  # reads all, maybe as one array
        if self._stack is None:
            self._stack = np.stack(self[:])
        return self._stack

    @property
    def labelled_stack(self) -> Labelled:
        """The array `stack` and the labels; the labels have shape (n_clients, m)."""
        return Labelled(self.stack, self.stacked_labels)

    @property
    def stacked_labels(self) -> np.ndarray:
        """The labels of `uniform` clients as one array of shape (n_clients, m)."""
        assert self.labels is not None
        if not isinstance(self.labels, np.ndarray):
            self.labels = np.stack(self.labels)
        return self.labels

    @property
    def n_samples(self) -> int:
        """Number of samples of all clients together."""
        if self.reduction is not None:
            return sum(self.reduction.samples)
        return sum(rows for rows, _ in self.shapes)

    @property
    def n_features(self) -> int:
        """Number of features: all matrices have this number of columns."""
        return self.shapes[0][1]

    @property
    def single(self) -> bool:
        """True if all matrices are float32."""
        return all(dtype == np.float32 for dtype in self.dtypes)

    @cached_property
    def largest(self) -> float:
        """Largest absolute value of an entry of any matrix.

        If `gram` is given, the value is the largest column norm of the stacked matrices.
        """
        if self.gram is not None:
            return float(np.sqrt(np.diagonal(self.gram).max()))
        return max(float(max(matrix.max(), -matrix.min())) for matrix in self)

    @cached_property
    def squares(self) -> float:
        """Sum of the squares of all entries of the matrices, in double precision."""
        if self.sparse:
            return sum(matrix.squares() for matrix in self)
        return float(sum(np.einsum("ij,ij->", m, m, dtype=np.float64) for m in self))


def require_size(clients: Clients, what: str = "the data") -> None:
    """Raise an error if the data are all zero, or if their squares overflow or underflow.

    The square of the largest entry must be a normal floating-point number. This square times the
    number of entries, an upper bound of the sum of all squares, must be finite. If the clients have
    a Gram matrix, the largest column norm replaces the largest entry, and the number of columns
    replaces the number of entries.

    Parameters
    ----------
    clients : Clients
    what : str
        Name of the data, for the error message.

    Raises
    ------
    InputError
        If the data are zero, too large or too small. The message names a number by which to divide
        the data.
    """
    largest, dtype = clients.largest, np.result_type(*clients.dtypes)
    if not largest:
        raise InputError("the data of all clients are zero: there is no subspace to find")
    limits = np.finfo(dtype)
    entries = float(clients.n_features) * (clients.n_samples if clients.gram is None else 1)
    low, high = np.sqrt(float(limits.tiny)), np.sqrt(float(limits.max) / entries)
    if not low <= largest <= high:
        raise InputError(
            f"the largest entry of {what} is {largest:.3g}: squares and sums of squares leave the "
            f"range of {dtype}; divide the data by {10.0 ** round(np.log10(largest)):g}"
        )


def require_alike(held_out: Clients, clients: Clients) -> None:
    """Require that held-out and training data have labels, and equally many clients and features.

    Raises
    ------
    InputError
    """
    if len(held_out) != len(clients):
        raise InputError(
            f"held-out samples are given for {counted(len(held_out), 'client')} instead of "
            f"{len(clients)}: give every client one matrix of them"
        )
    if held_out.n_features != clients.n_features:
        raise InputError(
            f"held-out samples have {counted(held_out.n_features, 'feature')}, but the clients' "
            f"samples have {clients.n_features}: give both the same features"
        )
    if held_out.labels is None or clients.labels is None:
        raise InputError(
            "held-out samples measure a classifier: give labels of these samples and of the "
            "clients' samples, or leave out held_out"
        )
