"""Select and group rows of tables, find when an event first occurs, and compare values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

Row = dict[str, Any]
Rows = list[Row]
Key = TypeVar("Key")
Value = TypeVar("Value")


def first(holds: np.ndarray) -> int | None:
    """Return the index of the first true entry of `holds`, or None if there is none."""
    records = np.flatnonzero(holds)
    return int(records[0]) if records.size else None


def reached(holds: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return each repeat's value at the first recorded iteration where `holds` is true.

    Parameters
    ----------
    holds, values : ndarray of shape (repeats, records)
        Condition and value at each recorded iteration of each repeat.

    Returns
    -------
    ndarray of shape (repeats,)
        The value is NaN for a repeat in which `holds` is never true.
    """
    here = values[np.arange(len(holds)), holds.argmax(axis=1)]
    return np.where(holds.any(axis=1), here, np.nan)


def flags(
    holds: np.ndarray | bool, *needed: np.ndarray | float, failed: np.ndarray | bool = False
) -> Any:
    """Return whether each comparison holds, or None if the comparison lacks a value.

    Parameters
    ----------
    holds : bool, or ndarray of shape (repeats,)
    *needed : float, or ndarray of shape (repeats,)
        Values that the comparisons need. A value is NaN if it is missing.
    failed : bool, or ndarray of shape (repeats,)
        True for the repeats in which the method that should win has failed. In such a repeat, the
        comparison is false even if values are missing.

    Returns
    -------
    bool or None, or ndarray of shape (repeats,) of these
    """
    missing = np.isnan(np.array(needed)).any(axis=0)
    found = np.where(failed, np.array(False), np.where(missing, np.array(None), holds))
    return found[()]  # of a single comparison a bool, no array


def gathered(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return a dict from each key to its list of values, in the order of first appearance."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def groups(rows: Rows, *by: str) -> Iterator[tuple[Row, Rows]]:
    """Yield each combination of values in the columns `by`, with the rows that have these values.

    The combinations have the order of their first appearance.
    """
    found = gathered((tuple(row[name] for name in by), row) for row in rows)
    for key, group in found.items():
        yield dict(zip(by, key, strict=True)), group


def chosen(rows: Rows, **values: Any) -> Rows:
    """Return the rows that have the given value in each named column."""
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def columns(rows: Rows, *names: str, **values: Any) -> tuple[np.ndarray, ...]:
    """Return the columns `names` of the rows that match `values`, as arrays of shape (rows,)."""
    found = chosen(rows, **values)
    return tuple(np.array([row[name] for row in found]) for name in names)


def series(rows: Rows, x: str, y: str, **values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct values of column `x`, with the values of column `y` at each of them.

    Parameters
    ----------
    rows : list of dict
        Rows of a table; every value of column `x` has equally many rows.
    x, y : str
    **values
        Values that rows must have in the named columns in order to be used.

    Returns
    -------
    x : ndarray of shape (points,)
        The distinct values of column `x`, in rising order.
    y : ndarray of shape (repeats, points)
        The values of column `y` at each point, in the order of the rows.
    """
    found = {key[x]: [row[y] for row in group] for key, group in groups(chosen(rows, **values), x)}
    points = sorted(found)
    return np.array(points), np.array([found[point] for point in points]).T


def known(values: np.ndarray, failed: np.ndarray) -> np.ndarray:
    """Return `values` with None in place of each NaN whose repeat has not failed.

    A NaN without a failure means that nothing was measured.

    Parameters
    ----------
    values, failed : ndarray of shape (repeats,)
    """
    return np.where(np.isnan(values) & ~failed, np.array(None), values)
