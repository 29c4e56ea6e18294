"""Statistics over the repeats in a table, and how much rounding changes them.

A twin is the same run from a start changed by one rounding (see `fedcore.experiments.twins`). The
column ``twin_x`` holds the value of column ``x`` in the row's twin; None if there was no twin.
`summarise` and the verdicts use it to say how much of ``x`` is rounding. If a row covers several
repeats, ``twin_least_x`` and ``twin_most_x`` are the smallest and largest values of ``x`` when any
repeats are exchanged for their twins. ``twin_change_x`` is the largest change of ``x`` when one
repeat stands alone and is exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fedcore.errors import InputError, require_known
from fedcore.reports.rows import Row, Rows, groups

TWIN = "twin_"  # prefix of the columns of twins
LEAST, MOST, CHANGE = f"{TWIN}least_", f"{TWIN}most_", f"{TWIN}change_"


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
        Columns `by`, ``median``, ``min`` and ``max`` (of the repeats with a result; in the units of
        the column) and ``count`` (of all repeats). If some row has a twin also ``rounding``, see
        `rounding`, and ``decided by``, see `decided_by`; both None for a group without twins.

    Raises
    ------
    InputError
        For an unknown column, or one that holds text.
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
    """Return a function that summarises a column by groups, for `Table.shown`.

    Summaries of several columns follow one another; ``column`` names the column.
    """
    if isinstance(value, str):
        return lambda rows: summarise(rows, value, by)
    return lambda rows: [
        {"column": name, **row} for name in value for row in summarise(rows, name, by)
    ]


def without(*columns: str) -> Callable[[Rows], Rows]:
    """Return a function that leaves columns out, for `Table.shown`."""
    return lambda rows: [
        {name: value for name, value in row.items() if name not in columns} for row in rows
    ]


def medians(rows: Rows, *columns: str) -> Row:
    """Return the medians of columns over rows, see `statistic`; NaN if there are no rows."""
    return {name: statistic([row[name] for row in rows]) if rows else math.nan for name in columns}


def rounding(values: Sequence[Any], twins: Sequence[Any]) -> float | None:
    """Return the largest change of a value by one rounding of the start, over the repeats.

    Parameters
    ----------
    values, twins : sequence of float or None
        Values of the repeats and, in the same order, of their twins. NaN means a run without a
        result; None a twin that was not run.

    Returns
    -------
    float or None
        Infinite if only one of a run and its twin has a result; None if there is no twin.

    Examples
    --------
    >>> rounding([46, 63, 98], [113, 43, 52]), rounding([46], [None])
    (67.0, None)
    """
    changes = [_change(value, twin) for value, twin in zip(values, twins, strict=True)]
    return max((change for change in changes if change is not None), default=None)


def decided_by(values: Sequence[Any], twins: Sequence[Any]) -> str | None:
    """Return the source of the differences between repeats: ``start``, ``rounding`` or None.

    It is ``rounding`` if one rounding of a start changes a value by at least half of the range over
    the starts; the range then says little about the starts. It is None if there are no twins or no
    differences.

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


def exchanged(
    values: Sequence[Any],
    others: Sequence[Sequence[Any]],
    name: str = "median",
    *,
    missing: str = "last",
) -> tuple[float, float]:
    """Return the least and the largest statistic when any values are exchanged for others.

    Parameters
    ----------
    values : sequence of float or None
        At least one; None and NaN mean a missing value.
    others : sequence of sequence of float or None
        For each value, the values that may replace it; empty if it has no twin.
    name, missing : str
        As in `statistic`.

    Returns
    -------
    least, most : float
        Infinite, on the side given by `missing`, if missing values decide.

    Examples
    --------
    >>> exchanged([67, 70, 52], [[85], [62], [74]]), exchanged([5, None], [[], [7]], "max")
    ((62.0, 74.0), (7.0, inf))
    """
    never = math.inf if missing == "last" else -math.inf
    choices = [
        [never if v is None or math.isnan(v) else float(v) for v in (value, *more)]
        for value, more in zip(values, others, strict=True)
    ]
    # Every statistic is monotone in every value: its extremes are at the extremes of the choices.
    least, most = (statistic([end(choice) for choice in choices], name) for end in (min, max))
    return least, most


