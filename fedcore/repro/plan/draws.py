"""Which cells of a kept run are made again, within a time: by chance, cheap ones more often."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np

from fedcore.repro.plan.job_costs import OUTSIDE
from fedcore.repro.plan.kept_cells import KeptRun, settings_of
from fedcore.repro.plan.plan import Plan


class Cost(NamedTuple):
    """What a cell costs on this machine.

    Attributes
    ----------
    kind : (str, str)
        Paper and algorithm of the cell.
    seconds : float
        CPU seconds of its job.
    problems : mapping of str to float
        CPU seconds of making the data that it reads, by their names.
    """

    kind: tuple[str, str]
    seconds: float
    problems: Mapping[str, float]


def costs(plan: Plan, runs: Mapping[str, KeptRun], probe: float) -> dict[str, Cost]:
    """Return the cells that can be compared: planned, recorded, and with the same settings.

    Parameters
    ----------
    plan : Plan
    runs : mapping of str to KeptRun
        By paper.
    probe : float
        CPU seconds of `commands.probe.probe_speed` on this machine.
    """
    found = {}
    for paper, run in runs.items():
        slower = probe / run.probe
        for path, kept in run.cells.items():
            cell = plan.cells.get(path)
            if cell is not None and settings_of(cell) == kept.settings:
                made = {
                    f"{paper}/{p}": slower * run.problems.get(p, 1.0) + OUTSIDE
                    for p in cell.problems
                }
                found[path] = Cost((paper, cell.algorithm), slower * kept.cpu + OUTSIDE, made)
    return found


def together(pool: Mapping[str, Cost], cells: Collection[str]) -> tuple[float, float]:
    """Return the CPU seconds of cells, and of making their data, each once."""
    made = {name: cost for cell in cells for name, cost in pool[cell].problems.items()}
    return sum(pool[cell].seconds for cell in cells), sum(made.values())


def draw(pool: Mapping[str, Cost], seconds: float, seed: int) -> list[str]:
    """Return cells of at most so many CPU seconds in all.

    The cheapest of each kind comes first, then others by chance. A cell that costs half as much is
    twice as likely to come next. What no longer fits is left out.
    """
    cheapest: dict[tuple[str, str], str] = {}
    for cell in sorted(pool, key=lambda cell: (pool[cell].seconds, cell)):
        cheapest.setdefault(pool[cell].kind, cell)
    others = sorted(pool.keys() - set(cheapest.values()))
    waits = np.random.default_rng(seed).exponential([pool[cell].seconds for cell in others])
    found: list[str] = []
    made: set[str] = set()
    for cell in (*cheapest.values(), *(others[i] for i in np.argsort(waits))):
        new = {name: cost for name, cost in pool[cell].problems.items() if name not in made}
        cost = pool[cell].seconds + sum(new.values())
        if cost <= seconds:
            found.append(cell)
            made |= new.keys()
            seconds -= cost
    return found
