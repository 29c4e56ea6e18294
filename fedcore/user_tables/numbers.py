"""Convert the cells of a text table to numbers (step 3 of 3), and find ambiguous cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from fedcore.user_tables.columns import listed

# What stands for a missing value; an empty text also for one of a column that is kept as text.
EMPTY = ["", "#N/A", "<NA>", "N/A", "n/a", "NA", "na", "NaN", "nan", "-NaN", "-nan", "NULL", "null",
         "None", "none", "NaT"]  # fmt: skip
OTHER = {".": ",", ",": "."}  # by the decimal point, what separates thousands
SPACES = "[ \u00a0\u2009\u202f'\u2019]"  # separate thousands, too
MINUS = "\u2212"  # of typographers
GROUPS = r"[1-9]\d{{0,2}}({}\d{{3}})+"
NUMBER = {
    point: rf"^[+{MINUS}-]?((\d+([{point}]\d*)?|[{point}]\d+)([eE][+-]?\d+)?"
           rf"|({GROUPS.format(f'[{other}]')}|{GROUPS.format(SPACES)})([{point}]\d*)?)$"
    for point, other in OTHER.items()
}  # fmt: skip
UNCLEAR = rf"^[+{MINUS}-]?[1-9]\d{{0,2}}[.,]\d{{3}}$"  # decimals or thousands
CODED = r"^[+-]?(0\d|\d+[eE]\d)"  # as codes and dates are written
TRUTHS = {"true": 1.0, "false": 0.0}


def number(cell: str, points: str = ".,") -> float:
    """Return the number in a cell, NaN if it is missing, and infinity for a text.

    `points` lists the signs that may be a decimal point. If a dot is the decimal point, a comma
    separates thousands, and vice versa.

    Examples
    --------
    >>> [number("1.100"), number("1.100,5"), number("1 100,5"), number("x")]
    [1.1, 1100.5, 1100.5, inf]
    """
    text = cell.strip()
    for point in points:
        if re.search(NUMBER[point], text, re.ASCII):
            plain = re.sub(f"{SPACES}|[{OTHER[point]}]", "", text)
            return float(plain.replace(point, ".").replace(MINUS, "-"))
    return np.nan if text in EMPTY else np.inf


def written(value: Any) -> str:
    """Return the shortest text that reads back as a number.

    >>> written(999.0), written(0.1), written(2**63 - 1)
    ('999', '0.1', '9.223372036854776e+18')
    """
    return repr(float(value)).removesuffix(".0")


class Cells:
    """The cells of a file's columns, and the decimal point that these cells show.

    Parameters
    ----------
    columns : sequence of ChunkedArray of text
        Columns of equal length, whose cells are joined to one long column.
    asked : str or None
        Requested decimal point; ignored if some cells need the other decimal point and no cell
        needs the requested one.
    na : sequence of str
        Texts that mark a missing value, in addition to `EMPTY`.

    Attributes
    ----------
    point : str
        Decimal point with which the cells are read. If no point is requested, `point` is the sign
        that more cells need, or a dot in a tie.
    shown : dict of str to bool
        Tells for each decimal point whether some number can be read only with it.
    doubts : ndarray of bool
        Mask of ambiguous cells: their dot or comma may mark decimals or thousands, and no other
        cell decides which.
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
        coded, valid = self._match(f"{UNCLEAR}|{CODED}"), self._cells.is_valid().to_numpy()
        unclear = self._match(UNCLEAR) & coded if coded.any() else coded
        has = {sign: self._match(sign, compute.match_substring) for sign in OTHER}
        if self._values is None:
            fits = {point: self._match(form) for point, form in NUMBER.items()}
        else:
            fits = {".": valid, ",": unclear | (valid & ~has["."])}
        only = {point: fits[point] & ~fits[other] for point, other in OTHER.items()}
        most = max(OTHER, key=lambda point: only[point].sum())
        self.shown = {point: bool(own.any()) for point, own in only.items()}
        denied = asked is None or (self.shown[most] and not self.shown[asked])
        self.point = point = most if denied else str(asked)
        self._fits = fits[point]
        # Other cells of the column show what this sign is; other cells of the file, what it may be.
        shows = {sign: (only[point] & has[sign]).reshape(self._shape) for sign in OTHER}
        guessed = unclear & (asked != point)
        for sign, own in shows.items():
            alone = np.repeat(~own.any(axis=1), own.shape[1])
            guessed &= ~has[sign] | alone
        self.doubts = guessed & has[OTHER[point]] & (not shows[OTHER[point]].any())
        self._plain, odd = self._cells, np.zeros(len(valid), bool)
        if self._values is None:
            odd = self._fits & self._match(f"{SPACES}|[,{MINUS}{OTHER[point]}]")
            odd |= only[point] & (asked == OTHER[point])
            thousands = f"{SPACES}|[{OTHER[point]}]"
            self._plain = compute.replace_substring_regex(self._plain, thousands, "")
            for sign, plain in ((point, "."), (MINUS, "-")):
                self._plain = compute.replace_substring(self._plain, sign, plain)
        self._told = guessed, self._fits & coded & ~unclear, odd & ~guessed

    def _match(self, form: str, by: Callable[..., Any] | None = None) -> np.ndarray:
        from pyarrow import compute

        found = (by or compute.match_substring_regex)(self._cells, form)
        return found.fill_null(False).to_numpy()

    def longest(self, which: np.ndarray) -> tuple[int, str]:
        """Return the position and the text of the longest cell that `which` marks."""
        from pyarrow import compute

        at = int((which * compute.utf8_length(self._cells).fill_null(0).to_numpy()).argmax())
        return at, self._cells[at].as_py()

    def told(self, names: Sequence[str], texts: Sequence[bool]) -> Iterator[str]:
        """Yield messages that say how ambiguous or unusually written cells are read.

        `texts` tells for each column whether it is kept as text, with its leading zeros.
        """
        guessed, coded, odd = (which.reshape(self._shape) for which in self._told)
        coded = coded & ~np.array(texts, bool)[:, None]
        for which in guessed, coded, odd:
            columns = np.flatnonzero(which.any(axis=1)).tolist()
            if columns:
                _, text = self.longest(which.ravel())
                where = listed([names[i] for i in columns])
                yield f"'{text}' is read as {number(text, self.point):.15g}, in {where}"

    def numbers(self) -> list[np.ndarray]:
        """Return each column as numbers (NaN if missing), or as Python objects if it has texts."""
        from pyarrow import compute

        values = self._values
        if values is None:
            values = compute.if_else(self._fits, self._plain, None).cast("float64").to_numpy()
        bad = (~np.isfinite(values) & self._cells.is_valid().to_numpy()).reshape(self._shape)
        columns = [*values.reshape(self._shape).copy()]
        for i in np.flatnonzero(bad.any(axis=1)).tolist():
            cells = self._column(self._cells, i).filter(bad[i]).to_pylist()
            others = np.isfinite(columns[i]).any()
            values = cells if others else [TRUTHS.get(cell.lower(), cell) for cell in cells]
            if any(isinstance(value, str) for value in values):
                columns[i] = columns[i].astype(object)
            columns[i][bad[i]] = values
        return columns

    def texts(self, i: int) -> np.ndarray:
        """Return a column as an array of texts, with an empty text for each missing value.

        Numbers are written as in Python.
        """
        from pyarrow import compute

        cells = compute.if_else(self._fits, self._plain, self._cells).fill_null("")
        return self._column(cells, i).to_numpy()

    def _column(self, cells: Any, i: int) -> Any:
        rows = len(cells) // self._shape[0]
        return cells.slice(i * rows, rows)
