"""Tidy tables, written as TSV for machines, and as Markdown and LaTeX for people.

A table is a list of rows with equal keys, and a value is text, a number, a boolean or None. In the
TSV, a float keeps every digit, and an empty cell means None. Text that looks like another type
stands in double quotes in the TSV, as in JSON. `read` therefore returns exactly the values and
types that `write` was given.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fedcore.errors import DataError, InputError
from fedcore.files import atomic, checksums
from fedcore.reports import latex

Value = str | int | float | bool | None
Row = dict[str, Value]

WORDS: dict[str, Value] = {"": None, "true": True, "false": False}
INTEGER = re.compile(r"[+-]?[0-9]+")
FLOAT = re.compile(r"[+-]?(([0-9]+\.[0-9]*|\.?[0-9]+)(e[+-]?[0-9]+)?|inf)|nan", re.IGNORECASE)


def write(
    rows: Sequence[Mapping[str, Any]],
    path: str | os.PathLike[str],
    *,
    caption: str = "",
    page: str | None = None,
    shown: Sequence[Mapping[str, Any]] | None = None,
    below: Sequence[str] = (),
) -> None:
    """Write a table as TSV, Markdown and LaTeX, in the same folder.

    Parameters
    ----------
    rows : sequence of mapping
        Rows with equal keys, possibly none. Values are text, Python or NumPy numbers, booleans or
        None.
    path : path-like
        Path that ends in ``.tsv``. The Markdown file has the same stem and ends in ``.md``, the
        LaTeX file in ``.tex``.
    caption : str
        Caption, which stands above the table in Markdown and LaTeX.
    page : str, optional
        Text that the Markdown file gets instead of the table. With `page`, no LaTeX is written.
    shown : sequence of mapping, optional
        Rows that Markdown and LaTeX show in place of `rows`.
    below : sequence of str
        List items below the table, only in the Markdown file.

    Raises
    ------
    InputError
        If rows have no columns or different ones, if a column name is empty, unprintable or has
        blanks at its ends, if a value has another type, or if `path` does not end in ``.tsv``.
    """
    final = Path(path)
    if final.suffix != ".tsv":
        raise InputError(f"a table is written to a file that ends in .tsv, not to {final}")
    lines = text(rows, str(final))
    visible = _plain(rows if shown is None else shown, f"{final}, as shown")
    with (
        atomic.replace(final.with_suffix(".md"), summed=True) as readable,
        atomic.replace(final, summed=True) as exact,
    ):
        exact.write_text(lines, encoding="utf-8", newline="\n")
        made = markdown(visible, caption=caption)
        made += "".join(f"\n- {escaped(point)}\n" for point in below)
        readable.write_text(made if page is None else page, encoding="utf-8", newline="\n")
    if page is None:
        with atomic.replace(final.with_suffix(".tex"), summed=True) as typeset:
            made = in_latex(visible, caption, final.stem)
            typeset.write_text(made, encoding="utf-8", newline="\n")


def text(rows: Sequence[Mapping[str, Any]], what: str) -> str:
    """Return a table as TSV; for rows that `write` refuses, raise an error that names `what`."""
    plain = _plain(rows, what)
    lines = ["\t".join(plain[0]) if plain else ""]
    lines += ["\t".join(_cell(value) for value in row.values()) for row in plain]
    return "\n".join(lines) + "\n"


def read(path: str | os.PathLike[str]) -> list[Row]:
    """Read a TSV file that `write` wrote, with the types of its values.

    Raises
    ------
    DataError
        If the file is missing, cut off, or was changed after it was written; if a column name is
        empty or appears twice; or if a line has more or fewer cells than the header.
    """
    content = read_text(path)
    if not content.endswith("\n"):
        raise DataError(f"table {path} is cut off (no newline at its end): run its rule again")
    if content == "\n":
        return []
    lines = [line.split("\t") for line in content[:-1].split("\n")]
    columns = lines[0]
    if len(set(columns)) < len(columns) or "" in columns:
        raise DataError(f"table {path}, line 1: column names are empty or appear twice: {columns}")
    rows = []
    for number, cells in enumerate(lines[1:], start=2):
        try:  # a ValueError also where the line has more or fewer cells than the head
            rows.append(dict(zip(columns, map(parse, cells), strict=True)))
        except ValueError as error:
            raise DataError(f"table {path}, line {number}: bad cells ({error})") from error
    return rows


def read_text(path: str | os.PathLike[str]) -> str:
    """Return the text of a table's file, TSV or Markdown, unchanged.

    Raises
    ------
    DataError
        If the file is missing, was changed after it was written, or is not text.
    """
    checksums.require(path, "table")
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"table {path} cannot be read ({error}): run its rule first") from error


def markdown(rows: Sequence[Mapping[str, Any]], *, caption: str = "") -> str:
    """Return a table as Markdown; numbers have four digits and are aligned to the right."""
    head = f"{escaped(caption)}\n\n" if caption else ""
    if not rows:
        return f"{head}No rows.\n"
    lines = [list(map(escaped, rows[0])), [{"r": "--:", "l": ":--"}[side] for side in _sides(rows)]]
    lines += [[_in_markdown(value) for value in row.values()] for row in rows]
    return head + "".join(f"| {' | '.join(line)} |\n" for line in lines)


def in_latex(rows: Sequence[Mapping[str, Value]], caption: str, name: str) -> str:
    """Return a table as LaTeX; see `fedcore.reports.latex`."""
    heads = list(rows[0]) if rows else ["no rows"]
    lines = [[show(value) for value in row.values()] for row in rows]
    return latex.table(heads, lines, _sides(rows) or "l", caption=caption, name=name)


def _sides(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the letter ``r`` (right) for each column with a number, and ``l`` for all others."""
    return "".join(
        "r" if any(isinstance(row[name], int | float) for row in rows) else "l"
        for name in (rows[0] if rows else ())
    )


