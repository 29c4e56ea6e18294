"""Find the cells on which each item's verdict rests, and how many runs would decide the item.

An item is a printed number or statement, a reading is one way to run an item, and a cell is a
planned run. Each table is computed again to find out which cells it reads. An item selects rows of
a table. Its verdict rests on those cells that the table reads and whose experiment and problem
occur in a selected row. If the table lacks the column ``experiment`` or ``problem``, the missing
column is not compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any

from fedcore.experiments.cell import Cell
from fedcore.repro.config.claims import by_id
from fedcore.repro.tables.report import declared_tables
from fedcore.repro.tables.results import Results
from fedcore.repro.verdicts.decision_rules import UNDECIDED, judge_jointly
from fedcore.repro.verdicts.measurements import Measurements, Obstacle, matching
from fedcore.repro.verdicts.verdicts import demand_of

APART = ("experiment", "problem")  # columns by which rows tell cells apart


class Evidence:
    """Cells on which each item of a paper rests, and how many runs would decide the item.

    Parameters
    ----------
    plan : path-like
        Plan file ``<results>/plans/<paper>.json`` of a paper whose tables exist.
    claims : mapping
        Claims file, as `fedcore.repro.config.claims.read` returns it.
    """

    def __init__(self, plan: Any, claims: Mapping[str, Any]) -> None:
        results = Results(plan)
        declared = declared_tables(results)
        self._claims, self._paper = claims, results.plan["paper"]
        self._measurements = Measurements(
            results.tables, results.plan["run"]["surrogates"], {*results.plan["missing"]}
        )
        self._read: dict[str, list[Cell]] = {}
        for name in results.plan["tables"]:
            once = copy(results)  # another object each time: a paper's @cache would hide cells
            once.asked = set()
            declared[name].rows(once)
            self._read[name] = [cell for cell in once.cells.values() if cell.short in once.asked]

    def cells(self) -> dict[str, list[str]]:
        """Return the paths of the cells on which each item rests, keyed by the item's id.

        Items without such cells are left out.
        """
        items = by_id(self._claims).items()
        found = {name: self._behind(item["readings"]) for name, item in items}
        return {name: cells for name, cells in found.items() if cells}

    def growth(self, name: str) -> tuple[float, list[str]]:
        """Return the factor by which an item needs more runs, and the paths of the cells to run.

        Only readings as printed (without replacements) count. The factor is 0 if none of them is
        undecided, or if no number of runs would decide one of them, for example because of
        rounding.
        """
        item = by_id(self._claims)[name]
        printed = [reading for reading in item["readings"] if not reading["replaces"]]
        factors, open_ = [], []
        for reading in printed:
            demand = demand_of(item, reading, self._claims["changes"])
            what = f"{self._paper}, {name}"
            try:
                cells, _ = self._measurements.measure(reading["cells"], demand, what)
            except Obstacle:
                continue
            made = judge_jointly(cells, "panel" in item)
            if made.state == UNDECIDED:
                factors.append(made.growth)
                open_.append(reading)
        return (max(factors) if factors and all(factors) else 0.0), self._behind(open_)

    def _behind(self, readings: Iterable[Mapping[str, Any]]) -> list[str]:
        """Return the paths of the cells on which these readings rest."""
        found: set[str] = set()
        selects = [cell["select"] for reading in readings for cell in reading["cells"].values()]
        for select in selects:
            chosen = matching(self._measurements.table(select["table"]), select["where"])
            apart = [column for column in APART if column in chosen[0]] if chosen else []
            wanted = {tuple(row[column] for column in apart) for row in chosen}
            found |= {
                cell.path
                for cell in self._read[select["table"]]
                if tuple(getattr(cell, column) for column in apart) in wanted
            }
        return sorted(found)
