"""Find the lines and the cell separator of a text table (step 1 of 3 in reading it)."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedcore.files import END
from fedcore.user_tables.numbers import number
from fedcore.user_tables.table import Reading, fault

SEPARATORS = "\t;|,"
SAMPLE = 200  # lines looked at first
# How texts are written, by the first two bytes; else in UTF-8.
CODINGS = (rb"\xff\xfe|\xfe\xff", "utf-16"), (rb".\0", "utf-16-le"), (rb"\0.", "utf-16-be")
Lines = Sequence[tuple[int, list[str]]]


class Text:
    """The text of a file with a table.

    Attributes
    ----------
    data : bytes
        The whole text, encoded in UTF-8.
    skip : int
        Number of lines to skip above the column names.
    """

    def __init__(self, path: str, how: Reading) -> None:
        data = Path(path).read_bytes()
        forms = (name for form, name in CODINGS if re.fullmatch(form, data[:2], re.S))
        if coding := how.encoding or next(forms, None):
            try:
                data = data.decode(coding).encode()
            except UnicodeError as error:
                if how.encoding is None:
                    raise
                raise fault(path, f" is not in {how.encoding}", ("", {"encoding": None})) from error
        self.data = data.removeprefix(b"\xef\xbb\xbf").rstrip(END)
        self._path, self.skip = path, min(how.skip_lines, len(data))  # which has no more lines
        if self.data.startswith(b"sep=") and not self.skip:  # as Excel writes it
            self.skip = 1
        self._require_text()

    def _require_text(self) -> None:
        if b"\0" in self.data:
            raise fault(self._path, " contains null bytes and is not a text file: save it as CSV")
        try:
            self.data.decode()
        except UnicodeDecodeError as error:
            line = self.data.count(b"\n", 0, error.start)
            odd = re.search(rb"[\x81\x8d\x8f\x90\x9d]", self.data)  # none of Windows
            coding = "latin1" if odd else "cp1252"  # else the same, but for quotes, dashes and €
            shown = self.data.split(b"\n")[line][:80].decode(coding).strip()
            says = f", line {line + 1} is no UTF-8; by {coding} it is '{shown}'"
            raise fault(self._path, says, ("if so", {"encoding": coding}), row=line) from error

    def _reader(self, sign: str, more: Iterable[str] = ()) -> Any:
        file = io.TextIOWrapper(io.BytesIO(self.data), encoding="utf-8", newline="")
        lines = itertools.chain(itertools.islice(file, self.skip, None), more)
        return csv.reader(lines, delimiter=sign)

    def require_closed(self, sign: str) -> None:
        """Raise an error if a quotation mark is never closed and would span all lines below."""
        if self.data.count(b'"') % 2 == 0:
            return
        last, start, end = list[str](), 0, 0
        reader = self._reader(sign, ["\n", "end"])
        for last in reader:  # noqa: B007
            start, end = end, reader.line_num
        if last != ["end"]:
            says = f", line {self.skip + start + 1}: a quotation mark opens and none closes it"
            raise fault(self._path, says, ("write both or none",), row=start)

    def rows(self, sign: str) -> Iterator[tuple[int, list[str]]]:
        """Yield each row that is not blank, with the number of the line in which the row ends."""
        reader = self._reader(sign)
        for row in reader:
            if len(row) > 1 or row == [""] or "".join(row).strip():
                yield self.skip + reader.line_num, [cell.strip() for cell in row]

    def sample(self, sign: str) -> Lines:
        """Return the first `SAMPLE` rows."""
        return [*itertools.islice(self.rows(sign), SAMPLE)]

    def blank_lines(self) -> int:
        """Return the number of empty lines."""
        return len(re.findall(rb"(?:\A|\n|\r(?!\n))(?=[\r\n])", self.data))


def fit(rows: Sequence[Sequence[str]], sign: str) -> tuple[int, int]:
    """Return the number of rows with the most common width, and this width in cells.

    The first result is 0 if `sign` separates no cells, or if `sign` may be a decimal point.
    """
    width, times = Counter(map(len, rows)).most_common(1)[0] if rows else (0, 0)
    wide = [row for row in rows if len(row) == width]
    one = width == 2 and wide[0] != rows[0] and np.isfinite(number(sign.join(wide[0])))
    return times * (width > 1 and not one), width


def find_separator(path: str, text: Text, how: Reading) -> tuple[str, int, Lines]:
    """Return the cell separator, the most common number of cells per row, and the first rows.

    Raises
    ------
    TableError
        If the file does not use the separator in `how`, or if blanks separate the columns. The
        error is also raised if two columns may be one column of numbers with decimal commas.
    """
    asked = how.delimiter and how.delimiter.replace("\\t", "\t")  # as a shell gives it
    samples = {sign: text.sample(sign) for sign in [*SEPARATORS, asked] if sign}
    fits = {sign: fit([row for _, row in lines], sign) for sign, lines in samples.items()}
    best = max(SEPARATORS, key=lambda sign: fits[sign][0])
    sign = asked or best
    if not fits[sign][0] and fits[best][0] > 1 and how.decimal != best:
        says = f", line {samples[best][0][0]}: {best!r} separates the columns, and not {sign!r}"
        raise fault(path, says, ("", {"delimiter": None}), row=0)
    lines, width = samples[sign], fits[sign][1]
    first, *below = [row for _, row in lines] or [[]]
    head = next(itertools.islice(io.BytesIO(text.data), text.skip, None), b"")
    if sign == "," != asked and width == 2 and b'"' not in head and _may_be_one(first, below):
        ways: list[Any] = [("two", {"delimiter": ","}), ("one", {"delimiter": ";", "decimal": ","})]
        shown = ",".join(below[0] if below else first)
        raise fault(
            path, f", line {lines[bool(below)][0]}: '{shown:.40}' may be two numbers or one", *ways
        )
    if width == 1 and not asked and len({*map(len, map(str.split, itertools.chain(*below)))}) == 1:
        if below and len(below[0][0].split()) > 1 and len(first[0].split()) > 1:
            says = f", line {lines[1][0]}: blanks in '{below[0][0]:.40}' separate no columns"
            ways = [("save it with commas or tabs",), ("it is one column", {"delimiter": ";"})]
            raise fault(path, says, *ways, row=1)
    return sign, width, lines


def _may_be_one(first: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Return whether rows of two cells may be single numbers with decimal commas.

    The second cells may be decimal places if all have the same length, or none has a trailing zero.
    """
    rows = below if below and np.isinf([*map(number, first)]).all() else [first, *below]
    if not all(len(row) == 2 and np.isfinite(number(",".join(row), ",")) for row in rows):
        return False
    ends = [row[1] for row in rows]
    return len({*map(len, ends)}) == 1 or not any(len(end) > 1 and end[-1] == "0" for end in ends)
