"""CPU time of the workflow beside that of its cells, and what that means at the papers' size.

The quick run of some papers goes to a temporary folder, on one core. From the CPU seconds of all
its processes, those of its start (a dry run) and those of the same cells in one process that has
imported everything are taken off; what is left, over the number of jobs, is the overhead of a job.
Times the cells of the last full runs it is a share of what these took. CPU seconds do not ask for
an idle machine, though two processes on one core slow each other down. Linux only. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import click
from all_processes import Cost, cost

from fedcore.config.strict_yaml import read_yaml
from fedcore.experiments.cell import run_cell
from fedcore.experiments.plan import Plan, load_plan

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "verdicts" / "run.json"


def workflow(folder: Path, papers: list[str]) -> tuple[Cost, Cost, int]:
    """Run the histories of papers on one core; return cost, that of a dry run, number of jobs."""
    plan = planned(folder, papers)
    targets = [f"{folder}/results/histories/{path}.h5" for path in plan.cells]
    settings = folder / "bench.yaml"
    settings.write_text(json.dumps(configured(folder, papers)), encoding="utf-8")
    command = [
        sys.executable, "-m", "snakemake", "--nolock", "--quiet", "all", "--cores", "1",
        "--configfile", str(settings),
    ]  # fmt: skip
    start = cost([*command, "--dry-run", "--", *targets], ROOT)
    jobs = len(targets) + len({cell.problem for cell in plan.cells.values()})
    return cost([*command, "--", *targets], ROOT), start, jobs


def configured(folder: Path, papers: list[str]) -> dict[str, object]:
    """Return the configuration of a quick run into a folder."""
    quick = read_yaml(ROOT / "config" / "quick.yaml")
    paths = {name: str(folder / name) for name in ("clients", "results")}
    return {**quick, "papers": papers, "paths": paths}


def planned(folder: Path, papers: list[str]) -> Plan:
    """Return the plan of a quick run into a folder."""
    os.chdir(ROOT)
    return load_plan(configured(folder, papers), check_claims=False)


def alone(folder: Path, papers: list[str]) -> float:
    """Return CPU seconds of the cells in this process, on the problems that a run has made."""
    cells = {path: (cell, cell.code) for path, cell in planned(folder, papers).cells.items()}
    start = time.process_time()
    for path, (cell, code) in cells.items():
        problem = folder / "clients" / cell.paper / f"{cell.problem}.h5"
        outputs = (folder / "alone" / f"{path}{end}" for end in (".h5", ".tsv"))
        run_cell(cell.spec(), problem, *map(str, outputs), code=code)
    return time.process_time() - start


def at_full_size() -> tuple[int, float]:
    """Return the number of cells of the last full runs, and their seconds together."""
    runs = json.loads(KEPT.read_text(encoding="utf-8")).values()
    times = [time for run in runs for time in run["times"].values()]
    return sum(time["cells"] for time in times), sum(time["seconds"] for time in times)


@click.command()
@click.option("--papers", default="factorization,fedpower", show_default=True)
def main(papers: str) -> None:
    """Print seconds, and the overhead of a job."""
    names = papers.split(",")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        whole, start, jobs = workflow(folder, names)
        own = alone(folder, names)
    each = (whole.cpu - start.cpu - own) / jobs
    cells, seconds = at_full_size()
    share = each * cells / (seconds + each * cells)
    print(f"quick histories of {papers}, one core, {jobs} jobs, load {whole.load:.1f} before")
    print(f"CPU seconds of the workflow  {whole.cpu:7.1f}  ({whole.wall:.1f} s of the wall)")
    print(f"of its start, a dry run      {start.cpu:7.1f}")
    print(f"of its cells alone           {own:7.1f}")
    print(f"overhead of a job            {each:7.3f}  (its process, files, scheduling; problems)")
    print(f"at quick size: {1 - own / whole.cpu:.0%} of the time, the start included")
    print(f"at the papers' size, {cells} cells of {seconds:.0f} s: {share:.2%} of the time")


if __name__ == "__main__":
    main()
