"""Data frames of pandas and polars, and tables of Arrow, by the rules of `columns`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedcore.arrays import is_missing
from fedcore.errors import Advice, ColumnWarning, InputError, warn
from fedcore.user_tables.columns import Unfit, examined, refusal
from fedcore.user_tables.doubts import find, summarised
from fedcore.user_tables.labelled import column_names, names_as_given, order_of
from fedcore.user_tables.names import COUNTING, absent, counts_rows
from fedcore.words import row


def of_frame(frame: Any, names: Sequence[Any], who: str) -> np.ndarray:
    """Return the numbers of a data frame of pandas or polars, or of a table of Arrow.

    Raises
    ------
    TableError
        When a column holds anything but numbers, lacks values, or is an index that pandas has
        written. The error names all such columns.
    """
    # NumPy would have pandas change the process's warnings.
    columns: Any = frame.to_numpy() if hasattr(frame, "iloc") else np.empty(0, object)
    if columns.dtype.kind not in "biuf":
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
    """Return where each client has the columns of another table, in the other table's order.

    Parameters
    ----------
    clients : mapping
        Clients by the names that messages give them.
    names : sequence or None
        Names of the other table's columns; a range if it has no names and takes numbers for names.
    whose : str
        What messages call the other table.

    Returns
    -------
    list
        None for a client that has the columns in this order already, or if no table has names.

    Raises
    ------
    TableError
        When only some frames have a column; the error names all such columns.
    InputError
        If only one of two tables has names, or a table has two columns of one name.
    """
    named = dict[str, list[Any]]()
    for who, client in clients.items():
        own = column_names(client)
        if (own is None) != (names is None):
            without, having = (who, whose) if own is None else (whose, who)
            says = f"{without} has no column names and {having} has"
            raise InputError(f"{says}: give data frames to all or to none", client=without)
        if own is not None:
            _tell_names(names_as_given(client), own, who)
            named[who] = own
    if names is None:
        return [None] * len(clients)
    every = {**named, whose: names}
    if not isinstance(names, range) and not any(map(is_missing, itertools.chain(*every.values()))):
        if unfit := absent(every):
            lacks = next((one.file for one in unfit if one.file in named), next(iter(named)))
            what = "give each the same columns, or those alone that all have"
            raise refusal(unfit, f"{lacks}: ", client=lacks, advice=[Advice(what)])
    return [order_of(own, names, who, f"{whose} has", "column") for who, own in named.items()]


def _tell_names(given: Sequence[Any], seen: Sequence[Any], who: str) -> None:
    """Warn of names that differ but are matched because they look the same."""
    pairs = zip(given, seen, strict=True)
    other = {old: new for old, new in pairs if isinstance(old, str) and old != new}
    if other:
        takes = ", ".join(f"{old!a} as {new!a}" for old, new in other.items())
        warn(ColumnWarning(f"{who}: takes {takes}, which look the same", [*other.values()]))


def tell_totals(labels: Sequence[Any], who: str = "") -> None:
    """Warn of a client's rows, or else of clients, whose labels say that they sum up others."""
    for at, label in summarised([*labels]):
        what = f"{who}: row {row(who, at)}" if who else f"client {at}"
        says = f"{what} is called {label!r}, and counts as measured: leave it out if so"
        warn(ColumnWarning(says, []))


def tell(names: Sequence[Any], matrices: Sequence[Any], whose: str = "client {}: ") -> None:
    """Warn of columns that may be no measurements, and rows that may be no samples.

    Parameters
    ----------
    names : sequence
        Names of the columns of data frames.
    matrices : sequence of ndarray
        The numbers of all clients.
    whose : str
        What messages call the matrix, if there is only one.
    """
    for doubt in find(names, matrices):
        who = whose.format(doubt.tables[0]) * (not doubt.columns)
        way = "put nan for it, and leave such rows out" if doubt.values else "leave it out if so"
        warn(ColumnWarning(f"{who}{doubt.what}: {way}", doubt.columns))
