"""Read the time and the memory that jobs took, from benchmark files and from kept/run.json."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

# CPU seconds of a job that its benchmark does not see: Python's start, and Snakemake's share. In
# three runs of 78 to 212 jobs they were 1.4 to 1.9, with tables and notebooks.
OUTSIDE = 1.5


class Took(NamedTuple):
    """Time and memory of a job; CPU time and memory are 0 if the job was very short."""

    cpu: float  # seconds
    wall: float  # seconds
    memory: float  # MB


def measured(benchmark: str | os.PathLike[str]) -> Took | None:
    """Return time and memory from Snakemake's benchmark file; None if file or time is missing."""
    try:
        with open(benchmark, encoding="utf-8", newline="") as file:
            row = next(csv.DictReader(file, delimiter="\t"))
        cpu, memory = (
            float((row.get(name) or "0").replace("-", "0").replace("NA", "0"))
            for name in ("cpu_time", "max_rss")
        )
        return Took(cpu, float(row["s"]), memory)
    except (OSError, StopIteration, KeyError, ValueError):
        return None


def seconds(benchmark: str | os.PathLike[str]) -> float:
    """Return the CPU seconds of a job, or its wall seconds if the CPU time is 0.

    The result is 1 if the benchmark file contains no time.
    """
    took = measured(benchmark) or Took(0.0, 1.0, 0.0)
    return took.cpu or took.wall


def read_kept(notes: Path) -> dict[str, tuple[float, float]]:
    """Return mean wall seconds and largest memory (MB) of each experiment's cells (planned runs).

    The keys of the result are ``<paper>/<experiment>``. The values come from the last full run that
    timed a cell of the experiment. If the file `notes` (kept/run.json) cannot be read, the result
    is empty.
    """
    try:
        runs: dict[str, Any] = json.loads(notes.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    found: dict[str, tuple[float, float]] = {}
    for paper, last in runs.items():
        for run in reversed([last, *last.get("earlier", [])]):
            for experiment, time in run["times"].items():
                if timed := time["cells"] - time.get("untimed", 0):
                    each = time["seconds"] / timed
                    found[f"{paper}/{experiment}"] = (each, float(time["MB"]))
    return found
