"""Statistics over the repeats in a table, and the effect of rounding on these statistics.

The twin of a run repeats the run from a starting matrix that is changed by one rounding (see
`fedcore.experiments.twins`). The column ``twin_x`` contains the twin's value of column ``x``, or
None if the row has no twin. The function `summarise` and the verdicts use ``twin_x`` to estimate
how far rounding changes ``x``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fedcore.errors import InputError, require_known
from fedcore.repro.tables.rows import Row, Rows, groups

TWIN = "twin_"  # prefix of the columns of twins


def summarise(rows: Rows, value: str, by: Sequence[str]) -> Rows:
    """Summarise a column over the repeats in each group of rows.

    Parameters
    ----------
    rows : list of dict
    value : str
        Column of numbers. None and NaN stand for a repeat without a result, see `statistic`.
    by : sequence of str
        Columns that define a group; groups come in the order of their first appearance.

    Returns
    -------
    list of dict
        One row per group, with the columns `by`, ``median``, ``min``, ``max`` and ``count`` (the
        number of all repeats). The median counts a missing result as the largest value; minimum and
        maximum ignore missing results. If some row has a twin (a second run from a start that is
        changed by one rounding), the columns ``rounding`` and ``decided by`` follow (see `rounding`
        and `decided_by`). In a group without twins, ``rounding`` and ``decided by`` are None.
    """
    for row in rows:
        for name in (value, *by):
            require_known(name, row, "this table has no column", InputError)
    any_twin = any(row.get(f"{TWIN}{value}") is not None for row in rows)
    found = []
    for key, group in groups(rows, *by):
        values = [row[value] for row in group]
        summary = key | {
            "median": statistic(values),
            "min": statistic(values, "min", missing="last"),
            "max": statistic(values, "max", missing="first"),
            "count": len(values),
        }
        if any_twin:
            twins = [row.get(f"{TWIN}{value}") for row in group]
            summary |= {"rounding": rounding(values, twins)}
            summary |= {"decided by": decided_by(values, twins)}
        found.append(summary)
    return found


def by_group(value: str | Sequence[str], *by: str) -> Callable[[Rows], Rows]:
    """Return a function for `Table.shown` that summarises a column by groups.

    If `value` lists several columns, their summaries follow one another, and ``column`` names the
    summarised column.
    """
    if isinstance(value, str):
        return lambda rows: summarise(rows, value, by)
    return lambda rows: [
        {"column": name, **row} for name in value for row in summarise(rows, name, by)
    ]


def without(*columns: str) -> Callable[[Rows], Rows]:
    """Return a function for `Table.shown` that removes columns from rows."""
    return lambda rows: [
        {name: value for name, value in row.items() if name not in columns} for row in rows
    ]


def medians(rows: Rows, *columns: str) -> Row:
    """Return the median of each column over the rows, or NaN if there are no rows."""
    return {name: statistic([row[name] for row in rows]) if rows else math.nan for name in columns}


def rounding(values: Sequence[Any], twins: Sequence[Any]) -> float | None:
    """Return the largest difference between a repeat's value and its twin's value.

    Parameters
    ----------
    values, twins : sequence of float or None
        Values of the repeats and, in the same order, of their twins (second runs from a start that
        is changed by one rounding). NaN stands for a run without a result, and None for a twin that
        was not run.

    Examples
    --------
    >>> rounding([46, 63, 98], [113, 43, 52]), rounding([46], [None])
    (67.0, None)
    """
    changes = [_change(value, twin) for value, twin in zip(values, twins, strict=True)]
    return max((change for change in changes if change is not None), default=None)


def decided_by(values: Sequence[Any], twins: Sequence[Any]) -> str | None:
    """Return the source of the differences between repeats: ``start``, ``rounding`` or None.

    The source is ``rounding`` if a twin (a second run from a start that is changed by one rounding)
    differs from its repeat by at least half of the range of `values`. In this case, the range of
    `values` says little about the effect of the starts. The source is None without twins, or if all
    repeats are equal and every twin equals its repeat.

    Examples
    --------
    >>> decided_by([46, 63, 98], [113, 43, 52]), decided_by([213, 250, 339], [213, 251, 339])
    ('rounding', 'start')
    """
    change = rounding(values, twins)
    known = [float(v) for v in values if v is not None and not math.isnan(v)]
    spread = max(known, default=0.0) - min(known, default=0.0)
    if change is None or change == spread == 0:
        return None
    return "rounding" if 2 * change >= spread else "start"


def _change(value: Any, twin: Any) -> float | None:
    if twin is None:
        return None
    known = [value is not None and not math.isnan(value), not math.isnan(twin)]
    if not any(known):
        return 0.0
    return abs(float(value) - float(twin)) if all(known) else math.inf


def statistic(values: Sequence[Any], name: str = "median", *, missing: str = "last") -> float:
    """Return a statistic of values; a missing value is None or NaN.

    Parameters
    ----------
    values : sequence of float or None
        At least one.
    name : {"median", "min", "max", "mean"}
    missing : {"last", "first"}
        With "last", a missing value counts as larger than all others, for example the number of
        rounds to a threshold that was never reached. With "first", a missing value counts as
        smaller than all others.

    Examples
    --------
    >>> statistic([6, 7, None]), statistic([6, None, None])
    (7.0, nan)
    """
    for value in values:
        if value is not None and (isinstance(value, str | bool) or not np.isscalar(value)):
            raise InputError(f"a {name} needs numbers, not {value!r}")
    numbers = [math.nan if value is None else float(value) for value in values]
    known = sorted(number for number in numbers if not math.isnan(number))
    gaps = [math.nan] * (len(numbers) - len(known))
    ordered = known + gaps if missing == "last" else gaps + known
    middle = (ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2])
    parts = {"median": middle, "min": ordered[:1], "max": ordered[-1:], "mean": ordered}
    require_known(name, parts, "unknown statistic", InputError)
    return sum(parts[name]) / len(parts[name])
