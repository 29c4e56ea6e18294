"""Time of the workflow beside that of its cells, and what that means at the papers' size.

The quick run of some papers goes to a temporary folder, on one core. Beside its time stands that of
the same cells, one after the other in one process that has imported everything. The difference per
job, times the cells of the last full runs, is the overhead at the papers' size, as a share of what
these cells took. Seconds are those of the wall, as a job's process is not a child of Snakemake's,
so that its CPU time cannot be added up: leave the machine alone meanwhile. See README.md.
"""

# ruff: noqa: E402  (BLAS reads its number of threads when numpy is first imported)

from __future__ import annotations

import os

for _library in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM"):
    os.environ[f"{_library}_THREADS"] = "1"

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click

from fedcore.config.strict_yaml import read_yaml
from fedcore.experiments.cell import run_cell
from fedcore.experiments.plan import Plan, load_plan

ROOT = Path(__file__).parents[1]
KEPT = ROOT / "docs" / "verdicts" / "run.json"


def workflow(folder: Path, papers: list[str]) -> tuple[float, int]:
    """Run the histories of papers on one core; return seconds and the number of jobs."""
    plan = planned(folder, papers)
    targets = [f"{folder}/results/histories/{path}.h5" for path in plan.cells]
    settings = folder / "bench.yaml"
    settings.write_text(json.dumps(configured(folder, papers)), encoding="utf-8")
    start = time.perf_counter()
    subprocess.run(
        [sys.executable, "-m", "snakemake", "--nolock", "--quiet", "all", "--cores", "1",
         "--configfile", str(settings), "--", *targets],
        cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    jobs = len(targets) + len({cell.problem for cell in plan.cells.values()})
    return time.perf_counter() - start, jobs


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
    """Return seconds of the cells in this process, on the problems that a run has made."""
    start = time.perf_counter()
    for path, cell in planned(folder, papers).cells.items():
        problem = folder / "clients" / cell.paper / f"{cell.problem}.h5"
        outputs = (folder / "alone" / f"{path}{end}" for end in (".h5", ".tsv"))
        run_cell(cell.spec(), problem, *map(str, outputs), code=cell.code)
    return time.perf_counter() - start


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
        whole, jobs = workflow(folder, names)
        own = alone(folder, names)
    each = (whole - own) / jobs
    cells, seconds = at_full_size()
    share = each * cells / (seconds + each * cells)
    print(f"quick histories of {papers}, one core, {jobs} jobs")
    print(f"seconds of the workflow     {whole:8.1f}")
    print(f"seconds of its cells alone  {own:8.1f}")
    print(f"overhead of a job           {each:8.3f}  (start, and problems that are made, included)")
    print(f"at the papers' size, {cells} cells of {seconds:.0f} s: {share:.2%} of the time")


if __name__ == "__main__":
    main()
