"""Measurements: the rows of a paper's tables that a reading selects, held against its tests."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from fedcore.errors import ConfigError, DataError, require_known
from fedcore.problems import STATUSES
from fedcore.reports import tables
from fedcore.repro.config.claims import LIMITS
from fedcore.repro.tables import summaries
from fedcore.repro.tables.rows import groups
from fedcore.repro.verdicts import claim_tests
from fedcore.repro.verdicts.claim_tests import (
    FAILS,
    UNDECIDED,
    Demand,
    Numbers,
    Outcome,
)

NOTHING = Outcome("", "")
NAMED = 4  # most points that are named where equally many of their runs agree


@dataclass(frozen=True)
class Measurement:
    """Outcome of one reading: of all its cells together, and of each by its name."""

    outcome: Outcome = NOTHING
    obstacle: str = ""  # why nothing was measured; a sentence
    cells: Mapping[str, Outcome] | None = None
    stand_in: bool = False  # whether it was run on stand-ins for data


class Measurements:
    """Reads each table of one paper once, and holds its values against what is printed.

    Parameters
    ----------
    folder : Path
    stand_ins : bool
    left_out : set of str
        Names of what the run left out, such as problems without data. A point that one of them
        names is not missed.
    """

    def __init__(self, folder: Path, stand_ins: bool, left_out: Set[str]) -> None:
        self._folder, self._stand_ins, self._left_out = folder, stand_ins, left_out
        self._tables: dict[str, list[tables.Row]] = {}

    def measure(
        self, cells: Mapping[str, Any], demand: Demand, panel: bool, what: str
    ) -> Measurement:
        """Make the tests of a reading's cells, on the rows that they select."""
        demand = demand._replace(cells=len(cells))
        outcomes, stand_in = {}, False
        try:
            for name, cell in cells.items():
                where = f"{what}, {name}" if name else what
                rows = self._rows(cell["select"], where)
                stand_in |= any(self._is_stand_in(row, where) for row in rows)
                outcomes[name] = self._outcome(cell, rows, demand, where)
        except _Obstacle as obstacle:
            return Measurement(obstacle=str(obstacle))
        return Measurement(claim_tests.judge_jointly(outcomes, panel), "", outcomes, stand_in)

    def _rows(self, select: Mapping[str, Any], what: str) -> list[tables.Row]:
        """Return the rows that are selected."""
        table, where = self._table(select["table"]), select["where"]
        for name in (select["column"], *where, *select["points"]):
            if table:
                file = f"{what}: {select['table']}.tsv has no column"
                require_known(name, table[0], file)
        rows = matching(table, where)
        lists = {name: wanted for name, wanted in where.items() if isinstance(wanted, list)}
        absent = [
            one
            for name, wanted in lists.items()
            if name not in select["points"]
            for one in wanted
            if not any(_same(row[name], one) for row in rows)
        ]
        if not rows or absent:
            raise _Obstacle(select.get("absent", "This run has no result for it."))
        return rows

    def _table(self, name: str) -> list[tables.Row]:
        if name not in self._tables:
            path = self._folder / f"{name}.tsv"
            if not path.is_file():
                raise _Obstacle("This run made no such table.")
            self._tables[name] = tables.read(path)
        return self._tables[name]

    def _outcome(
        self, cell: Mapping[str, Any], rows: list[tables.Row], demand: Demand, what: str
    ) -> Outcome:
        """Return the outcome of a cell; undecided by rounding or by a missing point."""
        pooled = self._pooled(cell, what)
        outcome = _judged(cell, rows, cell["select"]["column"], demand, pooled, what)
        if outcome.state != UNDECIDED:
            lack = _rounding(cell, rows, outcome, demand, pooled, what)
            if lack:
                return replace(outcome, state=UNDECIDED, lack=lack)
        unknown = _without_result(cell["select"], rows)
        missed = [point for point in unknown if self._left_out.isdisjoint(point.values())]
        left = {v for point in unknown for v in point.values() if v in self._left_out}
        lack = f"no result at {_told(missed, cell['select'].get('called', {}))}"
        parts = [outcome.measured]
        parts += [f"{', '.join(sorted(map(str, left)))} not run"] if left else []
        parts += [lack] if missed and outcome.state == FAILS else []
        outcome = replace(outcome, measured=", ".join(parts))
        if not missed or outcome.state == FAILS:
            return outcome
        return replace(outcome, state=UNDECIDED, lack=f"there is {lack}", growth=0.0)

    def _pooled(self, cell: Mapping[str, Any], what: str) -> tuple[float, int] | None:
        pool = cell["test"].get("number", {}).get("pool")
        if pool is None:
            return None
        column = cell["select"]["column"]
        select = {**cell["select"], "where": pool["where"], "points": pool["by"]}
        parts = groups(self._rows(select, f"{what}, pool"), *pool["by"])
        return claim_tests.pooled_deviation([_values(part, column) for _, part in parts])

    def _is_stand_in(self, row: tables.Row, what: str) -> bool:
        status = row.get("status")
        if status is None:
            return self._stand_ins
        require_known(status, STATUSES, f"{what}: unknown status", DataError)
        return status == "surrogate"


