"""Data frames of pandas and polars, and tables of Arrow, by the rules of `columns`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fedcore.arrays import is_missing
from fedcore.errors import Advice, ColumnWarning, warn
from fedcore.user_tables.columns import Unfit, examined, refusal
from fedcore.user_tables.doubts import find
from fedcore.user_tables.labelled import column_names, names_as_given
from fedcore.user_tables.names import COUNTING, absent, counts_rows
from fedcore.words import row


def of_frame(frame: Any, names: Sequence[Any], who: str) -> np.ndarray:
    """Return the numbers of a data frame of pandas or polars, or of a table of Arrow.

    Raises
    ------
    TableError
        When a column is none of numbers, lacks values or is the index that pandas has written; it
        names all of them.
    """
    # NumPy would have pandas change the process's warnings.
    columns: Any = frame.to_numpy() if hasattr(frame, "iloc") else np.empty(0, object)
    if columns.dtype.kind not in "biuf":
        columns = _columns(frame)
    each = [*zip(names, columns if isinstance(columns, list) else columns.T, strict=True)]
    unfit = [Unfit(who, name, "index", "numbers the rows") for i, (name, column) in enumerate(each)
             if str(name).casefold() not in COUNTING
             and counts_rows(name, column, i == 0)]  # fmt: skip
    matrix, wrong = examined(names, columns, who, lambda i: f"row {row(who, i)}")
    if unfit := unfit + wrong:
        left = {one.column for one in unfit if one.kind != "missing"}
        ways = [Advice("leave them out, or give numbers, and nan for missing ones")] * bool(left)
        ways += [Advice("leave out rows that lack a value")] * any(
            one.kind == "missing" and one.column not in left for one in unfit
        )
        raise refusal(unfit, f"{who}: ", client=who, advice=ways)
    return matrix


def _columns(frame: Any) -> list[Any]:
    """Return the columns of a frame of any library."""
    if hasattr(frame, "iloc"):
        return [column for _, column in frame.items()]
    if hasattr(frame, "get_columns"):
        return [*frame.get_columns()]
    return [*frame.columns] if hasattr(frame, "column_names") else [*np.asarray(frame).T]


def require_same(frames: Mapping[str, Any]) -> None:
    """Require that all frames have the same columns, in any order.

    Parameters
    ----------
    frames : mapping
        Data frames, by the names that messages give the clients. If one of them has no column
        names, nothing is required.

    Raises
    ------
    TableError
        It names all columns that only some frames have.
    """
    for who, frame in frames.items():
        _tell_names(frame, who)
    lists = {who: column_names(frame) for who, frame in frames.items()}
    known = {who: names for who, names in lists.items() if names is not None}
    if len(known) == len(lists) and not any(map(is_missing, itertools.chain(*known.values()))):
        if unfit := absent(known):
            what = "give each the same columns, or those alone that all have"
            raise refusal(unfit, client=unfit[0].file, advice=[Advice(what)])


def require_names(frame: Any, who: str, names: Sequence[Any], whose: str) -> None:
    """Require that a frame has columns of these names, in any order.

    Raises
    ------
    TableError
        It names all extra and all missing columns.
    """
    _tell_names(frame, who)
    if unfit := absent({who: column_names(frame) or (), whose: names}):
        raise refusal(unfit, f"{who}: ", client=who, advice=[Advice("give the columns of the fit")])


def _tell_names(frame: Any, who: str) -> None:
    """Warn of names that are matched with others because they look the same."""
    seen = column_names(frame) or []
    pairs = zip(names_as_given(frame), seen, strict=True) if seen else ()
    other = {old: new for old, new in pairs if isinstance(old, str) and old != new}
    if other:
        takes = ", ".join(f"{old!a} as {new!a}" for old, new in other.items())
        warn(ColumnWarning(f"{who}: takes {takes}, which look the same", [*other.values()]))


def tell(names: Sequence[Any], matrices: Sequence[Any]) -> None:
    """Warn of columns that may be no measurements, and rows that may be no samples.

    Parameters
    ----------
    names : sequence
        Names of the columns of data frames.
    matrices : sequence of ndarray
        The numbers of all clients.
    """
    for doubt in find(names, matrices):
        who = f"client {doubt.tables[0]}: " * (not doubt.columns)
        way = "put nan for it, and leave such rows out" if doubt.values else "leave it out if so"
        warn(ColumnWarning(f"{who}{doubt.what}: {way}", doubt.columns))
