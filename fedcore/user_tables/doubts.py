"""What may be no measurement in columns of numbers, and no sample among their rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from fedcore.user_tables.columns import as_values

SAMPLE, SEVERAL = 200, 10  # rows looked at first; values that tell ids from measurements
SPREAD = 5  # values that show how far a column goes
ENDS = 5  # rows at the end of a table that may sum up the others; different codes at one end
NAMED = re.compile(
    r"(.*[\W_])?(id|code|zip|zip_?code|post_?code|postal|plz|phone|telephone|tel|fax|ssn|mrn|icd\d*)",
    re.I,
)
CODE = re.compile(r"(7|8|9)\1+(\.\1*)?")  # such as 999 for a missing value
NEGATIVE = -1.0, -7.0, -8.0, -9.0
SUMMARIES = {
    "total", "totals", "grand total", "subtotal", "sum", "mean", "average", "avg", "median",
    "gesamt", "summe", "mittelwert", "moyenne", "total general",
}  # fmt: skip


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
    whole, part = np.divmod(np.round(values * 100), 100)
    if (abs(values * 100 - np.round(values * 100)) > 1e-6).any() or not (part % 10 > 0).any():
        return False
    days = (abs(whole - 16) <= 15) & (abs(part - 6.5) < 6)
    hours = (abs(whole - 11.5) < 12) & (part < 60)
    return bool(days.all() or hours.all())


def far_codes(values: np.ndarray) -> list[float]:
    """Return values at the ends of a column that may stand for missing ones.

    They lie far from all others, and occur again or are written 77, 999 or the like; or they are
    -1, -7, -8 or -9, and no other value is negative.
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
    if len(rest) > SPREAD and rest[0] in NEGATIVE and rest[1] >= 0:
        found.append(float(rest[0]))
    return found


def summaries(x: np.ndarray) -> Iterator[str]:
    """Yield which rows at the end of a matrix are the sum or the mean of all above them."""
    total, error = x.sum(axis=0, dtype=np.float64), x[:SAMPLE].std(axis=0) / 1000
    varied = error > 0
    for k in range(1, ENDS + 1):
        n, row = len(x) - k, x[-k]
        if n < SEVERAL or not varied.any():
            return
        total = total - row
        for what, value in (("sum", total), ("mean", total / n)):
            if (abs(row - value) <= np.maximum(error, abs(value) / 1e6))[varied].all():
                yield f"row {k} from the end is the {what} of all above it"


def summarised(column: Any) -> Iterator[tuple[int, str]]:
    """Yield the cells at the end of a column that say so of their rows, with their places."""
    first = max(len(column) - ENDS, 0)
    for i, cell in enumerate(as_values(column[first:]).tolist(), first):
        if isinstance(cell, str) and cell.strip(" :").casefold() in SUMMARIES:
            yield i, cell
