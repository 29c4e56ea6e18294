"""Whether the first line of a text table has names or numbers, as far as one can tell."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from fedcore.problems.columns import number

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
