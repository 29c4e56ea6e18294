"""The cells of our tables that a verdict rests on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fedcore.reports import tables
from fedcore.reports.tables import Row
from fedcore.repro.verdicts import measurements
from fedcore.repro.verdicts.verdicts import Verdict

LONG = 40


@dataclass(frozen=True)
class Judged:
    """The cells of a table of ours that a verdict rests on.

    `rows` are their values as text, without those after the first `LONG` rows; `all_rows` is how
    many there are; `experiments` and `problems` are those that the rows name.
    """

    table: str
    where: str
    columns: list[str]
    rows: list[list[str]]
    all_rows: int
    experiments: frozenset[str]
    problems: frozenset[str]


def _numbers(rows: Sequence[Row], besides: set[str]) -> list[str]:
    """Return the other columns that hold numbers, where they differ or there is one row."""
    names = [name for name in rows[0] if name not in besides]
    found = {name: {row[name] for row in rows if isinstance(row[name], float)} for name in names}
    return [name for name in names if len(found[name]) > 1 or (found[name] and len(rows) == 1)]


class Tables:
    """Our tables of one paper, each read once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: dict[str, list[Row]] = {}

    def judging(self, verdict: Verdict, item: Mapping[str, Any]) -> Judged | None:
        """Return the cells that a verdict on an item rests on; None if there are none."""
        if not verdict.readings:
            return None
        names = {departure.name for departure in verdict.departures}
        ways = (one for one in (item, *item["readings"]) if set(one["departures"]) == names)
        if (way := next(ways, None)) is None:  # the claims file is another
            return None
        select = way.get("select", item["select"])
        rows = measurements.matching(self._rows_of(select["table"]), select["where"])
        if not rows:
            return None
        named = [*select["where"], select.get("each"), "repeat"]
        columns = [name for name in dict.fromkeys(named) if name in rows[0]]
        columns = [name for name in columns if name != select["column"]] + [select["column"]]
        if all(isinstance(row[columns[-1]], bool | None) for row in rows):  # what it is read off
            columns[-1:-1] = _numbers(rows, set(columns))
        shown = [[tables.show(row[name]) for name in columns] for row in rows[:LONG]]
        experiments, problems = (
            frozenset(str(row[name]) for row in rows if row.get(name))
            for name in ("experiment", "problem")
        )
        return Judged(
            select["table"], verdict.where, columns, shown, len(rows), experiments, problems
        )

    def _rows_of(self, table: str) -> list[Row]:
        """Return the rows of a table; none where it was not made."""
        if table not in self._rows:
            file = self._folder / f"{table}.tsv"
            self._rows[table] = tables.read(file) if file.is_file() else []
        return self._rows[table]
