"""Write the tables that a paper's module ``tables.py`` declares.

A paper without this module gets one table, ``ends``, with the last values of every run.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any, NamedTuple

from fedcore.errors import ConfigError
from fedcore.recorder import NOT_RELEASED
from fedcore.reports import tables
from fedcore.repro.config import papers as paper_files
from fedcore.repro.tables.results import Results, last
from fedcore.repro.tables.rows import Rows, groups
from fedcore.repro.tables.summaries import statistic

# A point below every table of a paper with private runs.
UNRELEASED = f"Measures of private runs are exact functions of their data: {NOT_RELEASED}."
SPENT = {"rounds": "round", "bytes_up": "bytes_up", "bytes_down": "bytes_down"}
NAMED = ("experiment", "problem", "algorithm", "variant")


class Table(NamedTuple):
    """A table that a paper declares.

    Attributes
    ----------
    rows : callable
        Function that takes `Results` and returns the rows of the table.
    shown : callable, optional
        Function that turns the rows of the table into the rows that Markdown shows; see
        `summaries.by_group`.
    """

    rows: Callable[[Results], Rows]
    shown: Callable[[Rows], Rows] | None = None


def declared_tables(results: Results) -> dict[str, Table]:
    """Return the tables that a paper's module declares in ``TABLES``."""
    files = paper_files.at(results.plan["entry"])
    files.make_importable()
    declared: dict[str, Table] = getattr(importlib.import_module(files.tables), "TABLES", {})
    return declared


def write_tables(plan: str | os.PathLike[str]) -> None:
    """Write the tables that a paper's module declares, with the captions in the plan.

    Parameters
    ----------
    plan : path-like
        File ``<results>/plans/<paper>.json``.

    Raises
    ------
    ConfigError
        If the paper's ``experiments.yaml`` and its module name different tables.
    """
    results = Results(plan)
    paper, captions = results.plan["paper"], results.plan["tables"]
    declared = declared_tables(results)
    differing = sorted(set(captions) ^ set(declared))
    if differing:
        files = paper_files.at(results.plan["entry"])
        where = files.report if differing[0] in declared else files.paper
        raise ConfigError(
            f"paper {paper}: only {where} has the table '{differing[0]}': add it to the other "
            "file, or remove it"
        )
    made = {name: declared[name].rows(results) for name in captions}
    below = [UNRELEASED] if results.private else []  # once all histories have been read
    for name, rows in made.items():
        shown = declared[name].shown
        tables.write(
            rows, results.tables / f"{name}.tsv", caption=captions[name],
            shown=shown(rows) if shown else None, below=below,
        )  # fmt: skip


def ends(results: Results) -> Rows:
    """Return one row per repeat, with the last value of every measure and the costs of the run.

    A measure is None in the rows of experiments that do not record it.
    """
    experiments = results.plan["experiments"].values()
    measures = list(dict.fromkeys(name for spec in experiments for name in spec["metrics"]))
    rows: Rows = []
    for run in results.runs():
        columns: dict[str, Any] = dict.fromkeys([*measures, "epsilon"])
        columns |= {name: last(name) for name in columns if name in run.history.columns}
        columns |= {name: last(column) for name, column in SPENT.items()}
        rows += run.rows(**columns)
    return rows


def medians(rows: Rows) -> Rows:
    """Return one row per cell (planned run), with the medians over its repeats.

    Columns without any value are left out.
    """
    columns = list(rows[0]) if rows else ["repeat"]
    values = [
        name
        for name in columns[columns.index("repeat") + 1 :]
        if any(row[name] is not None for row in rows)
    ]
    return [
        key
        | {name: statistic([row[name] for row in group]) for name in values}
        | {"repeats": len(group)}
        for key, group in groups(rows, *NAMED)
    ]


TABLES = {"ends": Table(ends, medians)}
