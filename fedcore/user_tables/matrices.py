"""Clients' matrices and labels as users give them: arrays, sparse matrices and data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedcore import words
from fedcore.arrays import (
    check_array,
    check_labels_of,
    is_checked,
    require_no_path,
    require_same_form,
)
from fedcore.errors import InputError
from fedcore.user_tables import frames
from fedcore.user_tables.labelled import (
    column_names,
    one_per_client,
    per_client,
    per_row,
    row_labels,
)


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
        Names of the columns in their order; by default the first client's.

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
    first = names is None  # else others have been told of these columns
    names = column_names(clients[0]) if first else names
    called: dict[str, Any] = {words.client(i): one for i, one in enumerate(clients)}
    orders = frames.column_orders(called, names, words.client(0))
    with np.errstate(over="ignore", invalid="ignore"):
        done = [is_checked(client) for client in clients]
    checked: list[Any] = []
    for i, (client, order, ready) in enumerate(zip(clients, orders, done, strict=True)):
        checked.append(client if ready else check_matrix(client, words.client(i), order))
        require_same_form(checked)
        frames.tell_totals(row_labels(client) or (), words.client(i))
    if first and names is not None:
        frames.tell(names, checked)
    return checked


def check_like(matrix: Any, who: str, names: Sequence[Any] | None, whose: str) -> Any:
    """Check a matrix and return it with its columns, if they have names, in the order of `names`.

    Without `names`, the columns of the matrix may have no names, or only their numbers as names.
    """
    own, order = column_names(matrix), None
    if own is not None:
        known = range(len(own)) if names is None else names
        (order,) = frames.column_orders({who: matrix}, known, whose)
    return check_matrix(matrix, who, order)


def client_list(clients: Any) -> Sequence[Any]:
    """Return an iterable of one matrix per client, or a mapping of names to them, as a sequence.

    Raises
    ------
    InputError
        For a single matrix, a string, a set, an object that is not iterable, and no client.
    """
    require_no_path(clients, "clients")
    if is_matrix(clients):
        raise InputError("clients must be a list of matrices; for one client pass [matrix]")
    found = one_per_client(clients, "clients", "matrix")
    if not len(found):
        raise InputError("there are no clients: a federation needs at least one")
    return found


def is_matrix(value: Any) -> bool:
    """Whether a value is one matrix, dense or sparse, or one data frame."""
    # `toarray` identifies sparse matrices without an import of scipy.sparse, and polars has no
    # ``ndim``.
    return hasattr(value, "toarray") or len(getattr(value, "shape", ())) == 2


def client_names(clients: Any) -> list[str] | None:
    """Return the names of clients that are given by their names."""
    return [str(name) for name in clients] if isinstance(clients, Mapping) else None


def check_labels(labels: Any, clients: Sequence[Any], given: Any = None) -> list[np.ndarray]:
    """Check the labels of clients and return them in the precision of the clients' samples.

    Parameters
    ----------
    labels : sequence or mapping of array-like of shape (n_i,)
    clients : sequence of ndarray of shape (n_i, d)
        Result of `check_clients`.
    given : sequence or mapping, optional
        The clients as `check_clients` got them, with their names and the labels of their rows.

    Returns
    -------
    list of ndarray of shape (n_i,)

    Raises
    ------
    InputError
        When a client's labels are missing, too few, too many, not numbers, or not finite; or when
        the labels have names or an index that the clients do not have.
    """
    vectors = per_client(labels, "labels", "vector", client_names(given), len(clients))
    rows = [None] * len(clients) if given is None else map(row_labels, client_list(given))
    return [
        check_labels_of(
            per_row(vector, f"the labels of {words.client(i)}", len(samples), own, "have"),
            words.client(i),
            samples.dtype,
        )
        for i, (vector, samples, own) in enumerate(zip(vectors, clients, rows, strict=True))
    ]


def check_matrix(matrix: Any, who: str, order: Sequence[int] | None = None) -> Any:
    """Check one matrix as `check_clients` does, with columns in `order`; messages say `who`."""
    names = column_names(matrix)
    return check_array(matrix if names is None else frames.of_frame(matrix, names, who), who, order)
