"""Measurements: the rows of a paper's tables that an item selects, held against its test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fedcore.errors import ConfigError, DataError, nearest, require_known
from fedcore.problems import STATUSES
from fedcore.reports import outcomes, summaries, tables
from fedcore.reports.outcomes import FAILS, HOLDS, UNDECIDED, Outcome
from fedcore.reports.rows import groups

NOTHING = Outcome(UNDECIDED, "", "", "")


@dataclass(frozen=True)
class Reading:
    """One way in which an item was run: its departures and what came out."""

    departures: tuple[str, ...]
    obstacle: str = ""  # why nothing was measured
    outcome: Outcome = NOTHING
    values: tuple[float, ...] = ()
    surrogate: bool = False
    counterfactual: str = ""
    turned: bool | None = None


class Measurements:
    """Reads each table of one paper once, and holds its values against what is printed."""

    def __init__(self, folder: Path, surrogate: bool) -> None:
        self._folder, self._surrogate = folder, surrogate
        self._tables: dict[str, list[tables.Row]] = {}

    def measure(self, item: Mapping[str, Any], departures: tuple[str, ...], what: str) -> Reading:
        """Make the test of an item, and its counterfactual, on the rows that it selects."""
        try:
            rows = self._rows(item["select"], what)
        except _Obstacle as obstacle:
            return Reading(departures, str(obstacle))
        path = self._folder / f"{item['select']['table']}.tsv"
        surrogate = any(self._is_surrogate(row, path) for row in rows)
        column, by = item["select"]["column"], item["select"].get("each")
        _check_values(rows, column, "holds" in item["test"], f"{what}: column '{column}' of {path}")
        parts = [group for _, group in groups(rows, by)] if by else [rows]
        names = [str(group[0][by]) for group in parts] if by else [""]
        found = [self._outcome(item, part, what) for part in parts]
        outcome = _joined([o for o, _, _ in found], names, by)
        over = item["select"].get("averaged_over")
        values = tuple(x for part in parts for x in _values(_averaged(part, column, over), column))
        texts = list(dict.fromkeys(text for _, text, _ in found if text))
        results = [turned for _, _, turned in found if turned is not None]
        return Reading(
            departures, "", outcome, values, surrogate, "; ".join(texts),
            any(results) if results else None,
        )  # fmt: skip

    def _rows(self, select: Mapping[str, Any], what: str) -> list[tables.Row]:
        """Return the rows that are selected.

        Raises
        ------
        _Obstacle
            When there are none.
        """
        path = self._folder / f"{select['table']}.tsv"
        if select["table"] not in self._tables:
            if not path.is_file():
                known = [file.stem for file in self._folder.glob("*.tsv")]
                raise _Obstacle(f"no table {path}: {nearest(select['table'], known)}")
            self._tables[select["table"]] = tables.read(path)
        table, where = self._tables[select["table"]], select["where"]
        extra = [select[key] for key in ("averaged_over", "each") if key in select]
        for name in (select["column"], *where, *extra):
            if table:
                require_known(name, table[0], f"{what}: {path} has no column")
        rows = [row for row in table if all(_among(row[k], v) for k, v in where.items())]
        if not rows:
            values = ", ".join(f"{k} = {_listed(v)}" for k, v in where.items())
            raise _Obstacle(f"no row in {path}" + (f" with {values}" if values else ""))
        return rows

    def _outcome(
        self, item: Mapping[str, Any], rows: list[tables.Row], what: str
    ) -> tuple[Outcome, str, bool | None]:
        """Return the outcome for one set of rows, its counterfactual, and whether that turned."""
        select, test, spread = item["select"], item["test"], item["spread"]
        rows = _averaged(rows, select["column"], select.get("averaged_over"))
        values = _values(rows, select["column"])
        outcome = outcomes.judge(test, values, spread=spread)
        if outcome.state != UNDECIDED and (lack := _rounding(rows, select["column"], test, spread)):
            outcome = replace(outcome, state=UNDECIDED, lack=lack)
        if outcome.state == UNDECIDED:
            return outcome, "", None
        given = item.get("counterfactual")
        if given is None or outcome.state == FAILS:
            text, other = outcomes.turned(test, values, outcome.state, spread=spread)
        elif "scale" in given:
            _, other = outcomes.scaled(test, values, given["scale"], spread=spread)
            text = given["what"]
        else:
            column = given["select"].get("column", select["column"])
            merged = {**select, **given["select"]}
            merged["where"] = {**select["where"], **given["select"].get("where", {})}
            try:
                found = _averaged(self._rows(merged, what), column, merged.get("averaged_over"))
            except _Obstacle as obstacle:
                return outcome, f"{given['what']}: {obstacle}", False
            other = outcomes.judge(test, _values(found, column), spread=spread)
            text = f"{given['what']} ({other.measured})"
        outcome = outcomes.with_power(outcome, text, other)
        turned = other.state != outcome.state if outcome.state != UNDECIDED else None
        return outcome, f"{text}: {other.state}", turned

    def _is_surrogate(self, row: tables.Row, path: Path) -> bool:
        status = row.get("status")
        if status is None:
            return self._surrogate
        require_known(status, STATUSES, f"{path}: unknown status", DataError)
        return status == "surrogate"


class _Obstacle(Exception):
    """Why nothing was measured."""


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
    )


def _values(rows: Sequence[tables.Row], column: str) -> list[float]:
    """Return a column as numbers, NaN for a repeat without a result."""
    return [math.nan if (value := row[column]) is None else float(value) for row in rows]


def _averaged(rows: list[tables.Row], column: str, over: str | None) -> list[tables.Row]:
    """Return a row per repeat with the mean of a column, and of its twins, over another column."""
    if over is None:
        return rows
    twin, found = f"{summaries.TWIN}{column}", []
    for _, group in groups(rows, "repeat"):
        row = dict(group[0])
        for name in (column, twin) if twin in row else (column,):
            values = _values(group, name)
            row[name] = sum(values) / len(values)
        if twin in row and math.isnan(*_values([row], twin)):
            row[twin] = None  # not every one has a twin
        found.append(row)
    return found


def _rounding(
    rows: Sequence[tables.Row], column: str, test: Mapping[str, Any], spread: bool
) -> str:
    """Return in words how rounding decides the outcome; empty if it does not."""
    names = [f"{prefix}{column}" for prefix in (summaries.TWIN, summaries.LEAST, summaries.MOST)]
    pairs = [
        (row[column], [row[name] for name in names if row.get(name) is not None]) for row in rows
    ]
    if not any(twins for _, twins in pairs):
        return ""
    options = [[_number(own), *map(_number, twins)] for own, twins in pairs]
    states = {
        outcomes.judge(test, values, spread=spread).state
        for values in (
            [some[0] for some in options],
            [some[min(1, len(some) - 1)] for some in options],
            [min(some) for some in options],
            [max(some) for some in options],
        )
    }
    change = max(max(some) - min(some) for some in options)
    text = f"one rounding of the starts changes a repeat by up to {tables.show(change)}"
    if len(states) > 1:
        return f"rounding decides: {text}, which changes the outcome"
    own = [some[0] for some in options if math.isfinite(some[0])]
    if "one_run" in test and len(own) > 1 and change > (max(own) - min(own)) / 2:
        spread_of_starts = tables.show(max(own) - min(own))
        return f"rounding decides: {text}, and the range of the starts is {spread_of_starts}"
    return ""


def _number(value: tables.Value) -> float:
    """Return a value as a number; a repeat without a result is beyond all numbers."""
    return math.inf if value is None or (value != value) else float(value)


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
        raise ConfigError(f"{where} holds {tables.show(value)!r}: {hint}")


def _among(value: tables.Value, wanted: Any) -> bool:
    return any(_same(value, one) for one in (wanted if isinstance(wanted, list) else [wanted]))


def _listed(wanted: Any) -> str:
    return " or ".join(map(tables.show, wanted if isinstance(wanted, list) else [wanted]))


def _same(value: tables.Value, wanted: Any) -> bool:
    """Whether a cell holds the wanted value; YAML reads ``1e-6`` as text, so parse it."""
    if isinstance(wanted, str) and not isinstance(value, str) and not wanted.startswith('"'):
        wanted = tables.parse(wanted)
    return value == wanted and isinstance(value, bool) == isinstance(wanted, bool)
