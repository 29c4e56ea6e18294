"""Whether the first line of a text table has names or numbers, as far as one can tell."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

# What stands for a missing value; an empty text also for one of a column that is kept as text.
EMPTY = ["", "#N/A", "<NA>", "N/A", "n/a", "NA", "na", "NaN", "nan", "-NaN", "-nan", "NULL", "null",
         "None", "none", "NaT"]  # fmt: skip
OTHER = {".": ",", ",": "."}  # by the decimal point, what separates thousands
NUMBER = {
    point: re.compile(rf"[+-]?((\d+|[1-9]\d{{0,2}}([{other}]\d{{3}})+)([{point}]\d*)?|[{point}]\d+)"
                      r"([eE][+-]?\d+)?", re.ASCII)
    for point, other in OTHER.items()
}  # fmt: skip
CHANCE = 0.05  # by which numbers may lie outside all others of their columns


def is_named(rows: Sequence[Sequence[str]]) -> bool | None:
    """Return whether the first row has the columns' names; None if one cannot tell.

    It has if a text stands above numbers. Numbers above numbers may be names if they count by one
    step, begin with a zero, or are unlike all others of their columns.

    Examples
    --------
    >>> texts = "a,b|1,2", "0,1,2|5,7,6", "2019,2020|5,6", "400.5,401,401.5|3,1,2", "001,17|3,2"
    >>> [is_named([line.split(",") for line in text.split("|")]) for text in texts]
    [True, None, None, None, None]
    >>> texts = "3,1|5,2", "5,5,5|1,2,3", "1,0,2|5,6,7", "x,3.5|y,2.5", "id,2019,2020|x,3.5,2.5"
    >>> [is_named([line.split(",") for line in text.split("|")]) for text in texts]
    [False, False, False, None, True]
    """
    width = len(rows[0])
    first, *rest = [[number(cell) for cell in row] for row in rows if len(row) == width]
    above, below = np.array(first), np.array(rest).reshape(-1, width)
    numeric = np.isfinite(below).any(axis=0) & ~np.isinf(below).any(axis=0)
    whole = numeric.all() or not numeric.any()
    numeric |= whole
    if np.isinf(above[numeric]).any():
        return True
    numeric &= np.isfinite(above)
    alike = _like_names([rows[0][i].strip() for i in range(width) if numeric[i]], below[:, numeric])
    if not whole or not rows[0][0].strip():
        return True if alike else None
    return None if alike else False


def number(cell: str, points: str = ".,") -> float:
    """Return the number in a cell, NaN if it is missing, and infinity for a text.

    `points` are the signs that may be a decimal point; the other one then separates thousands.

    Examples
    --------
    >>> [number("1.100", ","), number("1.100", "."), number("1.100,5"), number("1.5", ",")]
    [1100.0, 1.1, 1100.5, inf]
    """
    text = cell.strip()
    for point in points:
        if NUMBER[point].fullmatch(text):
            return float(text.replace(OTHER[point], "").replace(point, "."))
    return np.nan if text in EMPTY else np.inf


def _like_names(cells: Sequence[str], others: np.ndarray) -> bool:
    """Whether numbers may be names of columns with these other numbers."""
    if list(cells) == ["0"] or any(re.match(r"[+-]?0\d", cell) for cell in cells):
        return True  # 0, as pandas writes a column without a name
    values = np.array([number(cell) for cell in cells])
    steps = np.diff(values)
    even = len(steps) and np.allclose(steps, steps[0], rtol=1e-6, atol=0)
    if even and (steps[0] == 1 or (len(steps) > 1 and steps[0] != 0)):
        return True  # any two numbers have one step
    low, high = np.fmin.reduce(others, initial=np.inf), np.fmax.reduce(others, initial=-np.inf)
    by_chance = (2 / (len(others) + 1)) ** len(values)
    return bool(((values < low) | (values > high)).all()) and by_chance < CHANCE