class Link(NamedTuple):
    """A text that becomes a link to a file or an address in Markdown."""

    text: str
    target: str


def _in_markdown(value: Value | Link) -> str:
    if isinstance(value, Link):
        return f"[{escaped(value.text)}]({value.target})"
    return escaped(show(value))


def show(value: Value) -> str:
    """Return a value as text for people, with four digits, a dash for NaN, and no text for None.

    Examples
    --------
    >>> [show(x) for x in (6.0, 0.0123456, 1.94e-6, 3.4999e20, float("nan"), True)]
    ['6', '0.01235', '1.94e-6', '3.5e20', '–', 'true']
    """
    if isinstance(value, str):
        return value
    if value is None or isinstance(value, int):  # True and False, too
        return _cell(value)
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if value == int(value) and abs(value) < 1e6:
        return str(int(value))
    mantissa, _, exponent = f"{value:.3e}".partition("e")
    if -3 <= int(exponent) < 5:
        return f"{float(f'{mantissa}e{exponent}'):g}"
    return f"{float(mantissa):g}e{int(exponent)}"


def parse(cell: str) -> Value:
    """Return the value that a cell of a TSV table represents.

    Raises
    ------
    ValueError
        If quoted text is not valid JSON.

    Examples
    --------
    >>> [parse(cell) for cell in ("6", "6.0", '"6"', "true", "", "w8a")]
    [6, 6.0, '6', True, None, 'w8a']
    """
    if cell in WORDS:
        return WORDS[cell]
    if cell.startswith('"'):
        return str(json.loads(cell))
    if INTEGER.fullmatch(cell):
        return int(cell)
    return float(cell) if FLOAT.fullmatch(cell) else cell


def _plain(rows: Sequence[Mapping[str, Any]], what: str) -> list[Row]:
    """Return the checked rows, with Python's own types and the column order of the first row."""
    columns = list(rows[0]) if rows else []
    for name in columns:
        if not (isinstance(name, str) and name and name.isprintable() and name == name.strip()):
            raise InputError(
                f"{what}: {name!r} is not a column name: use printable text without blanks at its "
                "ends"
            )
    if rows and not columns:
        raise InputError(f"{what}: the rows have no columns")
    plain = []
    for number, row in enumerate(rows, start=1):
        differing = sorted(map(str, set(row) ^ set(columns)))
        if differing:
            raise InputError(
                f"{what}, row {number}: column '{differing[0]}' is not in every row of the table"
            )
        values = {name: row[name] for name in columns}
        for name, value in values.items():
            if isinstance(value, np.generic):
                values[name] = value = value.item()
            if not (value is None or isinstance(value, str | int | float)):
                raise InputError(
                    f"{what}, row {number}: column '{name}' contains a {type(value).__name__}: "
                    "use text, numbers, booleans or None"
                )
        plain.append(values)
    return plain


def _cell(value: Value) -> str:
    if value is None or isinstance(value, bool):
        return "" if value is None else str(value).lower()
    if not isinstance(value, str):
        return repr(value)
    bare = value.isprintable() and value == value.strip() and not value.startswith('"')
    return value if bare and parse(value) == value else json.dumps(value)


def escaped(text: str) -> str:
    """Escape text that Markdown would read as the end of a cell, as HTML, a link or italics.

    Double asterisks are not escaped, so that words between them are bold.
    """
    plain = " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")
    plain = re.sub(r"(?<!\*)\*(?!\*)", r"\\*", plain)
    return plain.replace("](", "]\\(").replace("][", "]\\[")
