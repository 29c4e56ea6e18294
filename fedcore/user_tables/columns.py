"""Decide which values in the columns of files and data frames are numbers or missing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from fedcore.arrays import missing
from fedcore.errors import MOST, TableError
from fedcore.words import counted

SHOWN = 8  # columns of a kind that a sentence names


class Unfit(NamedTuple):
    """Reason why a column cannot be a feature, such as cells that are not numbers.

    Attributes
    ----------
    file, column : object
        Name of the file or client, and name of the column.
    kind : {'text', 'missing', 'absent', 'twice', 'unnamed', 'index'}
    what : str
        The reason in words.
    cells : int
        Number of bad cells.
    row : int
        Index of the first row with a bad cell.
    marks : collection of str
        Distinct texts in the bad cells, if they are so few that they may mark missing values.
    meant : object
        Probable misspelling of `column` among the column names of the file.
    """

    file: Any
    column: Any
    kind: str
    what: str
    cells: int = 0
    row: int = 0
    marks: Collection[str] = ()
    meant: Any = None


def listed(names: Sequence[Any]) -> str:
    """Return a text with the first few names and the number of further names."""
    rest = f" and {len(names) - SHOWN} more" * (len(names) > SHOWN)
    return f"{', '.join(map(repr, names[:SHOWN]))}{rest}"


def refusal(unfit: Sequence[Unfit], who: str = "", **more: Any) -> TableError:
    """Return a `TableError` that names all unusable columns; `more` are its other arguments."""
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
    """Return the matrix of numbers in `columns`, and the reasons why columns cannot be used.

    The function `parsed` converts each column. `where` returns the place of a row as text, and `na`
    lists the numbers that mark missing values.
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
    """Return a list with one `Unfit` about the bad cells of a column, or an empty list."""
    if not bad.any():
        return []
    at = int(bad.argmax())
    cell, marks = kind, list[Any]()
    if kind != "missing":
        values = as_values(column)
        why = "a category, that is a label" if is_category(column) else "no finite number"
        cell = f"{why}, '{values[at]!s:.20}'"
        odd = values[bad].tolist() if 2 * bad.sum() < len(bad) else []
        if all(isinstance(one, str) and one.isprintable() for one in odd):
            marks = [*dict.fromkeys(odd)]
        if len(marks) > MOST:
            marks = []
    what = f"{bad.sum()} of {len(bad)} {cell}, the first in {where(at)}"
    return [Unfit(file, name, kind, what, int(bad.sum()), at, marks)]


def as_values(column: Any) -> np.ndarray:
    """Return the values of a pandas, polars, Arrow or SciPy column as a NumPy vector."""
    made = next((name for name in ("to_numpy", "toarray") if hasattr(column, name)), None)
    values = np.asarray(getattr(column, made)() if made else column)
    if made == "to_numpy" and values.ndim > 1:  # polars' structures and arrays
        return np.fromiter(column, object, len(column))
    return np.ravel(values)


def is_category(column: Any) -> bool:
    """Return whether a column of pandas, polars or Arrow holds categories, which are labels."""
    kind = str(getattr(column, "dtype", getattr(column, "type", "")))
    return kind.startswith(("category", "dictionary"))


def parsed(column: Any) -> np.ndarray:
    """Return a column as numbers, with NaN for a missing value and infinity for what is no number.

    Booleans, integers, floats and decimals count as numbers, even in a column of Python objects.
    Texts, dates, durations, complex numbers and categories do not count as numbers. Missing values
    are None, NaN, and the missing values of pandas, polars and Arrow.

    Parameters
    ----------
    column : ndarray of shape (n,), Series of pandas or polars, or ChunkedArray of pyarrow

    Returns
    -------
    ndarray of shape (n,)
        Array of the column's data type if this type is numeric, else of float64.
    """
    values, coded = as_values(column), is_category(column)
    if values.dtype.kind in "biuf" and not coded:
        return values
    found = np.where(missing(values), np.nan, np.inf)
    if values.dtype.kind == "O" and not coded:
        for i in np.flatnonzero(np.isinf(found)):
            if isinstance(values[i], Real | np.bool_ | Decimal):
                found[i] = values[i]
    return found
