"""Table of the small paper; becomes papers/tiny/tables.py of the copy."""

from __future__ import annotations

from fedcore.repro.tables.report import Table
from fedcore.repro.tables.results import last


def ends(results):
    """Return the last loss of every repeat of the first experiment."""
    return results.table("first", objective=last("objective"))


TABLES = {"ends": Table(ends)}
