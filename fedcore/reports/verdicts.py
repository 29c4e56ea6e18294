"""Verdicts: whether each value that a paper prints was reproduced, and if not, why.

``published`` of ``config/papers/<paper>.yaml`` says what is printed and what is accepted; the
tables of the paper hold what was measured. This module compares the two, and
`fedcore.reports.verdict_pages` writes the verdicts.

If a table has columns of twins for a column ``x`` (see `fedcore.reports.summaries`), the statistic
over the repeats has a range: its values when any repeats are exchanged for their twins. The value
is reproduced if all of the range is accepted and no repeat differs from its twin by more than half
of the width of the accepted interval. It is not reproduced if none of the range is accepted.
Otherwise rounding decides. For a ratio of medians, a single repeat is compared with the other
method's median. Rounding decides an ordering if an exchange reverses it.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from fedcore.config.published import checked
from fedcore.errors import ConfigError, DataError, nearest, require_known
from fedcore.problems import STATUSES
from fedcore.reports import summaries, tables

# Meaning of each verdict, as README says it.
VERDICTS = {
    "reproduced": "the measured value is within the tolerance set for it, whatever rounding does.",
    "deviates": "the value is outside its tolerance, and no other reading of the paper that was "
    "tried brings it within.",
    "not as printed": "done as the paper prints it, the value is outside its tolerance; in another "
    "reading, which is named, such as that of the authors' code, it is within.",
    "rounding decides": "the last bit of the starting values decides whether the value is within "
    "its tolerance; it counts for neither side.",
    "surrogate data": "measured on stand-ins for the data, so not compared.",
    "not run": "the data cannot be had, or something that the comparison needs is missing.",
}


@dataclass(frozen=True)
class Verdict:
    """Verdict on one published value.

    Attributes
    ----------
    paper, id, quantity, source, kind, printed : str
        As in the paper's configuration file.
    measured : str
        The statistic over the repeats, as people read it; empty when nothing was measured.
    low, high : float or None
        Smallest and largest value over the repeats that have one, in the units of the column.
    count : int
        Number of repeats.
    verdict : str
        A key of `VERDICTS`.
    reason : str
        The accepted values and why; for "not run", what is missing.
    rounding : str
        Range of the statistic when repeats are exchanged for their twins, as people read it; empty
        without twins, or if they change nothing.
    """

    paper: str
    id: str
    quantity: str
    source: str
    kind: str
    printed: str
    measured: str
    low: float | None
    high: float | None
    count: int
    verdict: str
    reason: str
    rounding: str = ""


@dataclass(frozen=True)
class _Finding:
    """A measured value beside what is accepted; `obstacle` says why nothing was measured.

    `holds`: accepted whatever rounding does. `undecided`: rounding decides. `change`: how much one
    rounding changes a single repeat, or how many flags it changes.
    """

    obstacle: str = ""
    measured: str = ""
    low: float | None = None
    high: float | None = None
    count: int = 0
    holds: bool = False
    undecided: bool = False
    rounding: str = ""
    change: str = ""
    wanted: str = ""
    missing: str = ""
    surrogate: bool = False

    @property
    def why_undecided(self) -> str:
        whole = f", and this to {self.rounding}" if self.rounding else ""
        return f"one rounding of the starts changes {self.change}{whole}"


def judge(
    paper: str,
    published: Sequence[Mapping[str, Any]],
    tables_dir: str | os.PathLike[str],
    *,
    unavailable: Mapping[str, str],
    surrogate: bool,
) -> list[Verdict]:
    """Compare what a paper prints with what was measured.

    Parameters
    ----------
    paper : str
    published : sequence of mapping
        Items as described by ``published.schema.yaml``.
    tables_dir : path-like
        The table ``t`` is the file ``<tables_dir>/<paper>/t.tsv``.
    unavailable : mapping of str to str
        Why data cannot be had, by ``<paper>/<problem>``, as in `Plan.unavailable`.
    surrogate : bool
        Whether the run may have used stand-ins for data. Rows then count as made with stand-ins
        unless their column ``status`` says ``official``, ``rebuilt`` or ``synthetic``.

    Returns
    -------
    list of Verdict
        In the order of `published`.

    Raises
    ------
    ConfigError
        As `published.checked`, and on an unknown column or a tolerance that does not fit its type.
    DataError
        When a table is damaged.
    """
    measurements = _Measurements(Path(tables_dir) / paper, surrogate)
    verdicts = []
    for line in checked(published, f"{paper}, published value"):
        what = f"{paper}, published value {line['id']}"
        needs = (f"{paper}/{problem}" for problem in line["needs"])
        reasons = [unavailable[name] for name in needs if name in unavailable]
        found = _Finding(reasons[0]) if reasons else measurements.measure(line, what)
        verdict, reason = _decide(line, found, measurements, what)
        verdicts.append(
            Verdict(
                paper, line["id"], line["quantity"], line["source"], line["kind"], line["printed"],
                found.measured, found.low, found.high, found.count, verdict, reason, found.rounding,
            )
        )  # fmt: skip
    return verdicts


class _Measurements:
    """Reads each table of one paper once, and compares its values with what is accepted."""

    def __init__(self, folder: Path, surrogate: bool) -> None:
        self._folder, self._surrogate = folder, surrogate
        self._tables: dict[str, list[tables.Row]] = {}

    def measure(self, line: Mapping[str, Any], what: str, **other: Any) -> _Finding:
        """Compare the statistic over the rows that a line selects with its tolerance.

        `other` replaces ``select`` or ``accept`` of the line.
        """
        line = {**line, **other}
        select, accept = line["select"], line["accept"]
        column, where = select["column"], select["where"]
        path = self._folder / f"{select['table']}.tsv"
        if select["table"] not in self._tables:
            if not path.is_file():
                known = [file.stem for file in self._folder.glob("*.tsv")]
                return _Finding(f"no table {path}: {nearest(select['table'], known)}")
            self._tables[select["table"]] = tables.read(path)
        table = self._tables[select["table"]]
        for name in (column, *where):
            if table:
                require_known(name, table[0], f"{what}: {path} has no column")
        rows = [row for row in table if all(_same(row[k], v) for k, v in where.items())]
        if not rows:
            values = ", ".join(f"{k} = {tables.show(v)}" for k, v in where.items())
            return _Finding(f"no row in {path}" + (f" with {values}" if values else ""))
        _check_values(rows, column, "is" in accept, f"{what}: column '{column}' of {path}")
        found = (
            _compare_flags(rows, column, accept["is"])
            if "is" in accept
            else _compare_numbers(rows, column, line["statistic"], accept)
        )
        return replace(found, surrogate=any(self._is_surrogate(row, path) for row in rows))

    def _is_surrogate(self, row: tables.Row, path: Path) -> bool:
        status = row.get("status")
        if status is None:
            return self._surrogate
        require_known(status, STATUSES, f"{path}: unknown status", DataError)
        return status == "surrogate"


def _decide(
    line: Mapping[str, Any], found: _Finding, measurements: _Measurements, what: str
) -> tuple[str, str]:
    """Return the verdict on one line and its reason."""
    if found.obstacle:
        return "not run", found.obstacle
    wanted = f"wanted {found.wanted}{found.missing}"
    if found.surrogate:
        return "surrogate data", f"measured on stand-ins, so no comparison; {wanted}"
    if found.holds and "provided" in line:
        column, accept = line["provided"]["column"], line["provided"]["accept"]
        select = {**line["select"], "column": column}
        also = measurements.measure(line, f"{what}, provided", select=select, accept=accept)
        if not also.holds:
            lest = line["provided"]["lest"]
            return "not run", f"{lest} ({column} {also.measured}, wanted {also.wanted})"
    because = f"{wanted}; {line['because']}"
    if found.holds:
        return "reproduced", because
    if found.undecided:
        return "rounding decides", f"{wanted}; {found.why_undecided}"
    if "otherwise" not in line:
        return "deviates", because
    reading = line["otherwise"]["reading"]
    changes = {name: line["otherwise"].get(name, line[name]) for name in ("select", "accept")}
    other = measurements.measure(line, f"{what}, otherwise", **changes)
    detail = f"{reading} ({other.measured}, wanted {other.wanted}{other.missing})"
    if other.obstacle:
        return "deviates", f"{wanted}; not run in the reading that {reading}: {other.obstacle}"
    if other.surrogate:
        return "surrogate data", f"{wanted}; measured on stand-ins in another reading: {detail}"
    if other.holds:
        return "not as printed", f"{wanted}; another reading holds: {detail}"
    if other.undecided:
        no_agreement = "another reading is no agreement, for rounding decides it"
        return "deviates", f"{because}; {no_agreement}: {detail}; {other.why_undecided}"
    return "deviates", f"{because}; another reading fails, too: {detail}"


def _exchanges(rows: Sequence[tables.Row], column: str) -> list[list[Any]]:
    """Return the values of each row's twins for a column; an empty list for a row without one."""
    names = [f"{prefix}{column}" for prefix in (summaries.TWIN, summaries.LEAST, summaries.MOST)]
    return [[row[name] for name in names if row.get(name) is not None] for row in rows]


