"""What the cells of a text table mean: names or numbers, and which sign is the decimal point."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

# What stands for a missing value; an empty text also for one of a column that is kept as text.
EMPTY = ["", "#N/A", "<NA>", "N/A", "n/a", "NA", "na", "NaN", "nan", "-NaN", "-nan", "NULL", "null",
         "None", "none", "NaT"]  # fmt: skip
OTHER = {".": ",", ",": "."}  # by the decimal point, what separates thousands
SPACES = "[ \u00a0\u2009\u202f'\u2019]"  # separate thousands, too
GROUPS = r"[1-9]\d{{0,2}}({}\d{{3}})+"
NUMBER = {
    point: rf"^[+-]?((\d+|{GROUPS.format(f'[{other}]')}|{GROUPS.format(SPACES)})([{point}]\d*)?"
           rf"|[{point}]\d+)([eE][+-]?\d+)?$"
    for point, other in OTHER.items()
}  # fmt: skip
CHANCE = 0.05  # by which numbers may lie outside all others of their columns


class Cells(NamedTuple):
    """Cells of a column that show the same: the first of them, and how many there are."""

    column: Any
    row: int
    text: str
    count: int


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


def number(cell: str) -> float:
    """Return the number in a cell, NaN if it is missing, and infinity for a text.

    Examples
    --------
    >>> [number("1.100"), number("1.100,5"), number("1 100,5"), number("x")]
    [1.1, 1100.5, 1100.5, inf]
    """
    text = cell.strip()
    for point, form in NUMBER.items():
        if re.search(form, text, re.ASCII):
            return float(re.sub(SPACES, "", text.replace(OTHER[point], "")).replace(point, "."))
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


def signs(columns: Mapping[Any, Any]) -> dict[tuple[str, str], list[Cells]]:
    """Return what the cells of columns show of each decimal point, in one item for each column.

    ``only`` are numbers with this point alone, ``groups`` those of them in which the other sign
    separates thousands, ``doubts`` numbers with either point in which it may, and ``blanks`` are
    numbers in which a blank does.

    Parameters
    ----------
    columns : dict of label to ChunkedArray of text
    """
    import pyarrow.compute as arrow

    found: dict[tuple[str, str], list[Cells]] = defaultdict(list)
    for label, column in columns.items():
        fits = {sign: _matches(column, form) for sign, form in NUMBER.items()}
        has = {sign: arrow.match_substring(column, sign).to_numpy() for sign in OTHER}
        for point, other in OTHER.items():
            only = fits[point] & ~fits[other]
            kinds = {"only": only, "groups": only & has[other],
                     "doubts": fits[point] & fits[other] & has[other],
                     "blanks": fits[point] & _matches(column, SPACES)}  # fmt: skip
            for kind, cells in kinds.items():
                if cells.any():
                    at = int(cells.argmax())
                    one = Cells(label, at, column[at].as_py(), int(cells.sum()))
                    found[kind, point].append(one)
    return found


def numbers(column: Any, point: str, na: Collection[str]) -> np.ndarray:
    """Return a column's numbers, NaN for what is missing; as objects if texts are among them."""
    import pyarrow.compute as arrow

    fits, lower = _matches(column, NUMBER[point]), arrow.utf8_lower(column).to_numpy()
    plain = arrow.replace_substring_regex(column, f"{SPACES}|[{OTHER[point]}]", "")
    plain = arrow.if_else(fits, arrow.replace_substring(plain, point, "."), None)
    values = plain.cast("float64").to_numpy()
    values = np.where(lower == "true", 1.0, np.where(lower == "false", 0.0, values))
    texts = column.to_numpy()
    bad = np.isnan(values) & ~np.isin(texts, [*EMPTY, *na])
    return np.where(bad, texts, values) if bad.any() else values


def _matches(column: Any, form: str) -> np.ndarray:
    import pyarrow.compute as arrow

    return arrow.match_substring_regex(column, form).to_numpy()
