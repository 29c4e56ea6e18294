"""Find the column names of a text table (step 2 of 3), and match names between tables."""

from __future__ import annotations

import difflib
import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fedcore.user_tables.columns import Unfit, parsed
from fedcore.user_tables.numbers import number

UNNAMED = re.compile(r"|Unnamed: \d+(\.\d+|_level_\d+)?")  # of pandas for a column without a name
INDEX = re.compile(r"__index_level_\d+__")  # of pandas in Parquet and Arrow
# Names that such a column has if it counts the rows from 0 or 1.
COUNTING = {
    "id", "index", "level_0", "no", "nr", "number", "obs", "row", "row_id", "row_index", "row_nr",
    "row_number", "rowid", "rownames",
}  # fmt: skip
MANY = 1000  # names that are compared with a misspelt one


def clean(name: str) -> str:
    r"""Return a name as it looks: with composed letters, plain blanks, and no invisible characters.

    >>> clean("a\u0308ge\u200b\u00a0in") == "\u00e4ge in"
    True
    """
    if name.isascii() and name.isprintable():
        return name.strip()
    kinds = ((c, unicodedata.category(c)) for c in unicodedata.normalize("NFC", name))
    return "".join(" " if kind == "Zs" else c for c, kind in kinds if kind != "Cf").strip()


def same(name: Any) -> str:
    """Return a key of a name; names that differ only by case and blanks have equal keys."""
    return "".join(clean(str(name)).split()).casefold()


def alike(name: Any, known: Iterable[Any]) -> list[Any]:
    """Return a list with the name in `known` that `name` probably misspells, or an empty list."""
    own = _letters(name)
    short = {_letters(one): one for one in itertools.islice(known, MANY)}
    numbered = re.sub(r"\d", "", own)  # x1 and x2 are two columns
    short = {t: one for t, one in short.items() if t == own or re.sub(r"\d", "", t) != numbered}
    cutoff = 0.8 if len(own) > 4 else 0.65  # one letter of a short name is a larger part
    return [short[one] for one in difflib.get_close_matches(own, short, n=1, cutoff=cutoff)]


def _letters(name: Any) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", same(name)))


def match(tables: Iterable[Sequence[str]]) -> list[dict[str, str]]:
    """Return for each table a mapping from its column names to the spelling of earlier tables.

    Two names match if they are equal after Unicode normalisation, without regard to case and
    blanks. Each mapping lists only the names that earlier tables spell differently.
    """
    known: dict[str, str] = {}
    found = []
    for names in tables:
        short = [*map(same, names)]
        times = Counter(short)
        one = {name: known.setdefault(low, name) for low, name in zip(short, names, strict=True)
               if times[low] == 1}  # fmt: skip
        found.append({old: new for old, new in one.items() if old != new})
    return found


def absent(lists: Mapping[str, Sequence[Any]]) -> list[Unfit]:
    """Return an `Unfit` for each column that a file or client lacks but another one has.

    `lists` maps each file or client to its column names.
    """
    every, found = dict.fromkeys(itertools.chain(*lists.values())), list[Unfit]()
    common = set(every).intersection(*lists.values())
    for who, names in lists.items():
        own = set(names)
        for name in every:
            if name not in own:
                near = alike(name, (other for other in names if other not in common))
                hint = "".join(f", did you mean {other!r}?" for other in near)
                says = f"not in {who}{hint}"
                found.append(Unfit(who, name, "absent", says, meant=next(iter(near), None)))
    return found


def counts_rows(name: Any, column: Any, first: bool) -> bool:
    """Return whether a column only numbers the rows and is no measurement.

    The result is also true for a column that has neither a name nor numbers, and thus labels the
    rows. If the column is the `first` of its table and has no name, whole numbers are taken for row
    numbers.
    """
    text = str(name).strip()
    unnamed = UNNAMED.fullmatch(text)
    if INDEX.fullmatch(text) or not (unnamed or text.casefold() in COUNTING):
        return bool(INDEX.fullmatch(text))
    values = parsed(column)
    if unnamed:
        return bool(~np.isfinite(values).any() or (first and (values == np.floor(values)).all()))
    return len(values) > 1 and np.array_equal(values, np.arange(len(values)) + (values[0] == 1))


def head(rows: Sequence[Sequence[str]], width: int) -> int | None:
    """Return the index of the row with the columns' names, or None if the first row is data.

    Names stand above the first row of numbers. If several rows hold texts, the row with the most
    different texts has the names. Rows above the names are no part of the table.

    Parameters
    ----------
    rows : sequence of sequence of str
    width : int
        Most common number of cells in a row.

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
    """Return whether cells may be names: all numbers among the cells are whole, or increase.

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
