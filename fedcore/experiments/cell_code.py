"""The code that the history of a cell depends on."""

from __future__ import annotations

from fedcore import algorithms, metrics
from fedcore.experiments.cell import AUDITS, NEWCOMERS, Cell
from fedcore.experiments.fingerprint import fingerprint


def code_of(cell: Cell) -> str:
    """Return the fingerprint of all code that the history of a cell depends on.

    What a history says of its measures counts, too.
    """
    names = [*cell.metrics, *([cell.tune["by"]] if cell.tune else [])]
    measured = {metrics.get(name) for name in names}
    modules = ["fedcore.experiments.repeats", algorithms.REGISTRY.module_name(cell.algorithm)]
    if cell.audit:
        modules.append(AUDITS[cell.audit])
    if cell.newcomers:
        modules.append(NEWCOMERS)
    words = sorted(
        f"{m.name} {m.units} {m.description} {m.code.rpartition('.')[2]} {m.finite}"
        for m in measured
    )
    return fingerprint(*modules, *(m.code for m in measured), words=words)
