"""Columns of tables, of pandas, polars, Arrow or NumPy: what is a number, and what is missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from fedcore.errors import Advice, TableError
from fedcore.words import counted, row

UNNAMED = re.compile(r"|Unnamed: \d+(\.\d+|_level_\d+)?")  # of pandas for a column without a name
INDEX = re.compile(r"__index_level_\d+__")  # of pandas in Parquet and Arrow
# Names that such a column has if it counts the rows from 0 or 1.
COUNTING = {
    "id", "index", "level_0", "no", "nr", "number", "obs", "row", "row_id", "row_index", "row_nr",
    "row_number", "rowid", "rownames",
}  # fmt: skip


def parsed(column: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return a column as numbers, with NaN for missing values, and where it is neither.

    Numbers are truth values, whole and floating-point numbers and decimals, also in a column of
    Python objects. Texts, dates, durations, complex numbers and categories are none. Missing are
    None, NaN, and what pandas, polars and Arrow have for them.

    Parameters
    ----------
    column : ndarray of shape (n,), Series of pandas or polars, or ChunkedArray of pyarrow

    Returns
    -------
    values : ndarray of shape (n,)
        As it is, if its type is one of numbers; else float64.
    wrong : ndarray of bool of shape (n,)
    """
    values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    kind = str(getattr(column, "dtype", getattr(column, "type", "")))
    coded = kind.startswith(("category", "dictionary"))
    if values.dtype.kind in "biuf" and not coded:
        return values, np.zeros(len(values), bool)
    if values.dtype.kind in "mM":
        return np.full(len(values), np.nan), ~np.isnat(values)
    lacking = missing(values)
    if values.dtype.kind != "O" or coded:
        return np.full(len(values), np.nan), ~lacking
    real = [isinstance(v, Real | np.bool_ | Decimal) for v in values.tolist()]
    wrong = ~lacking & ~np.array(real, bool)
    found = np.full(len(values), np.nan)
    found[~(lacking | wrong)] = [float(v) for v in values[~(lacking | wrong)].tolist()]
    return found, wrong


def missing(values: np.ndarray) -> np.ndarray:
    """Return where an array of anything has no value: None, NaN, NaT, NA or an empty text."""
    if values.dtype.kind in "biu":
        return np.zeros(values.shape, bool)
    if values.dtype.kind in "fcmM":
        return np.isnat(values) if values.dtype.kind in "mM" else np.isnan(values)
    return np.array([_lacks(value) for value in values.tolist()], bool)


def _lacks(value: Any) -> bool:
    return not value.strip() if isinstance(value, str | bytes) else is_missing(value)


def is_missing(value: Any) -> bool:
    """Whether a value stands for one that is not there, in any library's form."""
    if value is None or value is np.ma.masked or np.ma.is_masked(value):
        return True
    try:
        return bool(value != value)
    except (TypeError, ArithmeticError):  # pandas' NA has no truth, Decimal's sNaN no equal
        return True
    except ValueError:  # an array
        return False


def counts_rows(name: Any, values: np.ndarray | None, first: bool = True) -> bool:
    """Whether a column is its writer's account of the rows, and no measurement.

    So is one that has no name and no value.

    Parameters
    ----------
    name : object
    values : ndarray of shape (n,) or None
        Its numbers, if it has no others.
    first : bool
        Whether it is the first column, the only place for one without a name.
    """
    if not isinstance(name, str):
        return False
    if INDEX.fullmatch(name):
        return True
    if UNNAMED.fullmatch(name.strip()):
        whole = values is None or bool((values == np.floor(values)).all())
        return (first and whole) or (values is not None and bool(np.isnan(values).all()))
    if values is None or name.strip().casefold() not in COUNTING or len(values) < 2:
        return False
    return values[0] in (0, 1) and np.array_equal(values, np.arange(len(values)) + values[0])


def of_frame(frame: Any, names: Sequence[Any], who: str) -> np.ndarray:
    """Return the numbers of a data frame of pandas or polars, or of a table of Arrow.

    Raises
    ------
    TableError
        When a column is none of numbers, lacks values or is the index that pandas has written; it
        names all of them.
    """
    index = [name for i, name in enumerate(names) if is_index(name, i)]
    if hasattr(frame, "iloc"):
        whole = frame.to_numpy()  # NumPy would have pandas change the process's warnings
        if whole.dtype.kind in "biuf" and not index and not np.isnan(whole).any():
            return whole
        columns, drop, rows = [column for _, column in frame.items()], "columns=", "na"
    elif hasattr(frame, "get_columns"):
        columns, drop, rows = frame.get_columns(), "", "_nulls"
    elif hasattr(frame, "column_names"):
        columns, drop, rows = frame.columns, "", "_null"
    else:
        return of_frame(_Columns(np.asarray(frame).T), names, who)
    found, unfit, lacking = [], dict.fromkeys(index, "numbers the rows"), {}
    for name, column in zip(names, columns, strict=True):
        values, wrong = parsed(column)
        found.append(values)
        lacks = np.isnan(values) & ~wrong
        if wrong.any():
            unfit[name] = f"{wrong.sum()} of {len(wrong)} no number"
        elif lacks.any():
            at = row(who, int(lacks.argmax()))
            lacking[name] = f"{lacks.sum()} of {len(lacks)} missing, the first at row {at}"
    if not unfit and not lacking:
        return np.column_stack(found) if found else np.empty((len(frame), 0))
    told = [f"{name!r} ({what})" for name, what in (unfit | lacking).items()]
    drop = f".drop{'_columns' * hasattr(frame, 'column_names')}({drop}{[*unfit]!r})" * bool(unfit)
    raise TableError(
        f"{who}: {counted(len(told), 'column')} cannot be features: {', '.join(told)}",
        client=who, column=next(iter(unfit | lacking)),
        advice=[Advice("give instead", call=f"frame{drop}" + f".drop{rows}()" * bool(lacking))],
    )  # fmt: skip


class _Columns:
    """Columns of a frame that only NumPy can read."""

    def __init__(self, columns: np.ndarray) -> None:
        self.columns = columns

    def get_columns(self) -> list[np.ndarray]:
        return list(self.columns)


def is_index(name: Any, place: int) -> bool:
    """Whether a name is one that pandas gives to a written index."""
    text = str(name)
    return bool(INDEX.fullmatch(text)) or (place == 0 and bool(UNNAMED.fullmatch(text)))
