"""Read the clients of a fit from a list, a mapping from names, or one matrix with groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from fedcore import words
from fedcore.arrays import as_array
from fedcore.errors import InputError
from fedcore.user_tables import frames
from fedcore.user_tables.labelled import column_names, per_row, row_labels
from fedcore.user_tables.matrices import (
    check_like,
    client_list,
    client_names,
    is_matrix,
)
from fedcore.words import counted


class Given(NamedTuple):
    """The clients' matrices before any check.

    Attributes
    ----------
    matrices : sequence
        One matrix per client.
    labels : list of str or None
        Names of the clients in error messages.
    rows : list of ndarray of int or None
        Row numbers of each client, if the clients are groups of rows of one matrix.
    """

    matrices: Sequence[Any]
    labels: list[str] | None = None
    rows: list[np.ndarray] | None = None

    def named(self) -> AbstractContextManager[None]:
        """Return a context in which errors use the user's names of clients, columns and rows."""
        columns = column_names(self.matrices[0]) if len(self.matrices) else None
        return words.named(self.labels, columns, self.rows)


def given(clients: Any, groups: Any = None) -> Given:
    """Return the clients that a user passes to `fit`.

    Parameters
    ----------
    clients : sequence, mapping, or one matrix
        One matrix per client, in a sequence or in a mapping from the clients' names. A single
        matrix without `groups` is one client.
    groups : array-like of shape (n_samples,), optional
        The client of every row, if `clients` is one matrix. The clients are sorted by their values
        in `groups`.

    Raises
    ------
    InputError
        If `clients` has another type, or if `groups` does not fit `clients`.
    """
    if groups is not None:
        return _grouped(clients, groups)
    if hasattr(clients, "__array__") and not hasattr(clients, "shape"):
        clients = np.asarray(clients)
    if is_matrix(clients):
        return Given([clients])
    return Given(client_list(clients), client_names(clients))


def _grouped(matrix: Any, groups: Any) -> Given:
    if not (is_matrix(matrix) or several(matrix)):
        matrix = as_array(matrix, "the matrix")
    if not is_matrix(matrix):
        raise InputError("groups= needs one matrix that contains the rows of all clients")
    if isinstance(groups, str):
        raise InputError(
            f"groups is the text {groups!r}: give the column itself, frame[{groups!r}], and remove "
            "this column from the matrix"
        )
    values = per_row(groups, "groups", matrix.shape[0], row_labels(matrix))
    try:
        found, of = np.unique(values, return_inverse=True)
    except TypeError as error:
        raise InputError(
            f"groups has values of types that cannot be sorted ({error}): give all values one type"
        ) from error
    rows = [np.flatnonzero(of == i) for i in range(len(found))]
    return Given(
        [_taken(matrix, part) for part in rows], [str(value) for value in found.tolist()], rows
    )


def _taken(matrix: Any, rows: np.ndarray) -> Any:
    """Return the chosen rows of an array, a data frame, an Arrow table or a sparse matrix."""
    if hasattr(matrix, "iloc"):
        return matrix.iloc[rows]
    if hasattr(matrix, "take") and hasattr(matrix, "column_names"):
        return matrix.take(rows)
    return (matrix.tocsr() if hasattr(matrix, "tocsr") else matrix)[rows]


def tell_totals(given: Given, matrices: Sequence[np.ndarray]) -> None:
    """Warn of clients with names like "Total", and of rows that seem to summarise other rows."""
    frames.tell_totals(given.labels or ())
    if given.rows is not None and column_names(given.matrices[0]) is not None:
        whole = np.empty((sum(map(len, given.rows)), matrices[0].shape[1]))
        for part, rows in zip(matrices, given.rows, strict=True):
            whole[rows] = part
        frames.tell([], [whole], "all clients: ")


def one_matrix(x: Any, n_columns: int, what: str, method: str, names: Any = None) -> Any:
    """Check and return a matrix in the same way as a client's matrix; error messages call it x.

    Parameters
    ----------
    x : array-like, sparse matrix or data frame of shape (n, n_columns)
    n_columns : int
        Number of columns that the matrix must have.
    what : str
        Plural noun for the columns in error messages, such as "features".
    method : str
        Name of the calling method, for error messages.
    names : sequence, optional
        Names by which the columns of a data frame are matched. The columns of an array are taken in
        their order.

    Raises
    ------
    InputError
        If `x` is not one valid matrix with these columns.
    """
    if several(x):
        raise InputError(
            f"x has the matrices of {counted(len(x), 'client')}, but {method} takes one matrix: "
            f"write [model.{method}(c) for c in clients]"
        )
    known = None if names is None else list(names)
    with words.named(None, known or column_names(x)):
        matrix = check_like(x, "x", known, "the fitted estimator")
    if matrix.shape[1] != n_columns:
        raise InputError(
            f"X has {matrix.shape[1]} {what}, but FederatedPCA is expecting {n_columns} {what} as "
            f"input: give a matrix with the {what} of the fit"
        )
    return matrix


def several(x: Any) -> bool:
    """Return whether `x` holds the matrices of several clients, rather than one matrix."""
    if is_matrix(x):
        return False
    if isinstance(x, Mapping) or len(getattr(x, "shape", ())) == 3:
        return True
    parts = x.tolist() if hasattr(x, "tolist") else x
    return isinstance(parts, list | tuple) and any(map(_holds_rows, parts))


def _holds_rows(value: Any) -> bool:
    """Return whether a value is a matrix or a list of rows."""
    rows = isinstance(value, list | tuple) and value and hasattr(value[0], "__len__")
    return bool(rows and not isinstance(value[0], str)) or is_matrix(value)
