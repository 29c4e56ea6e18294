"""Check clients' matrices and labels that are arrays, sparse matrices or data frames."""

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
from fedcore.user_tables.columns import listed
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
    """Check client matrices and return them as C-contiguous float arrays or as sparse rows.

    Parameters
    ----------
    clients : sequence or mapping of array-like of shape (n_i, d)
        Dense matrices, data frames with numeric columns, or sparse matrices of `scipy.sparse` in
        any format.
    names : sequence, optional
        Names of the columns in their order (default: the first client's).

    Returns
    -------
    list of ndarray, or list of SparseRows, of shape (n_i, d)
        Dense matrices are C-contiguous float64, but float32 stays float32. Matrices are copied only
        if necessary. Sparse matrices become `fedcore.sparse.SparseRows`. Columns of data frames are
        matched by name and put into the order of `names`.

    Raises
    ------
    InputError
        If there is no client, or a client is empty, is no 2-D numeric matrix, or has masked
        entries, NaN or infinity. The error is also raised if clients differ in the number or names
        of features, or if only some clients are sparse.
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
    """Check and return a matrix; columns that have names are put into the order of `names`.

    If `names` is None, the only permitted names are the column numbers 0, 1, 2, ….
    """
    own, order = column_names(matrix), None
    if own is not None:
        known = range(len(own)) if names is None else names
        (order,) = frames.column_orders({who: matrix}, known, whose)
    return check_matrix(matrix, who, order)


def client_list(clients: Any) -> Sequence[Any]:
    """Return the clients' matrices as a sequence, from an iterable or a mapping by client name.

    Raises
    ------
    InputError
        If `clients` is a single matrix, a string, a set, empty, or not iterable.
    """
    require_no_path(clients, "clients")
    if is_matrix(clients):
        raise InputError("clients must be a list of matrices; for one client pass [matrix]")
    found = one_per_client(clients, "clients", "matrix")
    if not len(found):
        raise InputError("there are no clients: a federation needs at least one")
    return found


def is_matrix(value: Any) -> bool:
    """Return whether a value is a single dense or sparse matrix or a single data frame."""
    # `toarray` identifies sparse matrices without an import of scipy.sparse, and polars has no
    # ``ndim``.
    return hasattr(value, "toarray") or len(getattr(value, "shape", ())) == 2


def client_names(clients: Any) -> list[str] | None:
    """Return the clients' names if `clients` is a mapping, else None."""
    return [str(name) for name in clients] if isinstance(clients, Mapping) else None


def check_labels(labels: Any, clients: Sequence[Any], given: Any = None) -> list[np.ndarray]:
    """Check the clients' labels and return them in the precision of the clients' samples.

    Parameters
    ----------
    labels : sequence or mapping of array-like of shape (n_i,)
    clients : sequence of ndarray of shape (n_i, d)
        Matrices that `check_clients` returned.
    given : sequence or mapping, optional
        Clients as the user passed them, with the clients' names and row labels.

    Returns
    -------
    list of ndarray of shape (n_i,)

    Raises
    ------
    InputError
        If a client's labels are missing, too few, too many, not numbers, or not finite. The error
        is also raised if the labels have names or an index that the clients do not have.
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
    """Check one matrix as `check_clients` does, and return its columns in `order`.

    Messages call the matrix `who`.
    """
    if fields := getattr(getattr(matrix, "dtype", None), "names", None):
        raise InputError(
            f"{who} is a structured array with the fields {listed(fields)}: convert it "
            "with numpy.lib.recfunctions.structured_to_unstructured"
        )
    names = column_names(matrix)
    return check_array(matrix if names is None else frames.of_frame(matrix, names, who), who, order)
