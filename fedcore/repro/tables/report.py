"""Tables of a paper: its report declares them, rule ``tables`` writes them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import NamedTuple

from fedcore.errors import ConfigError
from fedcore.recorder import NOT_RELEASED
from fedcore.reports import tables
from fedcore.repro.config import papers as paper_files
from fedcore.repro.tables.results import Results
from fedcore.repro.tables.rows import Rows

# A point below every table of a paper with private runs.
UNRELEASED = f"Measures of private runs are exact functions of their data: {NOT_RELEASED}."


class Table(NamedTuple):
    """A table of a report.

    Attributes
    ----------
    rows : callable
        Takes `Results` and returns the rows.
    shown : callable, optional
        Takes the rows and returns those of the Markdown, such as `summaries.by_group`.
    """

    rows: Callable[[Results], Rows]
    shown: Callable[[Rows], Rows] | None = None


def write_tables(plan: str | os.PathLike[str]) -> None:
    """Write the tables in ``TABLES`` of the module that the plan names, by the plan's captions.

    Parameters
    ----------
    plan : path-like
        File ``<results>/plans/<paper>.json``.

    Raises
    ------
    ConfigError
        When the paper's file names other tables.
    """
    results = Results(plan)
    paper, captions = results.plan["paper"], results.plan["tables"]
    files = paper_files.at(results.plan["entry"])
    files.make_importable()
    report = importlib.import_module(files.tables)
    declared: dict[str, Table] = getattr(report, "TABLES", {})
    differing = sorted(set(captions) ^ set(declared))
    if differing:
        where = files.report if differing[0] in declared else files.paper
        raise ConfigError(
            f"paper {paper}: only {where} has the table '{differing[0]}': add it to the other, or "
            "remove it"
        )
    made = {name: declared[name].rows(results) for name in captions}
    below = [UNRELEASED] if results.private else []  # once all histories have been read
    for name, rows in made.items():
        shown = declared[name].shown
        tables.write(
            rows, results.tables / f"{name}.tsv", caption=captions[name],
            shown=shown(rows) if shown else None, below=below,
        )  # fmt: skip
