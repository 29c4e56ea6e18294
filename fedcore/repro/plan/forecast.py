"""What a run will take on this machine: hours and memory, from what earlier runs took."""

from __future__ import annotations

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
    results, clients = (Path(plan.config["paths"][key]) for key in ("results", "clients"))
    todo = [path for path in plan.cells if not (results / f"histories/{path}.h5").is_file()]
    took = expected(plan, checkout, probe)
    measured = [took[path] for path in todo if path in took]
    jobs = {path: took[path].cpu for path in todo if path in took}
    longest = max(jobs.values(), default=0.0)
    records = kept_cells.read_all(checkout / kept_cells.FOLDER, plan.papers)
    for cell in (plan.cells[path] for path in todo if plan.cells[path].paper in records):
        run = records[cell.paper]
        for name in (f"{cell.paper}/{problem}" for problem in cell.problems):
            if not (clients / f"{name}.h5").is_file():
                made = run.problems.get(name.partition("/")[2], 1.0)
                jobs[name] = probe / run.probe * made
    work = sum(jobs.values()) + job_costs.OUTSIDE * len(jobs)
    hours = max(work / cores, longest) / 3600
    memory = sorted((one.memory for one in measured), reverse=True)
    unknown = len(todo) - len(measured)
    rest = f"; {counted(unknown, 'cell')} of them never measured" if unknown else ""
    return (
        f"{counted(len(todo), 'cell')} to make: about {hours:.1f} hours on "
        f"{counted(cores, 'core')}, and up to {sum(memory[:cores]) / 1000:.1f} GB of memory{rest}."
    )
