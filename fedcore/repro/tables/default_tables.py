"""Tables of a paper that has no module for them: what every run ended with."""

from __future__ import annotations

from fedcore.repro.tables.report import Table
from fedcore.repro.tables.results import Results, Run, last
from fedcore.repro.tables.rows import Rows, groups
from fedcore.repro.tables.summaries import statistic

SPENT = {"rounds": "round", "bytes_up": "bytes_up", "bytes_down": "bytes_down"}
NAMED = ("experiment", "problem", "algorithm", "variant")


def ends(results: Results) -> Rows:
    """Return the last value of every measure and what was spent for it, a row per repeat.

    Measures that an experiment does not record are None there.
    """
    experiments = results.plan["experiments"].values()
    measures = list(dict.fromkeys(name for spec in experiments for name in spec["metrics"]))
    return [row for run in results.runs() for row in _rows(run, measures)]


def _rows(run: Run, measures: list[str]) -> Rows:
    there = run.history.columns
    columns = dict.fromkeys(measures) | {"epsilon": None}
    columns |= {name: last(name) for name in columns if name in there}
    return run.rows(**columns, **{name: last(column) for name, column in SPENT.items()})


def medians(rows: Rows) -> Rows:
    """Return the medians over the repeats of a cell, without columns that have no value."""
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
