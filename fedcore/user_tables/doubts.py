"""Find numeric columns that may not be measurements, and rows that may not be samples."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from fedcore.user_tables.columns import as_values, listed
from fedcore.user_tables.names import UNNAMED, counts_rows
from fedcore.user_tables.numbers import written

SAMPLE, SEVERAL = 200, 10  # rows, columns looked at first; values that tell ids from measurements
SPREAD = 5  # values that show how far a column goes
ENDS, CODES = 10, 4  # rows at the end of a table that may sum up the others; codes at one end
CHANCE = 3e-4  # that a row's numbers are a statistic of the others', and nobody meant it
NAMED = re.compile(
    r"(.*[\W_])?((patient|case|u?subj|subject|record|sample|p|u)?id\d*|id[\W_].*|(patient|case|subj|"
    r"subject|record|account|sample|ward|site)[\W_]?(no|nr|num|number|key)|\w+nummer|code|zip|"
    r"zip_?code|post_?code|postal|plz|fips|phone|telephone|telefon|tel|mobile|fax|ssn|mrn|icd\d*|"
    r"drg|cpt|loinc)|(?-i:.*[a-z]ID)",
    re.I,
)
# Such as 999 for a missing value, and what programs have for it: limits of types, and 1e20.
CODE = re.compile(r"0|-?((7|8|9)\2+(\.\2*)?|9+[678]|3276[78]|65535|214748364[78]|.*e\+.*)")
FAR = 10  # times as far lie codes from few values, and all that is no `CODE`: doses are 1, 10, 100
LONG = 1_000_000  # ids and days from here on; prices and incomes below
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
    """Suspicion that columns are not measurements, or that a row is not a sample.

    Attributes
    ----------
    what : str
        Message about the doubt, without a full stop.
    tables : sequence of int
        Indices of the tables to which the doubt applies.
    columns : list
        Columns that may be row numbers, ids, codes or dates, or columns that contain `values`.
    values : list of str
        Numbers, as texts, that may mark missing values.
    """

    what: str
    tables: Sequence[int]
    columns: Sequence[Any] = ()
    values: Sequence[str] = ()


def find(names: Sequence[Any], matrices: Sequence[np.ndarray]) -> Iterator[Doubt]:
    """Yield doubts about the rows and columns of matrices that share the column names `names`."""
    for i, x in enumerate(matrices):
        for what in summaries(x):
            yield Doubt(f"{what}, and counts as a sample", [i])
    each = [(name, [x[:, i] for x in matrices]) for i, name in enumerate(names)]
    coded = [
        name for i, (name, parts) in enumerate(each)
        if UNNAMED.fullmatch(str(name).strip())
        or any(counts_rows(name, part, i == 0) for part in parts)
        or all(identifies(name, part) for part in parts)
        or identifies(name, np.concatenate(parts))
    ]  # fmt: skip
    if coded:
        says = f"{listed(coded)} may be row numbers, ids, codes or dates, and counts as measured"
        yield Doubt(says, [0], coded)
    far = {name: far_codes(np.concatenate(parts)) for name, parts in each}
    values = dict.fromkeys(written(code) for codes in far.values() for code in codes)
    if values:
        having = [
            i for i, x in enumerate(matrices)
            if any(np.isin(x[:, k], codes).any() for k, codes in enumerate(far.values()))
        ]  # fmt: skip
        columns = [name for name, codes in far.items() if codes]
        says = f"{', '.join(values)} in {listed(columns)} may stand for a missing value"
        yield Doubt(f"{says}, and counts as measured", having, columns, [*values])


def identifies(name: Any, values: np.ndarray) -> bool:
    """Return whether a column probably has ids, codes, dates or times and no measurements.

    Whole numbers are ids if they all differ and lie close together. Whole numbers are codes if the
    column has the name of a code, such as "zip". Whole numbers are ids or dates if all have the
    same number of digits, at least seven, such as 20190131. Decimals are dates or times if all read
    as DD.MM, HH.MM, YYYY.MM or MM.YYYY.
    """
    values = values[np.isfinite(values)]
    first = values[:SAMPLE]
    if len(values) < SEVERAL:
        return False
    if (first % 1 > 0).any():
        return _calendar(first) and _calendar(values)
    if (values % 1 > 0).any():
        return False
    return bool(NAMED.fullmatch(str(name).strip())) or _differ(values)


def _differ(values: np.ndarray) -> bool:
    low, high, n = float(values.min()), float(values.max()), len(values)
    if low >= LONG and len(f"{low:.0f}") == len(f"{high:.0f}") and (values % 10 > 0).any():
        return True
    # As many of `between` numbers, if drawn, would hardly all differ.
    between = high - low + 1
    return bool(n <= between <= n * (n - 1) / 8 and len(np.unique(values)) == n)


@np.errstate(all="ignore")  # of codes such as the largest number
def _calendar(values: np.ndarray) -> bool:
    for unit, first, last, least, most in CALENDAR:
        whole, part = np.divmod(np.round(values * unit), unit)
        fits = (first <= whole) & (whole <= last) & (least <= part) & (part <= most)
        fits &= abs(values * unit - np.round(values * unit)) < 1e-6
        varied = first == 1900 or np.ptp(whole) > 1  # unlike pH, which is 7.21 to 7.58
        if varied and fits.all() and (part % 10 > 0).any():
            return True
    return False


def far_codes(values: np.ndarray) -> list[float]:
    """Return extreme values of a column that may mark missing values, such as 999.

    Values are returned if they lie far from all others, and each is repeated or matches `CODE`. A
    few negative values are returned if all are usual codes or small whole numbers. A repeated 8 or
    9 is returned if all other values are whole numbers from 0 to 5.
    """
    values, times = np.unique(values[np.isfinite(values)], return_counts=True)

    def often(some: Any) -> np.ndarray:
        return times[np.searchsorted(values, some)]

    found, rest = list[float](), values
    for step in (1, -1, 1, -1):  # at one end there may be what hides the other
        for k in range(CODES, 0, -1):
            ends, inner = rest[::step][:k].tolist(), rest[::step][k:]
            coded = [CODE.fullmatch(f"{value:.15g}") is not None for value in ends]
            few = 2 * often([*found, *ends]).sum() < times.sum()
            if len(inner) > 1 and few and np.logical_or(coded, often(ends) > 1).all():
                spread = np.quantile(inner, [0.1, 0.9]) if len(inner) > SPREAD else inner
                times_as_far = 1 if len(inner) > SPREAD and all(coded) else FAR
                if abs(ends[-1] - inner[0]) / times_as_far > np.ptp(spread):
                    found, rest = [*found, *ends], inner[::step]
                    break
    below, rest = rest[rest < 0], rest[rest >= 0]
    if len(rest) > 1 and 0 < len(below) <= SPREAD:
        scale = below[-1] == -1 and len(rest) < SPREAD and not rest[0]  # such as -1, 0, 1
        coded = [bool(value in NEGATIVE or CODE.fullmatch(f"{value:.15g}")) for value in below]
        small = np.isin(below, -np.arange(1, 10)).all() and rest[-1] >= -5 * below[0]
        if not scale and (all(coded) or (small and len(rest) >= SPREAD)):
            found += below.tolist()
    replies, answers = np.isin(rest, REPLIES), np.isin(rest, np.arange(SPREAD + 1))
    if answers.any() and (replies | answers).all() and not len(below):
        found += rest[replies & (often(rest) > 1)].tolist()
    return found


def summaries(x: np.ndarray) -> Iterator[str]:
    """Yield a message for each row at the top or bottom that is the sum, mean, … of other rows.

    Each row at the top is compared with all rows below it, and each row at the bottom with all rows
    above it.
    """
    x, most = x[:, :SAMPLE], min(ENDS, len(x) - SEVERAL)
    if most < 1:
        return
    with np.errstate(all="ignore"):  # of codes such as the largest number
        inner = _with((0.0, 0.0, np.inf, -np.inf), x[most : len(x) - most])
        for where, side, rows in (" from the end", "above", x[::-1]), ("", "below", x):
            rest, found = _with(inner, rows[len(x) - most :]), dict[int, str]()
            some = rows[: most + SAMPLE]
            once = np.array([(some == row).all(axis=1).sum() == 1 for row in rows[:most]])
            for k in range(most, 0, -1):
                for what, value in _statistics(rest, len(x) - k):
                    alike = _agreeing(rows[:k], value, some[most:], rest) & once[:k]
                    found |= {i: what for i in np.flatnonzero(alike).tolist() if i not in found}
                rest = _with(rest, rows[k - 1 : k])
            for i, what in sorted(found.items()):
                yield f"row {i + 1}{where} is the {what} of all {side} it"


def _with(sums: Sequence[Any], rows: np.ndarray) -> list[Any]:
    """Return the columns' sums, sums of squares, minima and maxima after adding `rows`."""
    total, squares, low, high = sums
    more = np.einsum("ij,ij->j", rows, rows, dtype=np.float64)
    low = np.minimum(low, rows.min(axis=0, initial=np.inf))
    high = np.maximum(high, rows.max(axis=0, initial=-np.inf))
    return [total + rows.sum(axis=0, dtype=np.float64), squares + more, low, high]


