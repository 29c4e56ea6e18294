"""What the cells of a text table mean: names or numbers, and which sign is the decimal point."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from fedcore.problems.columns import EMPTY, MINUS, NUMBER, OTHER, SPACES, number

TRUTHS = {"true": 1.0, "false": 0.0}


class Cells:
    """The cells of a file's columns, and what they show of its decimal point.

    Parameters
    ----------
    columns : sequence of ChunkedArray of text
        They are looked at as one, one after the other.
    asked : str or None
        The decimal point that a user has named. It counts unless the file shows another alone.
    na : sequence of str
        What is missing, beside `EMPTY`.

    Attributes
    ----------
    point : str
        The decimal point of most cells that show one; a dot, if none does.
    shown : dict of str to bool
        By decimal point: whether there are numbers with no other.
    odd, doubts : ndarray of bool
        Which cells are numbers that Python or who asks writes otherwise, and where the other sign
        may separate thousands, while nothing tells if it does.
    """

    def __init__(self, columns: Sequence[Any], asked: str | None, na: Sequence[str]) -> None:
        import pyarrow as arrow
        from pyarrow import compute

        chunks = [chunk for column in columns for chunk in column.chunks]
        cells = arrow.chunked_array(chunks, arrow.string())
        empty = compute.is_in(cells, arrow.array([*EMPTY, *na]))
        self._cells, self._values = compute.if_else(empty, None, cells), None
        self._shape = max(len(columns), 1), -1
        try:  # all are numbers as Python writes them
            self._values = self._cells.cast("float64").to_numpy() if asked != "," else None
        except arrow.ArrowInvalid:
            pass
        fits = {point: self._match(form) for point, form in NUMBER.items()}
        only = {point: fits[point] & ~fits[other] for point, other in OTHER.items()}
        most = max(OTHER, key=lambda point: only[point].sum())
        self.shown = {point: bool(own.any()) for point, own in only.items()}
        denied = asked is None or (self.shown[most] and not self.shown[asked])
        self.point = point = most if denied else str(asked)
        has = self._match(f"[{OTHER[point]}]")
        self.doubts = fits[point] & fits[OTHER[point]] & has
        self.doubts &= not (asked == point or (only[point] & has).any())
        self._fits = fits[point]
        self.odd = self._fits & self._match(f"{SPACES}|[,{MINUS}{OTHER[point]}]")
        self.odd |= only[point] & (asked == OTHER[point])
        self._plain = self._cells
        if self.odd.any():
            thousands = f"{SPACES}|[{OTHER[point]}]"
            self._plain = compute.replace_substring_regex(self._plain, thousands, "")
            for sign, plain in ((point, "."), (MINUS, "-")):
                self._plain = compute.replace_substring(self._plain, sign, plain)

    def _match(self, form: str) -> np.ndarray:
        from pyarrow import compute

        if self._values is not None:
            return np.zeros(len(self._cells), bool)
        return compute.match_substring_regex(self._cells, form).fill_null(False).to_numpy()

    def longest(self, which: np.ndarray) -> tuple[int, str]:
        """Return the place of the longest of some cells, and what it holds."""
        from pyarrow import compute

        at = int((which * compute.utf8_length(self._cells).fill_null(0).to_numpy()).argmax())
        return at, self._cells[at].as_py()

    def numbers(self) -> list[np.ndarray]:
        """Return each column's numbers, NaN for what is missing; as objects if it has texts."""
        from pyarrow import compute

        values = self._values
        if values is None:
            values = compute.if_else(self._fits, self._plain, None).cast("float64").to_numpy()
        bad = (~np.isfinite(values) & self._cells.is_valid().to_numpy()).reshape(self._shape)
        columns = [*values.reshape(self._shape).copy()]
        for i in np.flatnonzero(bad.any(axis=1)).tolist():
            cells = self._column(self._cells, i).filter(bad[i]).to_pylist()
            values = [TRUTHS.get(cell.lower(), cell) for cell in cells]
            if any(isinstance(value, str) for value in values):
                columns[i] = columns[i].astype(object)
            columns[i][bad[i]] = values
        return columns

    def texts(self, i: int) -> np.ndarray:
        """Return a column's texts, empty for what is missing; numbers as Python writes them."""
        from pyarrow import compute

        cells = compute.if_else(self._fits, self._plain, self._cells).fill_null("")
        return self._column(cells, i).to_numpy()

    def _column(self, cells: Any, i: int) -> Any:
        rows = len(cells) // self._shape[0]
        return cells.slice(i * rows, rows)


def fit(rows: Sequence[Sequence[str]], sign: str) -> tuple[int, int]:
    """Return how many rows have as many cells as most have, and how many cells these are.

    None fit if these are one, or two that may be one number.
    """
    width, times = Counter(map(len, rows)).most_common(1)[0] if rows else (0, 0)
    wide = [row for row in rows if len(row) == width]
    one = width == 2 and wide[0] != rows[0] and np.isfinite(number(sign.join(wide[0])))
    return times * (width > 1 and not one), width


def head(rows: Sequence[Sequence[str]], width: int) -> int | None:
    """Return which row has the columns' names; None if the first one may have numbers.

    Names stand above the first row of numbers. Of several rows of texts there, they are the one
    with most different texts, and those above it are titles.

    Parameters
    ----------
    rows : sequence of sequence of str
    width : int
        Cells of most rows.

    Examples
    --------
    >>> texts = "a,b|1,2", "2019,2020|5,6", "a title|in,|age,dose|1,2", "x1,2|3,4", "x,1|y,2"
    >>> [head([line.split(",") for line in text.split("|")], 2) for text in texts]
    [0, None, 2, 0, None]
    """
    at = [i for i, row in enumerate(rows) if len(row) == width]
    values = np.array([[number(cell) for cell in rows[i]] for i in at]).reshape(-1, width)
    finite, text = np.isfinite(values), np.isinf(values)
    numeric = finite.any(axis=0) & (finite.sum(axis=0) >= text[1:].sum(axis=0))
    data = (finite & numeric).any(axis=1) & ~(text & numeric).any(axis=1)
    first = int(data.argmax()) if data.any() else 1
    if not first and not at[0]:
        return None
    above = [i for i in range(min(first, len(at))) if not (at[i] and finite[i].any())]
    filled = {i: len({*rows[at[i]]} - {""}) + (not rows[at[i]][0]) for i in above}  # or an index
    return at[max(above, key=filled.__getitem__)] if above else 0


def may_be_names(row: Sequence[str]) -> bool:
    """Return whether numbers may be names: whole ones, such as years, or a growing scale.

    Examples
    --------
    >>> [may_be_names(row.split()) for row in ("2019 2020", "400.5 401 401.5", "0.3 -1.2", "id 2")]
    [True, True, False, True]
    """
    values = np.array([number(cell) for cell in row])
    values = values[np.isfinite(values)]
    return bool(
        (values == np.round(values)).all() or (len(values) > 1 and (np.diff(values) > 0).all())
    )
