"""Clients as a user gives them: a list, a mapping with their names, or one matrix with groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np

from fedcore import words
from fedcore.errors import InputError
from fedcore.problems.clients import check_matrix, client_list, feature_names, require_names
from fedcore.problems.distinct import require_distinct, require_distinct_each
from fedcore.problems.names import column_names
from fedcore.progress import wanted
from fedcore.seeds import root_of
from fedcore.words import counted

# Entries that `params` of an estimator does not have, and what stands for them.
TAKEN = {
    "clients": "fit(clients)", "seed": "random_state=…", "finish": "fedcore.run",
    "n_components": "n_components=…", "algorithm": "algorithm=…", "progress": "verbose=…",
}  # fmt: skip

Seed = int | np.random.SeedSequence | np.random.Generator | np.random.RandomState | None


class Given(NamedTuple):
    """Clients' matrices, not checked yet.

    Attributes
    ----------
    matrices : sequence
        One per client.
    labels : list of str or None
        Names of the clients, for errors.
    rows : list of ndarray of int or None
        Of clients that were groups of rows of one matrix: their rows in it.
    """

    matrices: Sequence[Any]
    labels: list[str] | None = None
    rows: list[np.ndarray] | None = None

    def named(self) -> AbstractContextManager[None]:
        """Name clients, columns and rows as given in the errors that are raised inside."""
        columns = column_names(self.matrices[0]) if len(self.matrices) else None
        return words.named(self.labels, columns, self.rows)


def given(clients: Any, groups: Any = None) -> Given:
    """Return the clients of a call of `fit`.

    Parameters
    ----------
    clients : sequence, mapping, or one matrix
        One matrix per client, also by the clients' names. One matrix alone is that of one client.
    groups : array-like of shape (n_samples,), optional
        The client of every row, if `clients` is one matrix. The clients are in the order of the
        sorted values.

    Raises
    ------
    InputError
        When `clients` is neither, or `groups` does not fit it.
    """
    if groups is not None:
        return _grouped(clients, groups)
    if isinstance(clients, Mapping):
        return Given(list(clients.values()), [str(name) for name in clients])
    if hasattr(clients, "__array__") and not hasattr(clients, "shape"):
        clients = np.asarray(clients)
    if _is_matrix(clients) or hasattr(clients, "toarray"):
        return Given([clients])
    return Given(client_list(clients))


def _grouped(matrix: Any, groups: Any) -> Given:
    if isinstance(matrix, list | tuple):
        matrix = np.asarray(matrix, dtype=object if _ragged(matrix) else None)
    if not _is_matrix(matrix):
        raise InputError("groups= goes with one matrix that has the rows of all clients")
    if isinstance(groups, str):
        raise InputError(
            f"groups is the text {groups!r}: give the column itself, frame[{groups!r}], and leave "
            "it out of the matrix"
        )
    values = np.asarray(groups)
    if values.shape != (matrix.shape[0],):
        raise InputError(
            f"groups has shape {values.shape}, and the matrix has "
            f"{counted(matrix.shape[0], 'row')}: give one "
            "group per row"
        )
    try:
        found, of = np.unique(values, return_inverse=True)
    except TypeError as error:  # None and text, or pandas' NA
        raise InputError(
            f"groups has missing values, or values of different kinds ({error}): every row belongs "
            "to one client"
        ) from error
    if values.dtype.kind in "fc" and np.isnan(values).any():
        raise InputError("groups has missing values: every row belongs to one client")
    rows = [np.flatnonzero(of == i) for i in range(len(found))]
    take = getattr(matrix, "iloc", matrix.tocsr() if hasattr(matrix, "tocsr") else matrix)
    pick = matrix.take if hasattr(matrix, "column_names") else take.__getitem__  # of Arrow
    return Given([pick(part) for part in rows], [str(value) for value in found.tolist()], rows)


def _is_matrix(value: Any) -> bool:
    """Whether it has rows and columns; data frames of polars have no ``ndim``."""
    return len(getattr(value, "shape", ())) == 2


def _ragged(matrix: Sequence[Any]) -> bool:
    return len({np.shape(row) for row in matrix}) != 1


def names_of(matrices: Sequence[Any]) -> np.ndarray | None:
    """Return the column names of all clients if all are strings, else None.

    Raises
    ------
    InputError
        When there is no client, two columns of a client have one name, or the clients' columns
        differ.
    """
    if not len(matrices):
        raise InputError("there are no clients: fit takes at least one matrix")
    require_distinct_each(matrices)
    names = feature_names(matrices)
    if names is None or not all(isinstance(name, str) for name in names):
        return None
    return np.array(names, dtype=object)


def one_matrix(
    x: Any, n_columns: int, what: str, method: str, names: Any = None, each: str = ""
) -> Any:
    """Check a matrix like a client's; errors call it x.

    Parameters
    ----------
    x : array-like, sparse matrix or data frame of shape (n, n_columns)
    n_columns : int
    what : str
        What a column is, in the plural.
    method : str
        Who asks.
    names : ndarray of str, optional
        Names that the columns of a data frame must have.
    each : str, optional
        How to ask for every client, if not by ``method(c) for c in clients``.

    Raises
    ------
    InputError
    """
    columns = column_names(x)
    require_distinct(x, "x")
    if columns is not None and names is not None:
        require_names(columns, list(names), "x", "the fitted estimator")
    if isinstance(x, list | tuple) and any(getattr(part, "ndim", 0) == 2 for part in x):
        raise InputError(
            f"x is a list of {counted(len(x), 'matrix', 'matrices')} and {method} takes one: write "
            f"[model.{each or f'{method}(c) for c in clients'}]"
        )
    with words.named(None, columns):
        matrix = check_matrix(x, "x")
    if matrix.shape[1] != n_columns:
        raise InputError(f"x has {matrix.shape[1]} {what}, the fitted estimator has {n_columns}")
    return matrix


def seed_of(random_state: Any) -> np.random.SeedSequence:
    """Return the seed of a run; that of None is fresh entropy, that of a generator its next draw.

    Raises
    ------
    InputError
        When `random_state` is no seed.
    """
    if random_state is None:
        return np.random.SeedSequence()
    if isinstance(random_state, np.random.Generator):
        return np.random.SeedSequence(random_state.integers(2**32, size=4).tolist())
    if isinstance(random_state, np.random.RandomState):
        return np.random.SeedSequence(random_state.randint(2**32, size=4, dtype=np.int64).tolist())
    try:
        return root_of(random_state)
    except InputError as error:
        raise InputError(
            "random_state must be a whole number of at least 0, a SeedSequence, a Generator, a "
            f"RandomState or None, got {random_state!r}"
        ) from error


def options_of(estimator: Any, taken: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of an estimator's run: its ``params``, and ``verbose`` as ``progress``.

    Parameters
    ----------
    estimator : Estimator
    taken : mapping
        What stands for an entry that ``params`` does not have, beside `TAKEN`.

    Raises
    ------
    InputError
        When ``params`` is no mapping, or has such an entry, or ``verbose`` is neither a flag nor a
        whole number.
    """
    params = estimator.params
    if params is not None and not isinstance(params, Mapping):
        raise InputError(f"params must be a mapping of names to values, got {params!r}")
    options, instead = dict(params or {}), TAKEN | dict(taken)
    for name in options:
        if name in instead:
            raise InputError(f"params has no entry '{name}': use {instead[name]}")
    return {"measure": (), **options, "progress": wanted(estimator.verbose, "verbose")}
