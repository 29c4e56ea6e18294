"""Read data frames of pandas and polars, and Arrow tables, by the rules of the module `columns`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedcore.arrays import is_missing
from fedcore.errors import Advice, ColumnWarning, InputError, warn
from fedcore.user_tables.columns import Unfit, examined, is_category, refusal
from fedcore.user_tables.doubts import find, summarised
from fedcore.user_tables.labelled import column_names, names_as_given, order_of
from fedcore.user_tables.names import COUNTING, absent, counts_rows
from fedcore.words import row


def of_frame(frame: Any, names: Sequence[Any], who: str) -> np.ndarray:
    """Return the matrix of numbers in a pandas or polars data frame or in an Arrow table.

    Raises
    ------
    TableError
        If a column has values that are no numbers, lacks values, or is an index that pandas wrote.
        The error names all such columns.
    """
    # NumPy would have pandas change the process's warnings.
    columns: Any = frame.to_numpy() if hasattr(frame, "iloc") else np.empty(0, object)
    numbers = columns.dtype.kind in "biuf"
    # pandas also makes numbers of categories
    if not numbers or any(is_category(column) for _, column in frame.items()):
        columns = [frame[name] for name in names_as_given(frame)]
    each = [*zip(names, columns if isinstance(columns, list) else columns.T, strict=True)]
    unfit = [Unfit(who, name, "index", "numbers the rows") for i, (name, column) in enumerate(each)
             if str(name).casefold() not in COUNTING
             and counts_rows(name, column, i == 0)]  # fmt: skip
    matrix, wrong = examined(names, columns, who, lambda i: f"row {row(who, i)}")
    if unfit := unfit + wrong:
        way = Advice("leave out columns that are no numbers, and then rows that lack a value")
        raise refusal(unfit, f"{who}: ", client=who, advice=[way])
    return matrix


def column_orders(
    clients: Mapping[str, Any], names: Sequence[Any] | None, whose: str
) -> list[list[int] | None]:
    """Return the positions of each client's columns, in the column order of another table.

    Parameters
    ----------
    clients : mapping
        Clients, where each key is the client's name in messages.
    names : sequence or None
        Column names of the other table, or None if it has no names. A range means that its columns
        are named by their numbers.
    whose : str
        Name of the other table in messages.

    Returns
    -------
    list
        One list of positions per client. An entry is None if the client's columns already have this
        order, or if no table has names.

    Raises
    ------
    TableError
        If only some of the data frames have a column. The error names all such columns.
    InputError
        If only one of two tables has names, or if a table has two columns of the same name.
    """
    named = dict[str, list[Any]]()
    for who, client in clients.items():
        own = column_names(client)
        if (own is None) != (names is None):
            without, having = (who, whose) if own is None else (whose, who)
            says = f"{without} has no column names and {having} has"
            raise InputError(f"{says}: use data frames for all clients or for none", client=without)
        if own is not None:
            _tell_names(names_as_given(client), own, who)
            named[who] = own
    if names is None:
        return [None] * len(clients)
    every = {**named, whose: names}
    if not isinstance(names, range) and not any(map(is_missing, itertools.chain(*every.values()))):
        if unfit := absent(every):
            lacks = next((one.file for one in unfit if one.file in named), next(iter(named)))
            what = "give each the same columns, or only those that all have"
            raise refusal(unfit, f"{lacks}: ", client=lacks, advice=[Advice(what)])
    return [order_of(own, names, who, f"{whose} has", "column") for who, own in named.items()]


def _tell_names(given: Sequence[Any], seen: Sequence[Any], who: str) -> None:
    """Warn if a column name is replaced by another spelling that looks the same."""
    pairs = zip(given, seen, strict=True)
    other = {old: new for old, new in pairs if isinstance(old, str) and old != new}
    if other:
        takes = ", ".join(f"{old!a} as {new!a}" for old, new in other.items())
        warn(ColumnWarning(f"{who}: takes {takes}, which look the same", [*other.values()]))


def tell_totals(labels: Sequence[Any], who: str = "") -> None:
    """Warn of labels such as "Total", of the rows of `who` or, if `who` is empty, of clients."""
    for at, label in summarised([*labels]):
        what = f"{who}: row {row(who, at)}" if who else f"client {at}"
        says = f"{what} is called {label!r}, and counts as data: leave it out if it sums up others"
        warn(ColumnWarning(says, []))


def tell(names: Sequence[Any], matrices: Sequence[Any], whose: str = "client {}: ") -> None:
    """Warn of columns that may not be measurements, and of rows that may not be samples.

    Parameters
    ----------
    names : sequence
        Names of the columns of data frames.
    matrices : sequence of ndarray
        Matrices of numbers, one per client.
    whose : str
        Start of a message about a row; ``{}`` in it is replaced by the client's number.
    """
    for doubt in find(names, matrices):
        who = whose.format(doubt.tables[0]) * (not doubt.columns)
        way = (
            "put nan for it, and leave such rows out"
            if doubt.values
            else "leave it out unless it was measured"
        )
        warn(ColumnWarning(f"{who}{doubt.what}: {way}", doubt.columns))