def _check_values(rows: Sequence[tables.Row], column: str, flags: bool, where: str) -> None:
    """Refuse text, numbers where flags are needed, and flags where numbers are needed."""
    for value in chain((row[column] for row in rows), *_exchanges(rows, column)):
        if flags and not (value is None or isinstance(value, bool)):
            hint = "'is' accepts only true and false"
        elif not flags and isinstance(value, str | bool):
            hint = "accept it with 'is'" if isinstance(value, bool) else "it must hold numbers"
        else:
            continue
        raise ConfigError(f"{where} holds {tables.show(value)!r}: {hint}")


def _compare_numbers(
    rows: Sequence[tables.Row], column: str, statistic: str, accept: Mapping[str, Any]
) -> _Finding:
    """Compare a statistic over numbers with a tolerance; a missing value counts as failed."""
    values: list[Any] = [row[column] for row in rows]
    low, high, wanted = _interval(accept)
    # Missing values sort to the end at which the tolerance refuses them.
    missing = "first" if math.isinf(high) else "last"
    measured = summaries.statistic(values, statistic, missing=missing)
    known = [float(v) for v in values if v is not None and not math.isnan(v)]
    gaps = f"{len(values) - len(known)} of {len(values)}"
    ends = summaries.exchanged(values, _exchanges(rows, column), statistic, missing=missing)
    twins = [row.get(f"{summaries.TWIN}{column}") for row in rows]
    changes: list[Any] = [row.get(f"{summaries.CHANGE}{column}") for row in rows]
    change = max(summaries.rounding(values, twins) or 0.0, *(c or 0.0 for c in changes))
    shown = [tables.show(end if math.isfinite(end) else math.nan) for end in ends]
    safe = all(low <= end <= high for end in ends) and change <= (high - low) / 2
    named = "" if statistic == "median" else f" ({statistic})"
    return _Finding(
        measured=f"{gaps} did not arrive"
        if math.isnan(measured)
        else f"{tables.show(measured)}{named}",
        low=min(known, default=None),
        high=max(known, default=None),
        count=len(values),
        holds=safe,
        undecided=not safe and ends[0] <= high and low <= ends[1],
        rounding="" if shown[0] == shown[1] else " to ".join(shown),
        change=f"a repeat by up to {tables.show(change)}",
        wanted=wanted,
        missing="" if len(known) == len(values) else f"; {gaps} repeats never reached it",
    )


