"""Test the rows that a reading (one way to run an item) selects from a paper's tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from fedcore.errors import ConfigError, DataError, require_known
from fedcore.problems import STATUSES
from fedcore.reports import tables
from fedcore.repro.config.claims import LIMITS
from fedcore.repro.tables import summaries
from fedcore.repro.tables.rows import gathered, groups
from fedcore.repro.verdicts import decision_rules
from fedcore.repro.verdicts.decision_rules import FAILS, UNDECIDED, Demand, Numbers, Outcome, Part
from fedcore.words import few

NAMED = 4  # most points that are named where equally many of their runs agree
Cell = Mapping[str, Any]  # of a reading: what it selects, and its test
Rows = Sequence[tables.Row]


class Obstacle(Exception):
    """Error that says why a reading has no measured values."""


class Measurements:
    """Read each table of a paper once, and compare its values with what the paper prints.

    Parameters
    ----------
    folder : Path
        Folder of the paper's tables.
    stand_ins : bool
        Whether table rows without a ``status`` count as made from stand-in data.
    left_out : set of str
        Names of problems and experiments that the run left out. A point (setting of the runs) with
        such a name may lack results; the outcome then says that the name was not run.
    """

    def __init__(self, folder: Path, stand_ins: bool, left_out: Set[str]) -> None:
        self._folder, self._stand_ins, self._left_out = folder, stand_ins, left_out
        self._tables: dict[str, list[tables.Row]] = {}

    def measure(
        self, cells: Mapping[str, Cell], demand: Demand, what: str
    ) -> tuple[dict[str, Outcome], bool]:
        """Test each cell (tested value) of a reading on the table rows that the cell selects.

        Returns
        -------
        outcomes : dict of str to Outcome
            Outcome of each cell, keyed by its name.
        stand_in : bool
            True if any selected row comes from stand-in data.

        Raises
        ------
        Obstacle
            If a table, or a row that a cell needs, is missing.
        """
        demand = demand._replace(cells=len(cells))
        outcomes, stand_in = {}, False
        for name, cell in cells.items():
            where = f"{what}, {name}" if name else what
            rows = self._rows(cell["select"], where)
            for status in {row.get("status") for row in rows}:
                if status is not None:
                    require_known(status, STATUSES, f"{where}: unknown status", DataError)
                stand_in |= self._stand_ins if status is None else status == "surrogate"
            outcomes[name] = self._outcome(cell, rows, demand, where)
        return outcomes, stand_in

    def _rows(self, select: Mapping[str, Any], what: str) -> list[tables.Row]:
        table, where, points = self.table(select["table"]), select["where"], select["points"]
        for row in table[:1]:
            for name in (select["column"], *where, *points):
                require_known(name, row, f"{what}: {select['table']}.tsv has no column")
        rows = matching(table, where)
        lists = {name: v for name, v in where.items() if isinstance(v, list)}
        needed = [{n: one} for n, v in lists.items() if n not in points for one in v]
        if not rows or not all(matching(rows, one) for one in needed):
            raise Obstacle(select.get("absent", "This run has no result for it."))
        return rows

    def table(self, name: str) -> list[tables.Row]:
        """Return the rows of a table; raise `Obstacle` if there is no such table."""
        if name not in self._tables:
            path = self._folder / f"{name}.tsv"
            if not path.is_file():
                raise Obstacle(f"This run made no table '{name}'.")
            self._tables[name] = tables.read(path)
        return self._tables[name]

    def _outcome(self, cell: Cell, rows: Rows, demand: Demand, what: str) -> Outcome:
        """Return a cell's outcome; rounding or a missing result can make the outcome undecided."""
        select, pool, pooled = cell["select"], cell["test"].get("number", {}).get("pool"), None
        if pool is not None:
            like = {**select, "where": pool["where"], "points": pool["by"]}
            kinds = groups(self._rows(like, f"{what}, pool"), *pool["by"])
            values = [_values(part, select["column"]) for _, part in kinds]
            pooled = decision_rules.pooled_deviation(values)
        judged = partial(_judged, cell, demand, pooled, what)
        outcome = judged(rows)
        if outcome.state != UNDECIDED:
            why = _rounding(cell, rows, outcome, judged)
            if why:
                part = replace(outcome.part, state=UNDECIDED, lack=decision_rules.ROUNDED)
                return replace(outcome, part=part, why=why)
        unknown = _without_result(select, rows)
        missed = [point for point in unknown if self._left_out.isdisjoint(point.values())]
        left = {v for point in unknown for v in point.values() if v in self._left_out}
        called = select.get("called", {})
        at = tuple(_point(point, called) for point in missed)
        told = " and ".join(at)
        said = [outcome.measured]
        said += [f"{', '.join(sorted(map(str, left)))} not run"] if left else []
        said += [f"no result at {told}"] if missed and outcome.state == FAILS else []
        outcome = replace(outcome, measured=", ".join(said))
        if missed and outcome.state != FAILS:
            part = Part(UNDECIDED, outcome.part.share, decision_rules.SILENT, at)
            why = f"there is no result at {told}"
            outcome = replace(outcome, part=part, why=why, growth=0.0)
        elif outcome.why != decision_rules.NO_RESULT:
            return outcome
        if "silent" in select and outcome.state == UNDECIDED:
            part = replace(outcome.part, silent=select["silent"])
            outcome = replace(outcome, part=part, why=f"{outcome.why}: {select['silent']}")
        return outcome


