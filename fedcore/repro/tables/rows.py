"""Rows of tables: selecting and grouping them, first records of an event, and flags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

Row = dict[str, Any]
Rows = list[Row]
Key = TypeVar("Key")
Value = TypeVar("Value")


def first(holds: np.ndarray) -> int | None:
    """Return the index of the first record that is true, or None."""
    records = np.flatnonzero(holds)
    return int(records[0]) if records.size else None


def reached(holds: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Return each repeat's value at its first record where `holds` is true.

    Parameters
    ----------
    holds, values : ndarray of shape (repeats, records)

    Returns
    -------
    ndarray of shape (repeats,)
        NaN for a repeat without such a record.
    """
    here = values[np.arange(len(holds)), holds.argmax(axis=1)]
    return np.where(holds.any(axis=1), here, np.nan)


def flags(
    holds: np.ndarray | bool, *needed: np.ndarray | float, failed: np.ndarray | bool = False
) -> Any:
    """Return whether each comparison holds, or None if a value that it needs is missing.

    Parameters
    ----------
    holds : bool, or ndarray of shape (repeats,)
    *needed : float, or ndarray of shape (repeats,)
        Values that the comparisons need; NaN if missing, as when another method failed in a repeat.
    failed : bool, or ndarray of shape (repeats,)
        Repeats in which the praised method has failed. The comparison is then false, even if other
        values are missing.

    Returns
    -------
    bool or None, or ndarray of shape (repeats,) of these
    """
    missing = np.isnan(np.array(needed)).any(axis=0)
    found = np.where(failed, np.array(False), np.where(missing, np.array(None), holds))
    return found[()]  # of a single comparison a bool, no array


def gathered(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return for every key the list of its values; keys are in the order of first appearance."""
    found: dict[Key, list[Value]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def groups(rows: Rows, *by: str) -> Iterator[tuple[Row, Rows]]:
    """Yield (values of the columns `by`, rows with these values), in order of first appearance."""
    found = gathered((tuple(row[name] for name in by), row) for row in rows)
    for key, group in found.items():
        yield dict(zip(by, key, strict=True)), group


def chosen(rows: Rows, **values: Any) -> Rows:
    """Return the rows that have these values in these columns."""
    return [row for row in rows if all(row[name] == value for name, value in values.items())]


def columns(rows: Rows, *names: str, **values: Any) -> tuple[np.ndarray, ...]:
    """Return columns of the rows that have these values, each an array of shape (rows,)."""
    found = chosen(rows, **values)
    return tuple(np.array([row[name] for row in found]) for name in names)


def series(rows: Rows, x: str, y: str, **values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of column `x`, and column `y` at each of them, for `plotting.curve`.

    Parameters
    ----------
    rows : list of dict
        The same number of rows for every value of `x`.
    x, y : str
    **values
        As in `chosen`.

    Returns
    -------
    x : ndarray of shape (points,)
        Each value once, rising.
    y : ndarray of shape (repeats, points)
    """
    found = {key[x]: [row[y] for row in group] for key, group in groups(chosen(rows, **values), x)}
    points = sorted(found)
    return np.array(points), np.array([found[point] for point in points]).T


def known(values: np.ndarray, failed: np.ndarray) -> np.ndarray:
    """Return values, with None for a NaN without a failure, which means that nothing was measured.

    Parameters
    ----------
    values, failed : ndarray of shape (repeats,)
    """
    return np.where(np.isnan(values) & ~failed, np.array(None), values)
