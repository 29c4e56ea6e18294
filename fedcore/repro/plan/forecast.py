"""Forecast the hours and the memory of a run on this machine from records of earlier runs."""

from __future__ import annotations

from pathlib import Path

from fedcore.repro.config.papers import CHECKOUT
from fedcore.repro.plan import job_costs, kept_cells
from fedcore.repro.plan.kept_cells import FOLDER
from fedcore.repro.plan.plan import Plan
from fedcore.words import counted


def expected(plan: Plan, checkout: Path = CHECKOUT) -> dict[str, tuple[float, float]]:
    """Return each cell's (planned run's) CPU seconds and MB of memory in the run recorded in kept/.

    If the recorded run lacks a cell, the cell gets the mean wall seconds and the largest memory of
    its experiment. Cells without any record, and all cells of a quick run, are left out. CPU
    seconds were measured on the machine of the recorded run.
    """
    if plan.config["quick"]:
        return {}
    records = kept_cells.read_all(checkout / FOLDER, plan.papers)
    means = job_costs.read_kept(checkout / "kept/run.json")
    found = {}
    for path, cell in plan.cells.items():
        run = records.get(cell.paper)
        experiment = f"{cell.paper}/{cell.experiment}"
        if run is not None and path in run.cells:
            found[path] = run.cells[path].cpu, run.cells[path].mb
        elif experiment in means:
            found[path] = means[experiment]
    return found


def sentence(plan: Plan, cores: int, probe: float, checkout: Path = CHECKOUT) -> str:
    """Return a sentence that forecasts time and memory of all cells (planned runs) not yet run.

    Parameters
    ----------
    plan : Plan
    cores : int
    probe : float
        CPU seconds that `commands.probe.probe_speed` measures on this machine.
    checkout : path
        Checkout whose folder ``kept`` has the records of earlier runs.
    """
    results, clients = (Path(plan.config["paths"][key]) for key in ("results", "clients"))
    todo = [path for path in plan.cells if not (results / f"histories/{path}.h5").is_file()]
    took, records = expected(plan, checkout), kept_cells.read_all(checkout / FOLDER, plan.papers)
    slower = {paper: probe / run.probe for paper, run in records.items()}
    measured = [path for path in todo if path in took]
    jobs = {path: slower.get(plan.cells[path].paper, 1.0) * took[path][0] for path in measured}
    longest = max(jobs.values(), default=0.0)
    for cell in (plan.cells[path] for path in todo if plan.cells[path].paper in records):
        for problem in cell.problems:
            if not (clients / cell.paper / f"{problem}.h5").is_file():
                made = records[cell.paper].problems.get(problem, 1.0)
                jobs[f"{cell.paper}/{problem}"] = slower[cell.paper] * made
    work = sum(jobs.values()) + job_costs.OUTSIDE * len(jobs)
    hours = max(work / cores, longest) / 3600
    memory = sorted((took[path][1] for path in measured), reverse=True)
    unknown = len(todo) - len(measured)
    rest = f"; {counted(unknown, 'cell')} of them never measured" if unknown else ""
    return (
        f"{counted(len(todo), 'cell')} to make: about {hours:.1f} hours on "
        f"{counted(cores, 'core')}, and up to {sum(memory[:cores]) / 1000:.1f} GB of memory{rest}."
    )
