"""What a run will take on this machine: hours and memory, from what earlier runs took."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from fedcore.repro.config.papers import CHECKOUT
from fedcore.repro.plan import job_costs, kept_cells
from fedcore.repro.plan.plan import Plan
from fedcore.words import counted


def expected(
    plan: Plan, checkout: Path = CHECKOUT, probe: float | None = None
) -> dict[str, job_costs.Took]:
    """Return what each cell took in the last kept run, or its experiment's cells on average.

    Cells without a record are left out, and all cells of a quick run. For papers with a record, CPU
    seconds belong to its machine. With `probe` they are scaled to the machine on which
    `commands.probe.probe_speed` took so long.
    """
    if plan.config["quick"]:
        return {}
    records = kept_cells.read_all(checkout / kept_cells.FOLDER, plan.papers)
    means = job_costs.read_kept(checkout / "kept/run.json")
    found = {}
    for path, cell in plan.cells.items():
        run = records.get(cell.paper)
        slower = probe / run.probe if run is not None and probe is not None else 1.0
        experiment = f"{cell.paper}/{cell.experiment}"
        if run is not None and path in run.cells:
            seconds, memory = run.cells[path].cpu, run.cells[path].mb
        elif experiment in means:
            seconds, memory = means[experiment]
        else:
            continue
        found[path] = job_costs.Took(slower * seconds, slower * seconds, memory)
    return found


def sentence(plan: Plan, cores: int, probe: float, checkout: Path = CHECKOUT) -> str:
    """Return in a sentence how long the cells take that have no history, and how much memory.

    Parameters
    ----------
    plan : Plan
    cores : int
    probe : float
        CPU seconds of `commands.probe.probe_speed` on this machine.
    checkout : path
        Its folder ``kept`` says what earlier runs took.
    """
    histories = Path(plan.config["paths"]["results"], "histories")
    todo = [path for path in plan.cells if not (histories / f"{path}.h5").is_file()]
    took = expected(plan, checkout, probe)
    measured = [took[path] for path in todo if path in took]
    seconds = [one.cpu for one in measured]
    jobs = seconds + _data(plan, todo, probe, checkout)
    work = sum(jobs) + job_costs.OUTSIDE * len(jobs)
    hours = max(work / cores, max(seconds, default=0.0)) / 3600
    memory = sorted((one.memory for one in measured), reverse=True)
    unknown = len(todo) - len(seconds)
    rest = f"; {counted(unknown, 'cell')} of them never measured" if unknown else ""
    return (
        f"{counted(len(todo), 'cell')} to make: about {hours:.1f} hours on "
        f"{counted(cores, 'core')}, and up to {sum(memory[:cores]) / 1000:.1f} GB of memory{rest}."
    )


def _data(plan: Plan, cells: Iterable[str], probe: float, checkout: Path) -> list[float]:
    """Return the CPU seconds of making each problem that cells read and that is not there yet."""
    records = kept_cells.read_all(checkout / kept_cells.FOLDER, plan.papers)
    found = []
    for paper, problem in sorted(
        {(plan.cells[path].paper, name) for path in cells for name in plan.cells[path].problems}
    ):
        file = Path(plan.config["paths"]["clients"], paper, f"{problem}.h5")
        if paper in records and not file.is_file():
            run = records[paper]
            found.append(probe / run.probe * run.problems.get(problem, 1.0))
    return found
