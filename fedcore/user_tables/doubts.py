"""What may be no measurement in columns of numbers, and no sample among their rows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fedcore.user_tables.columns import as_values, listed
from fedcore.user_tables.names import UNNAMED, counts_rows

SAMPLE, SEVERAL = 200, 10  # rows looked at first; values that tell ids from measurements
SPREAD = 5  # values that show how far a column goes
ENDS = 5  # rows at the end of a table that may sum up the others; different codes at one end
NAMED = re.compile(
    r"(.*[\W_])?((patient|case|u?subj|subject|record|sample|p|u)?id\d*|id[\W_].*|(patient|case|subj|"
    r"subject|record|account|sample|ward|site)[\W_]?(no|nr|num|number|key)|\w+nummer|code|zip|"
    r"zip_?code|post_?code|postal|plz|fips|phone|telephone|telefon|tel|mobile|fax|ssn|mrn|icd\d*|"
    r"drg|cpt|loinc)|(?-i:.*[a-z]ID)",
    re.I,
)
CODE = re.compile(r"(7|8|9)\1+(\.\1*)?")  # such as 999 for a missing value
REPLIES = 8.0, 9.0  # to a question with up to `SPREAD` answers: not known, not given
NEGATIVE = -1.0, -7.0, -8.0, -9.0
# Decimals that are days, hours or months: the unit of what stands behind the point, the least and
# largest value before it, and behind it.
CALENDAR = (
    (100, 1, 31, 1, 12), (100, 0, 23, 0, 59), (100, 1900, 2100, 1, 12), (10_000, 1, 12, 1900, 2100),
)  # fmt: skip
SUMMARIES = re.compile(
    r"\W*((.*\W)?totals?|subtotal|totale|total general|sum|summe|gesamt|somme|suma|mean|average|"
    r"avg|median|mittelwert|moyenne|media|sd|std|std\.? ?dev\.?|count|min|max|\d\d%)"
    r"\s*(\(.*\))?\W*",
    re.I,
)


class Doubt(NamedTuple):
    """What may be no measurement, or no sample, in tables with the same columns.

    Attributes
    ----------
    what : str
        The sentence, without an end.
    tables : sequence of int
        Numbers of the tables that have it.
    columns : list
        Columns of row numbers, ids, codes or dates, or with `values`.
    values : list of str
        Those that may stand for missing ones.
    """

    what: str
    tables: Sequence[int]
    columns: Sequence[Any] = ()
    values: Sequence[str] = ()


def find(names: Sequence[Any], matrices: Sequence[np.ndarray]) -> Iterator[Doubt]:
    """Yield the doubts about matrices of numbers, whose columns have these names."""
    for i, x in enumerate(matrices):
        for what in summaries(x):
            yield Doubt(f"{what}, and counts as a sample", [i])
    each = [(name, [x[:, i] for x in matrices]) for i, name in enumerate(names)]
    coded = [
        name for i, (name, parts) in enumerate(each)
        if UNNAMED.fullmatch(str(name).strip())
        or any(counts_rows(name, part, i == 0) for part in parts)
        or all(identifies(name, part) for part in parts)
    ]  # fmt: skip
    if coded:
        says = f"{listed(coded)} may be row numbers, ids, codes or dates, and counts as measured"
        yield Doubt(says, [0], coded)
    far = {name: far_codes(np.concatenate(parts)) for name, parts in each}
    values = dict.fromkeys(f"{code:.15g}" for codes in far.values() for code in codes)
    if values:
        having = [
            i for i, x in enumerate(matrices)
            if any(np.isin(x[:, k], codes).any() for k, codes in enumerate(far.values()))
        ]  # fmt: skip
        columns = [name for name, codes in far.items() if codes]
        says = f"{', '.join(values)} in {listed(columns)} may stand for a missing value"
        yield Doubt(f"{says}, and counts as measured", having, columns, [*values])


def identifies(name: Any, values: np.ndarray) -> bool:
    """Whether a column has ids, codes, dates or times, and probably no measurements.

    These are whole numbers that all differ, or are called a code, or have as many digits each;
    days as YYYYMMDD or DD.MM; and hours as HH.MM.
    """
    values = values[np.isfinite(values)]
    first = values[:SAMPLE]
    if len(values) < SEVERAL:
        return False
    if (first % 1 > 0).any():
        return _calendar(first) and _calendar(values)
    if (values % 1 > 0).any():
        return False
    return bool(NAMED.fullmatch(str(name).strip())) or (_differ(first) and _differ(values))


def _differ(values: np.ndarray) -> bool:
    year, month, day = values // 10000, values // 100 % 100, values % 100
    days = abs(year - 2000) <= 200, abs(month - 6.5) < 6, abs(day - 16) <= 15
    low, high = float(values.min()), float(values.max())
    long = low >= 10_000 and len(f"{low:.0f}") == len(f"{high:.0f}") and (values % 10 > 0).any()
    return bool(
        np.logical_and.reduce(days).all() or len(different := np.unique(values)) == len(values)
        or (long and len(different) >= SEVERAL)
    )  # fmt: skip


def _calendar(values: np.ndarray) -> bool:
    for unit, first, last, least, most in CALENDAR:
        whole, part = np.divmod(np.round(values * unit), unit)
        fits = (first <= whole) & (whole <= last) & (least <= part) & (part <= most)
        fits &= abs(values * unit - np.round(values * unit)) < 1e-6
        if fits.all() and (part % 10 > 0).any():
            return True
    return False


def far_codes(values: np.ndarray) -> list[float]:
    """Return values at the ends of a column that may stand for missing ones.

    They lie far from all others, and occur again or are written 77, 999 or the like; or they are
    few whole numbers from -1 to -9, and no other value is negative; or 8 and 9, again and again,
    where others are whole numbers up to 5.
    """
    values, times = np.unique(values[np.isfinite(values)], return_counts=True)
    again = (
        {*values[(times > 1) & (2 * times < times.sum())].tolist()} if len(values) > SPREAD else {}
    )
    found, rest = list[float](), values
    for step in (1, -1, 1, -1):  # at one end there may be what hides the other
        for k in range(ENDS - 1, 0, -1):
            ends, inner = rest[::step][:k], rest[::step][k:]
            if len(inner) > 1 and all(v in again or CODE.fullmatch(f"{abs(v):.15g}") for v in ends):
                spread = np.quantile(inner, [0.1, 0.9]) if len(inner) > SPREAD else inner
                if abs(ends[-1] - inner[0]) > np.ptp(spread):
                    found, rest = [*found, *ends.tolist()], inner[::step]
                    break
    below, rest = rest[rest < 0], rest[rest >= 0]
    if len(rest) >= SPREAD and 0 < len(below) <= ENDS and np.isin(below, -np.arange(1, 10)).all():
        if np.isin(below, NEGATIVE).all() or rest[-1] >= -5 * below[0]:
            found += below.tolist()
    replies, answers = np.isin(rest, REPLIES), np.isin(rest, np.arange(SPREAD + 1))
    if answers.any() and (replies | answers).all() and not len(below):
        found += [value for value in rest[replies].tolist() if times[values == value] > 1]
    return found


def summaries(x: np.ndarray) -> Iterator[str]:
    """Yield which rows at an end of a matrix are the sum or the mean of all others.

    Other such rows at this end may stand between.
    """
    most = min(ENDS, len(x) - SEVERAL)
    with np.errstate(all="ignore"):  # of codes such as the largest number
        total, error = x.sum(axis=0, dtype=np.float64), x[:SAMPLE].std(axis=0) / 1000
        varied = error > 0
        for where, side, rows in (" from the end", "above", x[::-1]), ("", "below", x):
            rest, found = total, set[int]()
            for k in range(1, (most + 1) * varied.any()):
                rest = rest - rows[k - 1]
                for what, value in (("sum", rest), ("mean", rest / (len(x) - k))):
                    close = abs(rows[:k] - value) <= np.maximum(error, abs(value) / 1e6)
                    for i in {*np.flatnonzero(close[:, varied].all(axis=1)).tolist()} - found:
                        found.add(i)
                        yield f"row {i + 1}{where} is the {what} of all {side} it"


def summarised(column: Any) -> list[tuple[int, str]]:
    """Return where texts say that their rows sum up others, the first of each, if texts differ."""
    cells = as_values(column).tolist()
    texts = {cell for cell in cells if isinstance(cell, str)}
    found = [(cells.index(cell), cell) for cell in texts if SUMMARIES.fullmatch(cell)]
    return sorted(found) * (len(texts) > 1)