def _compare_flags(rows: Sequence[tables.Row], column: str, wanted: bool) -> _Finding:
    """Compare a column of booleans with the value that all must have."""
    right = [row[column] is wanted for row in rows]
    turned = [[twin is wanted for twin in twins] for twins in _exchanges(rows, column)]
    least = sum(a and all(b) for a, b in zip(right, turned, strict=True))
    most = sum(a or any(b) for a, b in zip(right, turned, strict=True))
    count, word = len(rows), tables.show(wanted)
    return _Finding(
        measured=f"{sum(right)} of {count} {word}",
        count=count,
        holds=least == count,
        undecided=least < most == count,
        rounding="" if least == most else f"{least} to {most} of {count} {word}",
        change=f"{most - least} of {count} values",
        wanted=f"all {word}",
    )


def _interval(accept: Mapping[str, Any]) -> tuple[float, float, str]:
    """Return the ends of the accepted interval, and its description."""
    ((kind, value),) = accept.items()
    if kind == "equals":
        return value, value, f"exactly {tables.show(value)}"
    if kind == "at_most":
        return -math.inf, value, f"at most {tables.show(value)}"
    if kind == "at_least":
        return value, math.inf, f"at least {tables.show(value)}"
    if kind == "between":
        low, high = value
        return low, high, f"between {tables.show(low)} and {tables.show(high)}"
    middle = value["of"]
    if "absolute" in value:
        radius, text = value["absolute"], tables.show(value["absolute"])
    else:
        radius = value["relative"] * abs(middle)
        text = f"{tables.show(100.0 * value['relative'])} %"
    return middle - radius, middle + radius, f"within {text} of {tables.show(middle)}"


def _same(value: tables.Value, wanted: Any) -> bool:
    """Whether a cell holds the wanted value; YAML reads ``1e-6`` as text, so parse it."""
    if isinstance(wanted, str) and not isinstance(value, str) and not wanted.startswith('"'):
        wanted = tables.parse(wanted)
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
