"""What the cells of a text table mean: names or numbers, and which sign is the decimal point."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fedcore.problems.columns import EMPTY, NUMBER, OTHER, SPACES, number

CHANCE = 0.05  # by which numbers may lie outside all others of their columns


class Signs:
    """What the cells of a file show of its decimal point.

    Parameters
    ----------
    columns : sequence of ChunkedArray of text
        They are looked at as one, one after the other.

    Attributes
    ----------
    numbers : dict of str to ndarray of bool, shape (n_columns, n_rows)
        By decimal point: which cells are numbers.
    only, groups, doubts : dict of str to ndarray of bool
        By decimal point: numbers with no other, those of them in which the other sign separates
        thousands, and numbers with either point in which it may.
    blanks : ndarray of bool
        Numbers in which a blank separates thousands.
    point : str
        The decimal point of most columns, and else of most cells; a dot, if none shows one.
    unclear : bool
        Whether nothing tells if the other sign separates thousands.
    """

    def __init__(self, columns: Sequence[Any]) -> None:
        import pyarrow as arrow

        chunks = [chunk for column in columns for chunk in column.chunks]
        self._cells = arrow.chunked_array(chunks, arrow.string())
        fits = {point: _matches(self._cells, form) for point, form in NUMBER.items()}
        has = {sign: _has(self._cells, sign) for sign in OTHER}
        self.numbers = {point: fit.reshape(max(len(columns), 1), -1) for point, fit in fits.items()}
        self.only = {point: fits[point] & ~fits[other] for point, other in OTHER.items()}
        self.groups = {point: self.only[point] & has[other] for point, other in OTHER.items()}
        self.doubts = {p: fits[p] & fits[other] & has[other] for p, other in OTHER.items()}
        self.blanks = (fits["."] | fits[","]) & _matches(self._cells, SPACES)
        votes = {point: only.reshape(max(len(columns), 1), -1).sum(axis=1)
                 for point, only in self.only.items()}  # fmt: skip
        self.point = max(OTHER, key=lambda point: (
            (votes[point] > votes[OTHER[point]]).sum(), votes[point].sum()
        ))  # fmt: skip
        self.unclear = self.doubts[self.point].any() and not self.groups[self.point].any()

    def first(self, cells: np.ndarray) -> tuple[int, str]:
        """Return the place of the first of these cells, and what it holds."""
        return int(cells.argmax()), self._cells[int(cells.argmax())].as_py()


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
    [False, False, False, False, True]
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
    return alike and (None if whole and rows[0][0].strip() else True)


def fit(rows: Sequence[Sequence[str]], sign: str) -> tuple[int, int]:
    """Return how many rows have as many cells as most have, and how many cells these are.

    None fit if these are one, or two that may be one with a decimal comma.
    """
    width, times = Counter(map(len, rows)).most_common(1)[0] if rows else (0, 0)
    wide = [row for row in rows if len(row) == width]
    one = width == 2 and sign == "," and wide[0] != rows[0] and np.inf not in map(number, wide[0])
    return times * (width > 1 and not one), width


def head(rows: Sequence[Sequence[str]], width: int, header: bool | None) -> tuple[int, bool | None]:
    """Return how many rows stand above a table, and whether its first one has the names.

    `width` cells are in most rows, and `header` says whether the first has names. Titles stand
    above names alone: a row of texts, as wide as most rows.
    """
    wide = [i for i, row in enumerate(rows)
            if len(row) == width and (width < 3 or sum(map(bool, row)) > 1)]  # fmt: skip
    above = wide[0] if wide and header is None else 0
    if above and is_named(rows[above:]) and not np.isfinite([*map(number, rows[above])]).any():
        return above, True
    return 0, is_named(rows) if header is None and rows else header


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


def numbers(column: Any, number: np.ndarray, point: str, na: Sequence[str]) -> np.ndarray:
    """Return a column's numbers, NaN for what is missing; as objects if texts are among them.

    `number` says which cells are numbers with this decimal point; truth values are others.
    """
    import pyarrow as arrow
    from pyarrow import compute

    values = compute.if_else(number, _plain(column, point), None).cast("float64").to_numpy()
    if number.all():
        return values
    values = np.where(_matches(column, "^(?i)false$"), 0, values)
    values = np.where(_matches(column, "^(?i)true$"), 1, values)
    bad = np.isnan(values) & ~compute.is_in(column, arrow.array([*EMPTY, *na])).to_numpy()
    if bad.any():
        values = values.astype(object)
        values[bad] = column.filter(bad).to_numpy()
    return values


def texts(column: Any, point: str, na: Sequence[str]) -> np.ndarray:
    """Return a column's texts, empty for what is missing; numbers among them as Python has them."""
    from pyarrow import compute

    number = _matches(column, NUMBER[point])
    cells = compute.if_else(number, _plain(column, point), column).to_numpy()
    return np.where(np.isin(cells, na), "", cells)


def _plain(column: Any, point: str) -> Any:
    from pyarrow import compute

    plain = compute.replace_substring_regex(column, f"{SPACES}|[{OTHER[point]}]", "")
    return compute.replace_substring(plain, point, ".")


def _has(column: Any, sign: str) -> np.ndarray:
    import pyarrow.compute as arrow

    return arrow.match_substring(column, sign).to_numpy()


def _matches(column: Any, form: str) -> np.ndarray:
    import pyarrow.compute as arrow

    return arrow.match_substring_regex(column, form).to_numpy()