def compared(ours: Rows, theirs: Rows, column: str, *, tie: bool = False) -> Row:
    """Compare the medians of a column over the repeats of two methods, with and without twins.

    Parameters
    ----------
    ours, theirs : list of dict
        Rows with `column` and that of its twins; no rows for a method without a result.
    column : str
        Numbers above zero, smaller is better; NaN means a repeat without a result.
    tie : bool, default=False
        Whether equal medians count as ours being smaller.

    Returns
    -------
    dict
        ``ratio`` of the medians, ours over theirs, NaN if one is missing; ``holds``, whether ours
        is smaller. ``twin_least_…`` and ``twin_most_…`` are the extremes of both when any repeats
        are exchanged for their twins. ``twin_change_ratio`` is the largest change of the ratio of a
        single repeat to the other method's median. The ``twin_…`` are None if no row has a twin.
    """

    def less(mine: float, other: float) -> bool:
        return mine < other or (tie and mine == other)

    missing = [{column: math.nan}]
    values, twins = (
        [[row.get(name) for row in rows or missing] for rows in (ours, theirs)]
        for name in (column, f"{TWIN}{column}")
    )
    one, other = map(statistic, values)
    found: Row = {"ratio": _over(one, other), "holds": less(one, other)}
    if all(twin is None for twin in (*twins[0], *twins[1])):
        ends = ("least_ratio", "most_ratio", "change_ratio", "least_holds", "most_holds")
        return found | {f"{TWIN}{name}": None for name in ends}
    (least, most), (least_, most_) = (
        exchanged(some, [[twin] * (twin is not None) for twin in others])
        for some, others in zip(values, twins, strict=True)
    )
    changes = (
        rounding(*([_over(x, other) for x in some] for some in (values[0], twins[0]))),
        rounding(*([_over(one, x) for x in some] for some in (values[1], twins[1]))),
    )
    return found | {
        f"{LEAST}ratio": _over(least, most_),
        f"{MOST}ratio": _over(most, least_),
        f"{CHANGE}ratio": max(change or 0.0 for change in changes),
        f"{LEAST}holds": math.isfinite(most_) and less(most, least_),
        f"{MOST}holds": math.isfinite(least) and math.isfinite(least_) and less(least, most_),
    }


def _over(one: float | None, other: float | None) -> float | None:
    """Ratio of two numbers; NaN if one is missing or the second is 0, None if one is None."""
    if one is None or other is None:
        return None
    known = math.isfinite(one) and math.isfinite(other) and other
    return float(one / other) if known else math.nan


def statistic(values: Sequence[Any], name: str = "median", *, missing: str = "last") -> float:
    """Return a statistic of values of which some may be missing (None or NaN).

    Parameters
    ----------
    values : sequence of float or None
        At least one.
    name : {"median", "min", "max", "mean"}
    missing : {"last", "first"}
        Whether a missing value counts as larger than all others (such as rounds to a threshold that
        was never reached) or as smaller.

    Returns
    -------
    float
        NaN if a missing value decides the statistic; one decides every mean.

    Examples
    --------
    >>> statistic([6, 7, None]), statistic([6, None, None])
    (7.0, nan)
    """
    for value in values:
        if value is not None and (isinstance(value, str | bool) or not np.isscalar(value)):
            raise InputError(f"a {name} is taken over numbers, not over {value!r}")
    numbers = [math.nan if value is None else float(value) for value in values]
    known = sorted(number for number in numbers if not math.isnan(number))
    gaps = [math.nan] * (len(numbers) - len(known))
    ordered = known + gaps if missing == "last" else gaps + known
    middle = (ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2])
    parts = {"median": middle, "min": ordered[:1], "max": ordered[-1:], "mean": ordered}
    require_known(name, parts, "unknown statistic", InputError)
    return sum(parts[name]) / len(parts[name])
