"""Columns of tables, of pandas, polars, Arrow or NumPy: what is a number, and what is missing."""

from __future__ import annotations

import re
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

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
    coded = hasattr(column, "cat") or str(getattr(column, "type", "")).startswith("dictionary")
    if values.dtype.kind in "biuf" and not coded:
        return values, np.zeros(len(values), bool)
    if values.dtype.kind in "mM":
        return np.full(len(values), np.nan), ~np.isnat(values)
    lacking = missing(values)
    if values.dtype.kind != "O" or coded:
        return np.full(len(values), np.nan), ~lacking
    wrong = ~lacking & [not isinstance(v, Real | np.bool_ | Decimal) for v in values.tolist()]
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
    if isinstance(value, str | bytes):
        return not value.strip()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return True
    return isinstance(value, Real | Decimal) and value != value


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
