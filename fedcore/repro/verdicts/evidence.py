"""Evidence: the cells on which each item rests.

A table is made once more, and each history that it reads is noted. Of these an item needs those
whose experiment and problem the rows have that it selects, where the table tells them apart.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from fedcore.experiments.cell import Cell
from fedcore.history import History
from fedcore.reports import tables
from fedcore.repro.config import papers as paper_files
from fedcore.repro.tables.results import Results
from fedcore.repro.verdicts.measurements import matching

APART = ("experiment", "problem")  # columns by which rows tell cells apart


class _Noting(Results):
    """Results that note which histories are read."""

    def __init__(self, plan: Any) -> None:
        super().__init__(plan)
        self.noted: set[str] = set()

    def __getitem__(self, cell: str) -> History:
        self.noted.add(cell)
        return super().__getitem__(cell)


def cells_behind(plan: Any, claims: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the paths of the cells behind each item that was run, by its id.

    Parameters
    ----------
    plan : path-like
        File ``<results>/plans/<paper>.json``, whose tables have been made.
    claims : mapping
        A claims file as `fedcore.repro.config.claims.read` returns it.
    """
    results = _Noting(plan)
    files = paper_files.at(results.plan["entry"])
    files.make_importable()
    declared = importlib.import_module(files.tables).TABLES
    read: dict[str, list[Cell]] = {}
    for name in results.plan["tables"]:
        results.noted.clear()
        declared[name].rows(results)
        read[name] = [cell for cell in results.cells.values() if cell.short in results.noted]
    rows = {name: tables.read(results.tables / f"{name}.tsv") for name in read}
    found: dict[str, list[str]] = {}
    for item in (*claims["items"], *claims["software"]):
        behind: dict[str, None] = {}
        for reading in item["readings"]:
            for cell in reading["cells"].values():
                behind |= dict.fromkeys(_selected(cell["select"], rows, read))
        if behind:
            found[item["id"]] = sorted(behind)
    return found


def _selected(
    select: Mapping[str, Any], rows: Mapping[str, list[tables.Row]], read: Mapping[str, list[Cell]]
) -> list[str]:
    """Return the cells of a table that stand behind the rows that are selected."""
    name = select["table"]
    if name not in rows or not rows[name]:
        return []
    chosen = matching(rows[name], select["where"])
    apart = [column for column in APART if column in rows[name][0]]
    wanted = {tuple(row[column] for column in apart) for row in chosen}
    return [cell.path for cell in read[name] if tuple(getattr(cell, c) for c in apart) in wanted]
