"""What the whole run has cost, from its records, and what a quick run costs, made anew.

kept       `make reproduce` without networks: CPU seconds of the cells and of their data, and the
           largest memory of a job, from kept/records. Beside them an estimate of the same cells
           with five and ten starts: a cell's seconds are shared out to its starts, which is too
           little for fewer starts that share products. Cells with one start stay.
quick      `make quickstart` in a fresh clone of this commit, with the environment of this process:
           CPU seconds of all its processes.
rehearsal  `make reproduce` in this checkout, as far as it has come: what its cells took beside the
           same cells of the kept run. Machines differ, and *slower* is the ratio of the seconds
           that a fixed product takes on this machine and took on the other.

Goals are those of the run that this project set itself. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from fedcore.reports import tables
from fedcore.repro.commands.jobs import planned
from fedcore.repro.commands.probe import probe_speed
from fedcore.repro.plan import job_costs, kept_cells

CHECKOUT = Path(__file__).parents[1]
GOAL = 14_000  # CPU seconds of the whole run, five starts a cell
GOAL_QUICK = 200  # without joined cells
GOAL_MEMORY, GOAL_WIDE = 4, 8  # GiB of a job, and of one with 5000 features
DEAREST = 25  # cells with rows of their own
MIB = 1024  # of `max_rss` in a GiB


def kept() -> list[dict[str, Any]]:
    """Return a row for each paper that has records, and their sum."""
    plan = planned(None)
    rows = []
    for paper, run in kept_cells.read_all(CHECKOUT / kept_cells.FOLDER, plan.papers).items():
        cells = [(run.cells[p], c.repeats) for p, c in plan.cells.items() if p in run.cells]
        starts = {
            most: sum(cell.cpu * (1 if n == 1 else most / n) for cell, n in cells)
            for most in (5, 10)
        }
        rows.append({
            "paper": paper, "commit": run.commit, "cells": len(cells),
            "cells, CPU s": sum(cell.cpu for cell, _ in cells),
            "data, CPU s": sum(run.problems.values()),
            "five starts": starts[5], "ten starts": starts[10],
            "largest, GiB": max(cell.mb for cell, _ in cells) / MIB,
        })  # fmt: skip
    sums = {key: sum(row[key] for row in rows) for key in ("cells", *list(rows[0])[3:7])}
    return [
        *rows,
        {
            "paper": "all",
            "commit": "",
            **sums,
            "largest, GiB": max(r["largest, GiB"] for r in rows),
        },
    ]


def large() -> list[dict[str, Any]]:
    """Return a row for each experiment and method that has a job above the goal of memory."""
    plan = planned(None)
    found: dict[tuple[str, int], list[float]] = {}
    for run in kept_cells.read_all(CHECKOUT / kept_cells.FOLDER, plan.papers).values():
        for path, cell in run.cells.items():
            goal = GOAL_WIDE if "/n5000-" in path else GOAL_MEMORY
            if cell.mb > goal * MIB:
                found.setdefault((path.rpartition("/")[0], goal), []).append(cell.mb / MIB)
    return [
        {"jobs": jobs, "above the goal": len(sizes), "largest, GiB": max(sizes), "goal": goal}
        for (jobs, goal), sizes in found.items()
    ]


def quick(cores: int) -> dict[str, Any]:
    """Make a quick run in a clone and return its row."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "clone", "--quiet", CHECKOUT, folder], check=True)
        before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        programs = Path(sys.executable).parent
        path = f"{programs}:{os.environ['PATH']}"
        options = ["--configfile", "config/quick.yaml", "--cores", str(cores), "--quiet", "all"]
        done = subprocess.run(
            [programs / "snakemake", *options], cwd=folder, capture_output=True, text=True,
            env={**os.environ, "PYTHONPATH": folder, "PATH": path},
        )  # fmt: skip
        wall = time.perf_counter() - begun
        if done.returncode:
            sys.exit(f"Error: the quick run ends with {done.returncode}: {done.stderr[-4000:]}")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        histories = len([*Path(folder, "results/quick/histories").rglob("*.h5")])
    user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
    cpu = user + system
    return {
        "cells": histories, "user s": user, "system s": system, "CPU s": cpu, "goal": GOAL_QUICK,
        "met": cpu <= GOAL_QUICK, "wall s": wall, "cores": cores,
    }  # fmt: skip


def rehearsal() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return a row for each paper with finished cells, and one for each of the dearest cells."""
    plan, probe = planned(None), probe_speed()
    papers, cells = [], []
    for paper, run in kept_cells.read_all(CHECKOUT / kept_cells.FOLDER, plan.papers).items():
        found = []
        for path, was in run.cells.items():
            took = job_costs.measured(CHECKOUT / f"results/benchmarks/{path}.tsv")
            if took and (CHECKOUT / f"results/histories/{path}.h5").is_file():
                found.append((path, was, took))
        if not found:
            continue
        slower = probe / run.probe
        before, after = sum(was.cpu for _, was, _ in found), sum(took.cpu for *_, took in found)
        faster = before * slower / after
        papers.append({
            "paper": paper, "cells": f"{len(found)} of {len(run.cells)}", "kept, CPU s": before,
            "now, CPU s": after, "slower": slower, "kept / now, same speed": faster,
            "wall s": sum(took.wall for *_, took in found),
            "kept, largest GiB": max(was.mb for _, was, _ in found) / MIB,
            "now, largest GiB": max(took.memory for *_, took in found) / MIB,
        })  # fmt: skip
        cells += [{
            "cell": path, "kept, CPU s": was.cpu, "now, CPU s": took.cpu,
            "kept / now, same speed": was.cpu * slower / took.cpu,
            "kept, GiB": was.mb / MIB, "now, GiB": took.memory / MIB,
        } for path, was, took in found]  # fmt: skip
    return papers, sorted(cells, key=lambda row: -row["kept, CPU s"])[:DEAREST]


@click.command(help=__doc__.split("\n")[0])
@click.option("--cores", default=2, show_default=True)
@click.option("--kept", "only", is_flag=True, help="No quick run.")
@click.option("--rehearsal", "present", is_flag=True, help="The rehearsal alone.")
def main(cores: int, only: bool, present: bool) -> None:
    """Print the tables."""
    if present:
        for rows, caption in zip(rehearsal(), ("papers", "dearest cells"), strict=True):
            click.echo(tables.markdown(rows, caption=caption))
        return
    rows = kept()
    click.echo(tables.markdown(rows, caption="kept"))
    cost = rows[-1]["five starts"] + rows[-1]["data, CPU s"]
    word = "met" if cost <= GOAL else "missed"
    click.echo(f"five starts and data: {cost:,.0f} CPU s, goal {GOAL:,}: {word}\n")
    click.echo(tables.markdown(large(), caption="memory above its goal, resident"))
    if not only:
        click.echo(tables.markdown([quick(cores)], caption="quick"))


if __name__ == "__main__":
    main()