def matching(table: Rows, where: Mapping[str, Any]) -> list[tables.Row]:
    """Return the rows that have the values in `where`; a list stands for any one of its values."""
    rows = list(table)
    for column, value in where.items():
        wanted = {one for v in (value if isinstance(value, list) else [value]) for one in _alike(v)}
        rows = [row for row in rows if (type(row[column]) is bool, row[column]) in wanted]
    return rows


def _alike(wanted: Any) -> list[tuple[bool, tables.Value]]:
    """Return the values that match `wanted`, each as a pair (whether it is a bool, value).

    A text also matches the value that it denotes, because YAML reads ``1e-6`` as text.
    """
    found = [wanted]
    if isinstance(wanted, str) and not wanted.startswith('"'):
        found.append(tables.parse(wanted))
    return [(type(one) is bool, one) for one in found]


def _judged(
    cell: Cell, demand: Demand, pooled: tuple[float, int] | None, what: str, rows: Rows
) -> Outcome:
    """Apply the test of a cell (tested value) to the values of `rows` in the cell's column."""
    ((kind, given),) = cell["test"].items()
    select, column = cell["select"], cell["select"]["column"]
    flags = kind != "number" and not any(limit in given for limit in LIMITS)
    _check_values(rows, column, flags, what)
    if kind == "exact":
        values, limits = _values(rows, column), _limits(rows, given)
        agree = decision_rules.agreement(values, given, limits)
        return decision_rules.judge_exact(values, agree, limits if "at_most" in given else ())
    points = [(key, _of_runs(part, what)) for key, part in groups(list(rows), *select["points"])]
    if kind == "number":
        if len(points) > 1:
            raise ConfigError(f"{what}: a 'number' test takes one point: use cells or another test")
        return decision_rules.judge_number(_values(points[0][1], column), given, demand, pooled)
    agreed = [
        decision_rules.agreement(_values(part, column), given, _limits(part, given))
        for _, part in points
    ]
    outcome = decision_rules.judge_runs(agreed, given, demand)
    # How many runs agree at which points, if not equally many at each.
    runs, called = min(map(len, agreed)), select.get("called", {})
    told = (_point(key, called) for key, _ in points)
    by_count = gathered(zip((v[:runs].count(1.0) for v in agreed), told, strict=True))
    if len(by_count) == 1:
        return outcome
    (least, names), *more = sorted(by_count.items())
    if outcome.part.lack == decision_rules.DOUBT:
        outcome = replace(outcome, part=replace(outcome.part, at=tuple(names)))
    parts = [f"{least} of {runs} at {few(names, NAMED, 'point')}"]
    if len(more) == 1 and len(more[0][1]) <= NAMED:
        parts.append(f"{more[0][0]} at {' and '.join(more[0][1])}")
    else:
        counts = dict.fromkeys((more[0][0], more[-1][0]))
        parts.append(f"{' to '.join(map(str, counts))} elsewhere")
    return replace(outcome, measured=f"{outcome.measured} ({'; '.join(parts)})")