class _Obstacle(Exception):
    """Why nothing was measured."""


def matching(table: Sequence[tables.Row], where: Mapping[str, Any]) -> list[tables.Row]:
    """Return the rows that have the wanted value, or one of a list of them, in every column."""
    return [row for row in table if all(_among(row[k], v) for k, v in where.items())]


def _judged(
    cell: Mapping[str, Any],
    rows: Sequence[tables.Row],
    column: str,
    demand: Demand,
    pooled: tuple[float, int] | None,
    what: str,
) -> Outcome:
    """Make the test of a cell on the values of a column, in the order of the seeds."""
    ((kind, given),) = cell["test"].items()
    flags = kind != "number" and not any(limit in given for limit in LIMITS)
    _check_values(rows, column, flags, what)
    if kind == "exact":
        values, limits = _values(rows, column), _limits(rows, given)
        agree = claim_tests.agreement(values, given, limits)
        return claim_tests.judge_exact(values, agree, limits if "at_most" in given else ())
    points = [_of_runs(part, what) for part in _points(cell["select"], rows)]
    if kind == "number":
        if len(points) > 1:
            raise ConfigError(f"{what}: a number has one point; use cells, or another test")
        return claim_tests.judge_number(_values(points[0], column), given, demand, pooled)
    agreed = [
        claim_tests.agreement(_values(part, column), given, _limits(part, given)) for part in points
    ]
    outcome = claim_tests.judge_runs(agreed, given, demand)
    by, called = cell["select"]["points"], cell["select"].get("called", {})
    shown = [[tables.show(part[0][key]) for key in by] for part in points]
    names = [", ".join(called.get(text, text) for text in texts) for texts in shown]
    return replace(outcome, measured=f"{outcome.measured}{_unlike(names, agreed)}")


def _unlike(names: Sequence[str], agreed: Sequence[Numbers]) -> str:
    """Say how many runs agree at which points, if not equally many at each."""
    runs = min(map(len, agreed))
    found: dict[int, list[str]] = {}
    for name, values in zip(names, agreed, strict=True):
        found.setdefault(values[:runs].count(1.0), []).append(name)
    if len(found) == 1:
        return ""
    parts = []
    for count, where in sorted(found.items(), reverse=True):
        at = ", ".join(where) if len(where) <= NAMED else f"{len(where)} points"
        parts.append(f"{count} of {runs} at {at}")
    return f" ({'; '.join(parts)})"


def _points(select: Mapping[str, Any], rows: Sequence[tables.Row]) -> list[list[tables.Row]]:
    by = select["points"]
    return [part for _, part in groups(list(rows), *by)] if by else [list(rows)]


def _of_runs(rows: list[tables.Row], what: str) -> list[tables.Row]:
    """Return the rows of a point in the order of their seeds; refuse two of one run."""
    if "repeat" not in rows[0]:
        return rows
    repeat, n = Counter(row["repeat"] for row in rows).most_common(1)[0]
    if n > 1:
        raise ConfigError(
            f"{what}: {n} rows are of run {repeat}, and a point needs one row per run: add the "
            "column that tells them apart to 'points', or narrow 'where'"
        )
    return sorted(rows, key=lambda row: float(row["repeat"] or 0))


