"""Draw cells of a kept run to make again within a given time; cheap cells are drawn more often."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from fedcore.repro.plan.job_costs import OUTSIDE
from fedcore.repro.plan.kept_cells import KeptRun, settings_of
from fedcore.repro.plan.plan import Plan

# CPU seconds of a cell's own job, and of the jobs that make its data, by the names of the jobs.
Jobs = Mapping[str, float]


def costs(plan: Plan, runs: Mapping[str, KeptRun], probe: float) -> dict[str, Jobs]:
    """Return each cell that can be compared, with its jobs and their CPU seconds on this machine.

    Such a cell is in the plan and in the record, with the same settings in both.

    Parameters
    ----------
    plan : Plan
    runs : mapping of str to KeptRun
        By paper.
    probe : float
        CPU seconds of `commands.probe.probe_speed` on this machine.
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
    """Return the CPU seconds of cells and of making their data, each shared job counted once."""
    return sum({name: s for cell in cells for name, s in pool[cell].items()}.values())


def draw(pool: Mapping[str, Jobs], seconds: float, seed: int) -> list[str]:
    """Return cells of at most so many CPU seconds in all.

    The cheapest cell of each method of a paper comes first; the others follow by chance. A cell
    that costs half as much as another is twice as likely to come next. A cell that no longer fits
    is left out.
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