def _point(key: Mapping[str, tables.Value], called: Mapping[str, str]) -> str:
    """Return a point (a value per column) as text; a number follows its column's name: n = 100."""
    shown = {column: tables.show(value) for column, value in key.items()}
    return ", ".join(
        called.get(text, text if isinstance(key[column], str) else f"{column} = {text}")
        for column, text in shown.items()
    )


def _of_runs(rows: list[tables.Row], what: str) -> list[tables.Row]:
    """Return the rows of a point in the order of seeds; raise an error if a run has two rows."""
    if "repeat" not in rows[0]:
        return rows
    repeat, n = Counter(row["repeat"] for row in rows).most_common(1)[0]
    if n > 1:
        raise ConfigError(
            f"{what}: a point has {n} rows of run {repeat}, but needs one: add the column that "
            "distinguishes these rows to 'points', or narrow 'where'"
        )
    return sorted(rows, key=lambda row: float(row["repeat"] or 0))


def _without_result(select: Mapping[str, Any], rows: Rows) -> list[dict[str, tables.Value]]:
    """Return the points at which no run has a result, each as a dict from column to value.

    A point without a result has only empty values, or has no row although ``where`` lists it.
    """
    by, column = select["points"], select["column"]
    listed = {name: w for name in by if isinstance(w := select["where"].get(name), list)}
    asked = [dict(zip(listed, values, strict=True)) for values in product(*listed.values())]
    asked += [point for point, _ in groups(list(rows), *by)]
    unknown = [p for p in asked if all(row[column] is None for row in matching(rows, p))]
    return [point for i, point in enumerate(unknown) if point and point not in unknown[:i]]


def _values(rows: Rows, column: str) -> Numbers:
    """Return the numbers of a column, with None for empty cells and NaN for failed runs."""
    return [None if (value := row[column]) is None else float(value) for row in rows]


def _limits(rows: Rows, given: Mapping[str, Any]) -> Numbers:
    """Return the limit of each row: a fixed number, the row's value in a column, or None."""
    limit = given.get("at_most", given.get("at_least"))
    if isinstance(limit, str):
        require_known(limit, rows[0], "the limit is no column")
        return _values(rows, limit)
    return [limit] * len(rows)


def _rounding(cell: Cell, rows: Rows, outcome: Outcome, judged: Callable[[Rows], Outcome]) -> str:
    """Return how rounding decides the outcome, as text; empty if rounding does not decide it."""
    column = cell["select"]["column"]
    twin = f"{summaries.TWIN}{column}"
    if all(row.get(twin) is None for row in rows):
        return ""

    def last(row: tables.Row) -> float:
        """Return a row's value for sorting; rows without a result come after all numbers."""
        (value,) = _values([row], column)
        return math.inf if value is None or math.isnan(value) else value

    twins = [row if row.get(twin) is None else row | {column: row[twin]} for row in rows]
    ordered = [sorted(pair, key=last) for pair in zip(rows, twins, strict=True)]
    least, most = zip(*ordered, strict=True)
    states = {judged(one).state for one in (twins, least, most)}
    ends = [(last(low), last(high)) for low, high in ordered]
    change = max(0.0 if low == high else high - low for low, high in ends)
    text = f"one rounding of the starts changes a run by up to {tables.show(change)}"
    if states != {outcome.state}:
        return f"rounding decides: {text}, which changes the word"
    known = [v for v in _values(rows, column) if v is not None and math.isfinite(v)]
    width = max(known, default=0.0) - min(known, default=0.0)
    if "number" in cell["test"] and outcome.state != FAILS and 0 < width < 2 * change:
        return f"rounding decides: {text}, and the range of the starts is {tables.show(width)}"
    return ""


def _check_values(rows: Rows, column: str, flags: bool, where: str) -> None:
    """Raise `ConfigError` if a column lacks the truth values or numbers that its test needs."""
    for row in rows:
        value = row[column]
        if flags and not (value is None or isinstance(value, bool)):
            hint = "a test without a limit takes only true and false"
        elif not flags and isinstance(value, str | bool):
            hint = "test it without a limit" if isinstance(value, bool) else "it must hold numbers"
        else:
            continue
        raise ConfigError(f"{where}: column '{column}' holds {tables.show(value)!r}: {hint}")
