"""Whether the first line of a text table has names or numbers, as far as one can tell."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np

# What stands for a missing value; an empty text also for one of a column that is kept as text.
EMPTY = ["", "#N/A", "<NA>", "N/A", "n/a", "NA", "na", "NaN", "nan", "-NaN", "-nan", "NULL", "null",
         "None", "none", "NaT"]  # fmt: skip
NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?")
LONG = 5  # numbers in a row that rise or fall by chance in one table of sixty
CHANCE = 0.05  # by which numbers may lie outside all others of their columns


def is_named(rows: Sequence[Sequence[str]]) -> bool | None:
    """Return whether the first row has the columns' names; None if one cannot tell.

    It has if a text stands above numbers. Numbers above numbers may be names if they count by one
    step, begin with a zero, rise or fall as no other row does, or are unlike all others of their
    columns.

    Examples
    --------
    >>> texts = "a,b|1,2", "0,1,2|5,7,6", "2019,2020|5,6", "400.5,401,401.5|3,1,2", "001,17|3,2"
    >>> [is_named([line.split(",") for line in text.split("|")]) for text in texts]
    [True, None, None, None, None]
    >>> texts = "3,1|5,2", "5,5,5|1,2,3", "1,0,2|5,6,7", "x,3.5|y,2.5", "id,2019,2020|x,3.5,2.5"
    >>> [is_named([line.split(",") for line in text.split("|")]) for text in texts]
    [False, False, False, None, True]
    """
    first = [cell.strip() for cell in rows[0]]
    rest = [[cell.strip() for cell in row] for row in rows[1:] if len(row) == len(first)]
    columns = [[cell for cell in column if cell not in EMPTY] for column in zip(*rest, strict=True)]
    numeric = [i for i, cells in enumerate(columns) if cells and all(map(NUMBER.fullmatch, cells))]
    if not numeric:
        numeric = [i for i, cell in enumerate(first) if NUMBER.fullmatch(cell)]
        if len(numeric) < len(first):
            return True
    above = [first[i] for i in numeric]
    if not all(NUMBER.fullmatch(cell) or cell in EMPTY for cell in above):
        return True
    others = np.array([[_value(row[i]) for i in numeric] for row in rest], float)
    alike = _like_names([cell for cell in above if cell], others.reshape(-1, len(numeric)))
    if len(numeric) < len(first) or (first[0] == "" and alike):
        return True if alike else None
    return None if alike else False


def _value(cell: str) -> float:
    return float(cell.replace(",", ".")) if NUMBER.fullmatch(cell) else np.nan


def _like_names(cells: Sequence[str], others: np.ndarray) -> bool:
    """Whether numbers may be names of columns with these other numbers."""
    values = np.array([_value(cell) for cell in cells])
    if len(values) < 2 and list(cells) == ["0"]:  # as pandas writes a column without a name
        return True
    if any(re.match(r"[+-]?0\d", cell) for cell in cells):
        return True
    steps = np.diff(values)
    if len(steps) and np.allclose(steps, steps[0], rtol=1e-6, atol=0):
        # Any two numbers have one step.
        return steps[0] == 1 or (len(steps) > 1 and steps[0] != 0)
    if len(values) != others.shape[1] or not len(others):
        return False
    if len(values) >= LONG and _sorted(values) and not all(map(_sorted, others)):
        return True
    outside = (values < np.nanmin(others, axis=0)) | (values > np.nanmax(others, axis=0))
    trend = np.array([_sorted(np.append(v, c)) for v, c in zip(values, others.T, strict=True)])
    by_chance = (2 / (len(others) + 1)) ** len(values)
    return bool((outside & ~trend).all()) and by_chance < CHANCE


def _sorted(values: np.ndarray) -> bool:
    pairs = list(itertools.pairwise(values))
    return all(a < b for a, b in pairs) or all(a > b for a, b in pairs)