def _statistics(rest: Sequence[Any], n: int) -> Iterator[tuple[str, Any]]:
    total, squares, low, high = rest
    variance = np.maximum(squares / n - (total / n) ** 2, 0)
    yield from (("sum", total), ("mean", total / n), ("count", np.full_like(total, n)))
    for value in variance, variance * n / (n - 1):
        yield from (("variance", value), ("standard deviation", np.sqrt(value)))
    yield from (("least value", low), ("largest value", high))


def _agreeing(
    rows: np.ndarray, value: np.ndarray, some: np.ndarray, rest: Sequence[Any]
) -> np.ndarray:
    """Return a mask of the rows that equal a statistic of the other rows up to rounding.

    A row is not marked if it may agree by chance.
    """
    spread = some.std(axis=0)
    varied = spread > 0
    error = np.tile(abs(value) / 1e6, (len(rows), 1))
    for places in range(6, -1, -1):  # rows may be rounded
        rounded = abs(rows - rows.round(places)) <= abs(rows) / 1e6
        error = np.where(rounded, np.maximum(error, 0.51 / 10**places), error)
    inside = (rest[2] - spread <= value) & (value <= rest[3] + spread)
    chance = np.where(inside, error / spread, CHANCE)
    close = (abs(rows - value) <= error)[:, varied].all(axis=1)
    return close & (chance[:, varied].prod(axis=1) <= CHANCE) & varied.any()


def summarised(column: Any) -> list[tuple[int, str]]:
    """Return the index and text of summary rows such as "Total", once for each distinct text.

    The list is empty if the column has only one distinct text.
    """
    cells = column
    if not isinstance(column, list):
        values = as_values(column)
        cells = (values.astype(str) if values.dtype.kind == "S" else values).tolist()
    texts = {cell for cell in cells if isinstance(cell, str)}
    found = [(cells.index(cell), cell) for cell in texts if SUMMARIES.fullmatch(cell)]
    return sorted(found) * (len(texts) > 1)