def _without_result(
    select: Mapping[str, Any], rows: Sequence[tables.Row]
) -> list[dict[str, tables.Value]]:
    """Return the points of which no run says anything, each by its columns.

    They are those that ``where`` lists and that have no row, and those whose rows are all empty.
    """
    by, column = select["points"], select["column"]
    listed = {name: w for name in by if isinstance(w := select["where"].get(name), list)}
    asked = [dict(zip(listed, values, strict=True)) for values in product(*listed.values())]
    asked += [point for point, _ in groups(list(rows), *by)]
    unknown = [
        point for point in asked if all(row[column] is None for row in rows if _is_at(row, point))
    ]
    return [point for i, point in enumerate(unknown) if point and point not in unknown[:i]]


def _is_at(row: tables.Row, point: Mapping[str, Any]) -> bool:
    return all(_same(row[name], value) for name, value in point.items())


def _told(points: Sequence[Mapping[str, tables.Value]], called: Mapping[str, str]) -> str:
    """Return points as people read them; `called` has words in place of values."""
    shown = [{name: tables.show(value) for name, value in point.items()} for point in points]
    return "; ".join(
        ", ".join(called.get(text, f"{name} = {text}") for name, text in point.items())
        for point in shown
    )


def _values(rows: Sequence[tables.Row], column: str) -> Numbers:
    """Return a column as numbers; an empty cell says nothing, and NaN is a run that failed."""
    return [None if (value := row[column]) is None else float(value) for row in rows]


def _limits(rows: Sequence[tables.Row], given: Mapping[str, Any]) -> Numbers:
    """Return the limit of each row: a number, or what a column holds."""
    limit = given.get("at_most", given.get("at_least"))
    if isinstance(limit, str):
        require_known(limit, rows[0], "the limit is no column")
        return _values(rows, limit)
    return [limit] * len(rows)


def _rounding(
    cell: Mapping[str, Any],
    rows: Sequence[tables.Row],
    outcome: Outcome,
    demand: Demand,
    pooled: tuple[float, int] | None,
    what: str,
) -> str:
    """Return in words how rounding decides the outcome; empty if it does not."""
    column = cell["select"]["column"]
    twin = f"{summaries.TWIN}{column}"
    if all(row.get(twin) is None for row in rows):
        return ""
    pairs = [(row[column], row[column] if row.get(twin) is None else row[twin]) for row in rows]
    ordered = [sorted(pair, key=_last) for pair in pairs]
    exchanged = [
        [row | {column: value} for row, value in zip(rows, values, strict=True)]
        for values in (
            [other for _, other in pairs],
            [least for least, _ in ordered],
            [most for _, most in ordered],
        )
    ]
    states = {_judged(cell, one, column, demand, pooled, what).state for one in exchanged}
    lasts = [(_last(least), _last(most)) for least, most in ordered]
    change = max(0.0 if least == most else most - least for least, most in lasts)
    text = f"one rounding of the starts changes a run by up to {tables.show(change)}"
    if states != {outcome.state}:
        return f"rounding decides: {text}, which changes the word"
    known = [v for v in _values(rows, column) if v is not None and math.isfinite(v)]
    width = max(known, default=0.0) - min(known, default=0.0)
    if "number" in cell["test"] and outcome.state != FAILS and 0 < width < 2 * change:
        return f"rounding decides: {text}, and the range of the starts is {tables.show(width)}"
    return ""


def _last(value: Any) -> float:
    """Return a value for sorting; a run without a result is beyond all numbers."""
    return math.inf if value is None or math.isnan(value) else float(value)


def _check_values(rows: Sequence[tables.Row], column: str, flags: bool, where: str) -> None:
    """Refuse text, numbers where flags are needed, and flags where numbers are needed."""
    for row in rows:
        value = row[column]
        if flags and not (value is None or isinstance(value, bool)):
            hint = "a test without a limit takes only true and false"
        elif not flags and isinstance(value, str | bool):
            hint = "test it without a limit" if isinstance(value, bool) else "it must hold numbers"
        else:
            continue
        raise ConfigError(f"{where}: column '{column}' holds {tables.show(value)!r}: {hint}")


def _among(value: tables.Value, wanted: Any) -> bool:
    return any(_same(value, one) for one in (wanted if isinstance(wanted, list) else [wanted]))


def _same(value: tables.Value, wanted: Any) -> bool:
    """Whether a cell holds the wanted value; YAML reads ``1e-6`` as text, so parse it."""
    if isinstance(wanted, str) and not isinstance(value, str) and not wanted.startswith('"'):
        wanted = tables.parse(wanted)
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
