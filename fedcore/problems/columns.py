"""Columns of tables, of files and of frames: what is a number, and what is missing."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from fedcore.errors import MOST, TableError
from fedcore.words import counted

SHOWN = 8  # columns of a kind that a sentence names
UNNAMED = re.compile(r"|Unnamed: \d+(\.\d+|_level_\d+)?")  # of pandas for a column without a name
INDEX = re.compile(r"__index_level_\d+__")  # of pandas in Parquet and Arrow
# Names that such a column has if it counts the rows from 0 or 1.
COUNTING = {
    "id", "index", "level_0", "no", "nr", "number", "obs", "row", "row_id", "row_index", "row_nr",
    "row_number", "rowid", "rownames",
}  # fmt: skip
SAMPLE, SEVERAL = 200, 10  # rows looked at first; values that tell ids from measurements
# What stands for a missing value; an empty text also for one of a column that is kept as text.
EMPTY = ["", "#N/A", "<NA>", "N/A", "n/a", "NA", "na", "NaN", "nan", "-NaN", "-nan", "NULL", "null",
         "None", "none", "NaT"]  # fmt: skip
OTHER = {".": ",", ",": "."}  # by the decimal point, what separates thousands
SPACES = "[ \u00a0\u2009\u202f'\u2019]"  # separate thousands, too
MINUS = "\u2212"  # of typographers
GROUPS = r"[1-9]\d{{0,2}}({}\d{{3}})+"
NUMBER = {
    point: rf"^[+{MINUS}-]?((\d+|{GROUPS.format(f'[{other}]')}|{GROUPS.format(SPACES)})"
           rf"([{point}]\d*)?|[{point}]\d+)([eE][+-]?\d+)?$"
    for point, other in OTHER.items()
}  # fmt: skip


class Unfit(NamedTuple):
    """Why a column is no feature: cells that are none, or a file has no such column.

    Attributes
    ----------
    file, column : object
    kind : {'text', 'missing', 'absent', 'twice', 'unnamed', 'index'}
    what : str
        The same in words.
    cells : int
        How many cells.
    row : int
        The first of them, from 0.
    marks : collection of str
        All texts in these cells, if these are so few that they may stand for missing values.
    """

    file: Any
    column: Any
    kind: str
    what: str
    cells: int = 0
    row: int = 0
    marks: Collection[str] = ()


def listed(names: Sequence[Any]) -> str:
    """Return the first of some names, and how many more there are."""
    rest = f" and {len(names) - SHOWN} more" * (len(names) > SHOWN)
    return f"{', '.join(map(repr, names[:SHOWN]))}{rest}"


def refusal(unfit: Sequence[Unfit], who: str = "", **more: Any) -> TableError:
    """Return the error that names all columns that are no features; `more` is for `TableError`."""
    alike: dict[str, list[Unfit]] = {}
    for one in unfit:
        alike.setdefault(one.kind if one.cells else one.what, []).append(one)
    told = []
    for first, *others in alike.values():
        cells = sorted({one.cells for one in others} - {0})
        rest = f"; others {cells[0]}{f'–{cells[-1]}' * (len(cells) > 1)}" if cells else ""
        names = listed([*dict.fromkeys(one.column for one in (first, *others))])
        told.append(f"{names} ({first.what}{rest})")
    columns = counted(len({one.column for one in unfit}), "column")
    says = f"{who}{columns} cannot be used: {', '.join(told)}"
    return TableError(says, row=unfit[0].row, column=unfit[0].column, parts=unfit, **more)


def examined(
    names: Iterable[Any],
    columns: Any,
    file: Any,
    where: Callable[[int], str],
    na: Sequence[float] = (),
) -> tuple[Any, list[Unfit]]:
    """Return a matrix, or a list of columns, as a matrix of numbers, and all that is none.

    See `parsed`; `where` says in words where a row is, and `na` are numbers that stand for missing
    ones.
    """
    found, unfit = [np.empty((0, 0))], list[Unfit]()
    if not isinstance(columns, list):
        numbers = columns.dtype.kind in "biuf"
        if scipy.sparse.issparse(columns) or (numbers and not na and np.isfinite(columns).all()):
            return columns, unfit
        columns = columns.T
    for name, column in zip(names, columns, strict=True):
        values = parsed(column)
        found.append(np.where(np.isin(values, na), np.nan, values) if na else values)
        for kind, bad in (("text", np.isinf(found[-1])), ("missing", np.isnan(found[-1]))):
            unfit += bad_cells(file, name, kind, bad, column, where)
    return np.column_stack(found[1:] or found), unfit


def bad_cells(
    file: Any, name: Any, kind: str, bad: np.ndarray, column: Any, where: Callable[[int], str]
) -> list[Unfit]:
    """Return one description of the bad cells of a column; none if no cell is bad."""
    if not bad.any():
        return []
    at = int(bad.argmax())
    cell, marks = kind, list[Any]()
    if kind != "missing":
        values = as_values(column)
        cell = f"no finite number, '{values[at]!s:.20}'"
        marks = [*dict.fromkeys(values[bad].tolist())] if 2 * bad.sum() < len(bad) else []
        if len(marks) > MOST or not all(isinstance(mark, str) for mark in marks):
            marks = []
    what = f"{bad.sum()} of {len(bad)} {cell}, the first in {where(at)}"
    return [Unfit(file, name, kind, what, int(bad.sum()), at, marks)]


def as_values(column: Any) -> np.ndarray:
    """Return what a column holds, whatever it is, as a vector of NumPy."""
    made = next((name for name in ("to_numpy", "toarray") if hasattr(column, name)), None)
    return np.ravel(getattr(column, made)() if made else column)


def parsed(column: Any) -> np.ndarray:
    """Return a column as numbers, NaN for missing values, and infinity for what is neither.

    Numbers are truth values, whole and floating-point numbers and decimals, also in a column of
    Python objects. Texts, dates, durations, complex numbers and categories are none. Missing are
    None, NaN, and what pandas, polars and Arrow have for them.

    Parameters
    ----------
    column : ndarray of shape (n,), Series of pandas or polars, or ChunkedArray of pyarrow

    Returns
    -------
    ndarray of shape (n,)
        As it is, if its type is one of numbers; else float64.
    """
    values = as_values(column)
    kind = str(getattr(column, "dtype", getattr(column, "type", "")))
    coded = kind.startswith(("category", "dictionary"))
    if values.dtype.kind in "biuf" and not coded:
        return values
    found = np.where(missing(values), np.nan, np.inf)
    if values.dtype.kind == "O" and not coded:
        for i in np.flatnonzero(np.isinf(found)):
            if isinstance(values[i], Real | np.bool_ | Decimal):
                found[i] = values[i]
    return found


def missing(values: np.ndarray) -> np.ndarray:
    """Return where an array of anything has no value: None, NaN, NaT, NA or an empty text."""
    if values.dtype.kind in "biufcmM":
        return np.isnan(values)
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


def counts_rows(name: Any, column: Any, first: bool) -> bool:
    """Whether a column is its writer's account of the rows, and no measurement.

    So is one without a name that holds no number, or whole ones where `first`, the place of an
    index.
    """
    text = str(name).strip()
    unnamed = UNNAMED.fullmatch(text)
    if INDEX.fullmatch(text) or not (unnamed or text.casefold() in COUNTING):
        return bool(INDEX.fullmatch(text))
    values = parsed(column)
    if unnamed:
        return bool(~np.isfinite(values).any() or (first and (values == np.floor(values)).all()))
    return len(values) > 1 and np.array_equal(values, np.arange(len(values)) + (values[0] == 1))


def number(cell: str, points: str = ".,") -> float:
    """Return the number in a cell, NaN if it is missing, and infinity for a text.

    `points` are the signs that may be a decimal point; the other one then separates thousands.

    Examples
    --------
    >>> [number("1.100"), number("1.100,5"), number("1 100,5"), number("x")]
    [1.1, 1100.5, 1100.5, inf]
    """
    text = cell.strip()
    for point in points:
        if re.search(NUMBER[point], text, re.ASCII):
            plain = re.sub(f"{SPACES}|[{OTHER[point]}]", "", text)
            return float(plain.replace(point, ".").replace(MINUS, "-"))
    return np.nan if text in EMPTY else np.inf


def identifies(values: np.ndarray) -> bool:
    """Whether a column has another whole number in each of several rows, or days as YYYYMMDD."""
    return _differ(values[:SAMPLE]) and _differ(values)


def _differ(values: np.ndarray) -> bool:
    values = values[np.isfinite(values)]
    if len(values) < SEVERAL or (values % 1 > 0).any():
        return False
    year, month, day = values // 10000, values // 100 % 100, values % 100
    days = abs(year - 2000) <= 200, abs(month - 6.5) < 6, abs(day - 16) <= 15
    return bool(np.logical_and.reduce(days).all()) or len(np.unique(values)) == len(values)


def absent(lists: Mapping[str, Sequence[Any]]) -> list[Unfit]:
    """Return the columns that only some have, where `lists` has those of each file or client."""
    every, found = dict.fromkeys(itertools.chain(*lists.values())), list[Unfit]()
    for who, names in lists.items():
        own = {name: str(name).casefold() for name in names}
        alike = {low: f", which has {name!r}" for name, low in own.items()}
        found += [Unfit(who, name, "absent", f"not in {who}{alike.get(str(name).casefold(), '')}")
                  for name in every if name not in own]  # fmt: skip
    return found
