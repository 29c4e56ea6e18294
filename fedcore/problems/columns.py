"""Columns of tables, of pandas, polars, Arrow or NumPy: what is a number, and what is missing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

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


class Unfit(NamedTuple):
    """Why a column is no feature: cells that are none, or a file has no such column.

    Attributes
    ----------
    file, column : object
    kind : {'text', 'infinite', 'missing', 'absent', 'unnamed'}
    what : str
        The same in words.
    cells : int
        How many cells.
    row : int
        The first of them, from 0.
    """

    file: Any
    column: Any
    kind: str
    what: str
    cells: int = 0
    row: int = 0


def examined(
    names: Iterable[Any], columns: Iterable[Any], file: Any, where: Callable[[int], str]
) -> tuple[np.ndarray, list[Unfit]]:
    """Return columns as a matrix of numbers, see `parsed`, and all that is no finite number.

    `where` says in words where a row is.
    """
    found, unfit = [np.empty((0, 0))], []
    for name, column in zip(names, columns, strict=True):
        values, wrong = parsed(column)
        found.append(values)
        bads = {"text": wrong, "infinite": np.isinf(values), "missing": np.isnan(values) & ~wrong}
        for kind, bad in bads.items():
            if bad.any():
                row, cell = int(bad.argmax()), "missing"
                if kind != "missing":
                    cell = f"no finite number, '{as_array(column)[row]!s:.20}'"
                what = f"{bad.sum()} of {len(bad)} {cell}, the first in {where(row)}"
                unfit.append(Unfit(file, name, kind, what, int(bad.sum()), row))
    return np.column_stack(found[1:] or found), unfit


def as_array(column: Any) -> np.ndarray:
    """Return a column as NumPy has it."""
    return np.ravel(column.to_numpy() if hasattr(column, "to_numpy") else column)


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
    values = as_array(column)
    kind = str(getattr(column, "dtype", getattr(column, "type", "")))
    coded = kind.startswith(("category", "dictionary"))
    if values.dtype.kind in "biuf" and not coded:
        return values, np.zeros(len(values), bool)
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
    text = str(name).strip()
    if INDEX.fullmatch(text):
        return True
    if UNNAMED.fullmatch(text):
        whole = values is None or bool((values == np.floor(values)).all())
        return (first and whole) or (values is not None and bool(np.isnan(values).all()))
    if values is None or text.casefold() not in COUNTING or len(values) < 2:
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
    index = [name for i, name in enumerate(names) if counts_rows(name, None, i == 0)]
    drop, rows = "columns=", "na"
    if hasattr(frame, "iloc"):
        whole = frame.to_numpy()  # NumPy would have pandas change the process's warnings
        if whole.dtype.kind in "biuf" and not index and not np.isnan(whole).any():
            return whole
        columns = [column for _, column in frame.items()]
    elif hasattr(frame, "get_columns"):
        columns, drop, rows = frame.get_columns(), "", "_nulls"
    elif hasattr(frame, "column_names"):
        columns, drop, rows = frame.columns, "", "_null"
    else:
        columns = [*np.asarray(frame).T]
    found, unfit = examined(names, columns, who, lambda i: f"row {row(who, i)}")
    lacking = {one.column: one.what for one in unfit if one.kind == "missing"}
    wrong = {one.column: one.what for one in unfit if one.kind == "text"}
    wrong |= dict.fromkeys(index, "numbers the rows")
    if not (told := wrong | lacking):
        return found if found.size else np.empty((len(frame), 0))
    drop = f".drop{'_columns' * hasattr(frame, 'column_names')}({drop}{[*wrong]!r})" * bool(wrong)
    raise TableError(
        f"{who}: {counted(len(told), 'column')} cannot be features: "
        f"{', '.join(f'{name!r} ({what})' for name, what in told.items())}",
        client=who, column=next(iter(told)), parts=unfit,
        advice=[Advice("give instead", call=f"frame{drop}" + f".drop{rows}()" * bool(lacking))],
    )  # fmt: skip
