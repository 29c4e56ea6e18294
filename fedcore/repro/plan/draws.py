"""Choose at random the cells (planned runs) that `fedcore certify` reruns within a given time."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from fedcore.repro.plan.job_costs import OUTSIDE
from fedcore.repro.plan.kept_cells import KeptRun, settings_of
from fedcore.repro.plan.plan import Plan

# CPU seconds of a cell's own job, and of the jobs that make its data, by the names of the jobs.
Jobs = Mapping[str, float]


def costs(plan: Plan, runs: Mapping[str, KeptRun], probe: float) -> dict[str, Jobs]:
    """Return each comparable cell's jobs, with their estimated CPU seconds on this machine.

    A cell (planned run) is comparable if its settings are the same in the plan and in the kept run,
    an earlier run whose records are in the repository.

    Parameters
    ----------
    plan : Plan
    runs : mapping of str to KeptRun
        Record of the kept run of each paper.
    probe : float
        CPU seconds that `commands.probe.probe_speed` measures on this machine.
    """
    found: dict[str, Jobs] = {}
    for paper, run in runs.items():
        for path, kept in run.cells.items():
            cell = plan.cells.get(path)
            if cell is not None and settings_of(cell) == kept.settings:
                jobs = {f"{paper}/{name}": run.problems.get(name, 1.0) for name in cell.problems}
                jobs[path] = kept.cpu
                found[path] = {n: s * probe / run.probe + OUTSIDE for n, s in jobs.items()}
    return found


def together(pool: Mapping[str, Jobs], cells: Collection[str]) -> float:
    """Return the total CPU seconds of several cells; a job that cells share counts once."""
    return sum({name: s for cell in cells for name, s in pool[cell].items()}.values())


def draw(pool: Mapping[str, Jobs], seconds: float, seed: int) -> list[str]:
    """Draw cells (planned runs) that together take at most `seconds` of CPU time.

    For each method of a paper, the cheapest cell comes first. All other cells follow in random
    order; a cell's probability to come next is inversely proportional to its CPU seconds.
    """
    cheapest: dict[tuple[str, str], str] = {}
    for cell in sorted(pool, key=lambda cell: (pool[cell][cell], cell)):
        paper, _, algorithm, _ = cell.split("/")
        cheapest.setdefault((paper, algorithm), cell)
    others = sorted(pool.keys() - set(cheapest.values()))
    waits = np.random.default_rng(seed).exponential([pool[cell][cell] for cell in others])
    found: list[str] = []
    for cell in (*cheapest.values(), *(others[i] for i in np.argsort(waits))):
        if together(pool, [*found, cell]) <= seconds:
            found.append(cell)
    return found
