"""Memory of a job of the whole run: what is its own, and what the system keeps of its data.

A cell reads its clients through a memory map. The pages that it has read count as resident memory
(`max_rss` in the run's records), and the system takes them back when it needs room. This program
runs the cell of a large job, with a share of its clients and with few rounds, and reads both parts
every hundredth of a second: anonymous memory, which is the job's own, and pages of files.
It prints their peaks for two numbers of clients, and by the line through both what the job has with
all of its clients. See README.md.
"""

from __future__ import annotations

import one_thread  # noqa: F401  # isort: skip
import copy
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from fedcore.experiments import build
from fedcore.reports import tables
from fedcore.repro.commands.jobs import planned
from fedcore.repro.plan import kept_cells

CELLS = ["faps/fig2m/faps/m256-default", "faps/table1/faps/n5000-default"]
MIB = 1024
GOAL, GOAL_WIDE = 4, 8  # GiB of a job, and of one with 5000 features


def peaks(command: list[str]) -> dict[str, float]:
    """Run a command and return its largest anonymous, mapped and resident memory in GiB."""
    found = {"RssAnon": 0, "RssFile": 0, "VmRSS": 0}
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while process.poll() is None:
        try:
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
        except OSError:  # it has ended
            break
        for name in found:
            if said := re.search(rf"{name}:\s+(\d+) kB", status):
                found[name] = max(found[name], int(said[1]))
        time.sleep(0.01)
    if process.wait():
        sys.exit(f"Error: a job ends with status {process.returncode}")
    return {name: kilobytes / MIB**2 for name, kilobytes in found.items()}


def measured(path: str, clients: int, rounds: int) -> dict[str, Any]:
    """Return the row of a cell with fewer clients, each as large as in the whole run."""
    plan = planned(None)
    cell = plan.cell(path)
    spec = copy.deepcopy(plan.problems[f"{cell.paper}/{cell.problem}"])
    params = spec["params"]
    params["n_samples"] = params["n_samples"] * clients // params["n_clients"]
    params["n_clients"] = clients
    fewer = replace(cell, params={**cell.params, "rounds": rounds}, repeats=5, recipes=[], code="")
    with tempfile.TemporaryDirectory() as folder:
        file = str(Path(folder, "problem.h5"))
        build.make(file, cell.problem, spec, raw="data/raw", seed=cell.seed, surrogate=False)
        size = Path(file).stat().st_size
        job = [sys.executable, "-m", "fedcore", "job", "cell", json.dumps(fewer.spec())]
        found = peaks([*job, file, str(Path(folder, "history.h5"))])
    return {
        "cell": path, "clients": clients, "file, GiB": size / MIB**3,
        "own, GiB": found["RssAnon"], "mapped": found["RssFile"], "resident": found["VmRSS"],
    }  # fmt: skip


@click.command(help=__doc__.split("\n")[0])
@click.option("--cell", "cells", multiple=True, default=CELLS, show_default=True)
@click.option("--clients", type=int, nargs=2, default=(6, 8), show_default=True)
@click.option("--rounds", default=2, show_default=True)
def main(cells: tuple[str, ...], clients: tuple[int, int], rounds: int) -> None:
    """Print a row for each cell and number of clients, and one for all clients."""
    plan = planned(None)
    records = kept_cells.read_all(Path(__file__).parents[1] / kept_cells.FOLDER, plan.papers)
    rows = []
    for path in cells:
        few, many = (measured(path, count, rounds) for count in clients)
        cell = plan.cell(path)
        every = plan.problems[f"{cell.paper}/{cell.problem}"]["params"]["n_clients"]
        by_line = {
            key: many[key]
            + (every - clients[1]) * (many[key] - few[key]) / (clients[1] - clients[0])
            for key in list(few)[2:]
        }
        goal = GOAL_WIDE if cell.problem == "n5000" else GOAL
        by_line |= {"goal of its own": goal, "met": by_line["own, GiB"] <= goal}
        rows += [few, many, {"cell": f"{path}, by the line", "clients": every, **by_line}]
        run = records[cell.paper].cells
        if path in run:
            rows[-1]["recorded"] = run[path].mb / MIB
    keys = {key: "" for row in rows for key in row}
    click.echo(tables.markdown([{**keys, **row} for row in rows]))


if __name__ == "__main__":
    main()
