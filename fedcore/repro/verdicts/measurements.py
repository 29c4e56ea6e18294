"""Measurements: the rows of a paper's tables that an item selects, held against its test."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedcore.errors import ConfigError, DataError, nearest, require_known
from fedcore.problems import STATUSES
from fedcore.reports import tables
from fedcore.repro.config.short_forms import merge
from fedcore.repro.tables import summaries
from fedcore.repro.tables.rows import groups
from fedcore.repro.verdicts import claim_tests, counterfactuals
from fedcore.repro.verdicts.claim_tests import FAILS, HOLDS, UNDECIDED, Numbers, Outcome

NOTHING = Outcome("", "", "", "")


@dataclass(frozen=True)
class Departure:
    """How a reading differs from what is printed.

    Attributes
    ----------
    name : str
        As in the claims file.
    what, ground : str
        What was done, and why; grounds are those of ``claims.schema.yaml``.
    tried : int
        Of a fitted one, how many readings were tried.
    searched : str
        Of a fitted one, on what they were tried.
    """

    name: str
    what: str
    ground: str
    tried: int = 0
    searched: str = ""


@dataclass(frozen=True)
class Measurement:
    """What came out of one reading of an item."""

    departures: tuple[Departure, ...]
    where: str = ""  # the column and the rows that hold its values, in words
    obstacle: str = ""  # why nothing was measured
    outcome: Outcome = NOTHING
    values: tuple[float | None, ...] = ()
    flags: bool = False  # whether the values are true and false
    surrogate: bool = False
    counterfactual: str = ""
    turned: bool | None = None  # None where nothing is decided that could turn
    powerless: bool = False  # whether it agrees, and would also agree with its counterfactual

    @property
    def silent(self) -> bool:
        """Whether it was run, and no repeat says anything of the item."""
        return bool(self.values) and all(value is None for value in self.values)


class Measurements:
    """Reads each table of one paper once, and holds its values against what is printed."""

    def __init__(self, folder: Path, surrogate: bool) -> None:
        self._folder, self._surrogate = folder, surrogate
        self._tables: dict[str, list[tables.Row]] = {}

    def measure(
        self, item: Mapping[str, Any], departures: tuple[Departure, ...], what: str
    ) -> Measurement:
        """Make the test of an item, and its counterfactual, on the rows that it selects."""
        select = item["select"]
        try:
            rows = self._rows(select, what)
        except _Obstacle as obstacle:
            return Measurement(departures, place(select), str(obstacle))
        path = self._folder / f"{select['table']}.tsv"
        surrogate = any(self._is_surrogate(row, path) for row in rows)
        flags, by = "holds" in item["test"], select.get("each")
        _check_values(rows, select["column"], flags, f"{what}: {path}")
        parts = [group for _, group in groups(rows, by)] if by else [rows]
        for part in parts:
            _require_independent(part, item, f"{what}: {path}")
        found = self._outcomes(item, parts, what)
        names = [tables.show(part[0][by]) for part in parts] if by else [""]
        outcome = _joined([outcome for outcome, _, _ in found], names, by)
        values = tuple(x for part in parts for x in _values(part, select["column"]))
        made = Measurement(departures, place(select), "", outcome, values, flags, surrogate)
        if outcome.state == UNDECIDED:
            undecided = [turned for one, _, turned in found if one.state == UNDECIDED]
            return replace(made, powerless=all(turned is False for turned in undecided))
        decisive = [(text, turned) for one, text, turned in found if one.state == outcome.state]
        texts = dict.fromkeys(text for text, _ in decisive)
        turned = all(turned for _, turned in decisive)
        return replace(made, counterfactual="; ".join(texts), turned=turned)

    def _rows(self, select: Mapping[str, Any], what: str) -> list[tables.Row]:
        """Return the rows that are selected."""
        path = self._folder / f"{select['table']}.tsv"
        if select["table"] not in self._tables:
            if not path.is_file():
                known = [file.stem for file in self._folder.glob("*.tsv")]
                raise _Obstacle(f"no table {path}: {nearest(select['table'], known)}")
            self._tables[select["table"]] = tables.read(path)
        table, where = self._tables[select["table"]], select["where"]
        extra = [select["each"]] if "each" in select else []
        for name in (select["column"], *where, *extra):
            if table:
                require_known(name, table[0], f"{what}: {path} has no column")
        rows = matching(table, where)
        if not rows:
            values = ", ".join(f"{k} = {_listed(v)}" for k, v in where.items())
            why = f": {select['absent']}" if "absent" in select else ""
            raise _Obstacle(f"no row in {path}" + (f" with {values}" if values else "") + why)
        for name, wanted in where.items():
            for one in wanted if isinstance(wanted, list) else []:
                if not any(_same(row[name], one) for row in rows):
                    raise _Obstacle(f"no such row in {path} with {name} = {_listed(one)}")
        return rows

    def _outcomes(
        self, item: Mapping[str, Any], parts: Sequence[list[tables.Row]], what: str
    ) -> list[tuple[Outcome, str, bool | None]]:
        """Return the outcome for each group of rows, its counterfactual, and whether it turned."""
        column, test, spread = item["select"]["column"], item["test"], item["spread"]

        def judged(i: int, failing: float) -> Outcome:
            values = _values(parts[i], column)
            return claim_tests.outcome_of(test, values, spread=spread, failing=failing)

        found = claim_tests.joined(judged, len(parts))
        return [self._turned(item, part, one, what) for part, one in zip(parts, found, strict=True)]

    def _turned(
        self, item: Mapping[str, Any], rows: list[tables.Row], outcome: Outcome, what: str
    ) -> tuple[Outcome, str, bool | None]:
        """Return the outcome after rounding and counterfactuals, these, and whether they turned."""
        column, test, spread = item["select"]["column"], item["test"], item["spread"]
        values = _values(rows, column)
        if outcome.state != UNDECIDED and (lack := _rounding(rows, column, test, spread)):
            outcome = replace(outcome, state=UNDECIDED, lack=lack)
        if outcome.state == UNDECIDED:
            return outcome, "", None
        given = item.get("counterfactual")
        if given is None or outcome.state == FAILS:
            others = counterfactuals.turned(test, values, outcome.state, spread=spread)
        elif "scale" in given:
            scaled = counterfactuals.scaled(test, values, given["scale"], spread=spread)
            others = [(given["what"], scaled)]
        else:
            try:
                other = self._instead(item, rows[0], what)
            except _Obstacle as obstacle:
                lack = f"its counterfactual could not be run: {given['what']}: {obstacle}"
                return replace(outcome, state=UNDECIDED, lack=lack, no_rival=True), "", None
            others = [(f"{given['what']} ({other.measured})", other)]
        outcome, turned = counterfactuals.with_power(outcome, others)
        return outcome, "; ".join(f"{text}: {other.state}" for text, other in others), turned

    def _instead(self, item: Mapping[str, Any], row: tables.Row, what: str) -> Outcome:
        """Return the outcome with the rows of the counterfactual, of the same group as `row`."""
        select, by = item["counterfactual"]["select"], item["select"].get("each")
        if by and select["where"].get(by) == item["select"]["where"].get(by):
            select = merge(select, {"where": {by: row[by]}})
        rows = self._rows(select, what)
        where = f"{what}, counterfactual: {self._folder / select['table']}.tsv"
        _check_values(rows, select["column"], "holds" in item["test"], where)
        values = _values(rows, select["column"])
        return claim_tests.outcome_of(item["test"], values, spread=item["spread"])

    def _is_surrogate(self, row: tables.Row, path: Path) -> bool:
        status = row.get("status")
        if status is None:
            return self._surrogate
        require_known(status, STATUSES, f"{path}: unknown status", DataError)
        return status == "surrogate"


class _Obstacle(Exception):
    """Why nothing was measured."""


def matching(table: Sequence[tables.Row], where: Mapping[str, Any]) -> list[tables.Row]:
    """Return the rows that have the wanted value, or one of a list of them, in every column."""
    return [row for row in table if all(_among(row[k], v) for k, v in where.items())]


def place(select: Mapping[str, Any]) -> str:
    """Return in words which values `select` takes."""
    rows = [f"{name} = {_listed(value)}" for name, value in select["where"].items()]
    more = [f"each {select['each']}"] if "each" in select else []
    return "; ".join(
        filter(None, [f"{select['table']}.tsv, {select['column']}", ", ".join(rows), *more])
    )


def _joined(found: Sequence[Outcome], names: Sequence[str], by: str | None) -> Outcome:
    """Return one outcome for a claim that must hold in every group."""
    if by is None:
        return found[0]
    states = [outcome.state for outcome in found]
    state = FAILS if FAILS in states else UNDECIDED if UNDECIDED in states else HOLDS
    pairs = list(zip(names, found, strict=True))
    return Outcome(
        state,
        "; ".join(f"{name}: {outcome.measured}" for name, outcome in pairs),
        f"{found[0].accepted}, for every {by}",
        f"{states.count(HOLDS)} of {len(states)} hold",
        "; ".join(f"{name}: {o.lack}" for name, o in pairs if o.lack) if state != FAILS else "",
        ends=any(o.ends for o in found),
        no_rival=state != FAILS and any(o.no_rival for o in found),
    )


def _values(rows: Sequence[tables.Row], column: str) -> Numbers:
    """Return a column as numbers; an empty cell says nothing, and NaN is a run that failed."""
    return [None if (value := row[column]) is None else float(value) for row in rows]


def _require_independent(rows: Sequence[tables.Row], item: Mapping[str, Any], where: str) -> None:
    """Refuse two rows of one repeat where a test takes rows for independent runs."""
    ((kind, given),) = item["test"].items()
    most = given == "most" or (isinstance(given, Mapping) and given.get("of") == "most")
    if "repeat" not in rows[0] or not item["spread"] or not (kind in ("one_run", "mean") or most):
        return
    counts = Counter(row["repeat"] for row in rows)
    repeat, n = counts.most_common(1)[0]
    if n > 1:
        raise ConfigError(
            f"{where}: {n} rows are of repeat {repeat}, and '{kind}' needs one row per repeat: "
            "use 'each' or a narrower 'where'"
        )


def _rounding(
    rows: Sequence[tables.Row], column: str, test: Mapping[str, Any], spread: bool
) -> str:
    """Return in words how rounding decides the outcome; empty if it does not."""
    twin = f"{summaries.TWIN}{column}"
    if all(row.get(twin) is None for row in rows):
        return ""
    own = _values(rows, column)
    others = [
        x if row.get(twin) is None else value
        for x, row, value in zip(own, rows, _values(rows, twin), strict=True)
    ]
    ends = [sorted(pair, key=_last) for pair in zip(own, others, strict=True)]
    exchanged = (own, others, [least for least, _ in ends], [most for _, most in ends])
    states = {claim_tests.outcome_of(test, values, spread=spread).state for values in exchanged}
    lasts = [(_last(least), _last(most)) for least, most in ends]
    change = max(0.0 if least == most else most - least for least, most in lasts)
    text = f"one rounding of the starts changes a repeat by up to {tables.show(change)}"
    if len(states) > 1:
        return f"rounding decides: {text}, which changes the outcome"
    known = claim_tests.known_of(own)
    width = max(known, default=0.0) - min(known, default=0.0)
    wide = len(known) > 1 and change > width / 2
    if "one_run" in test and wide and states != {FAILS}:  # what always fails needs no range
        return f"rounding decides: {text}, and the range of the starts is {tables.show(width)}"
    return ""


def _last(value: float | None) -> float:
    """Return a value for sorting; a repeat without a result is beyond all numbers."""
    return math.inf if value is None or math.isnan(value) else value


def _check_values(rows: Sequence[tables.Row], column: str, flags: bool, where: str) -> None:
    """Refuse text, numbers where flags are needed, and flags where numbers are needed."""
    for row in rows:
        value = row[column]
        if flags and not (value is None or isinstance(value, bool)):
            hint = "'holds' takes only true and false"
        elif not flags and isinstance(value, str | bool):
            hint = "test it with 'holds'" if isinstance(value, bool) else "it must hold numbers"
        else:
            continue
        raise ConfigError(f"{where}: column '{column}' holds {tables.show(value)!r}: {hint}")


def _among(value: tables.Value, wanted: Any) -> bool:
    return any(_same(value, one) for one in (wanted if isinstance(wanted, list) else [wanted]))


def _listed(wanted: Any) -> str:
    return " or ".join(map(tables.show, wanted if isinstance(wanted, list) else [wanted]))


def _same(value: tables.Value, wanted: Any) -> bool:
    """Whether a cell holds the wanted value; YAML reads ``1e-6`` as text, so parse it."""
    if isinstance(wanted, str) and not isinstance(value, str) and not wanted.startswith('"'):
        wanted = tables.parse(wanted)
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
