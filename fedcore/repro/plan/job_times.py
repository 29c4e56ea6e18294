"""Times of jobs: of one that has run, and of an experiment in the papers' full runs."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any


def measured(benchmark: str | os.PathLike[str]) -> tuple[float, float] | None:
    """Return seconds and MB of a job from its benchmark file; None where it says no time.

    Memory that was not measured, as of a very short job, is 0.
    """
    try:
        with open(benchmark, encoding="utf-8", newline="") as file:
            row = next(csv.DictReader(file, delimiter="\t"))
        memory = row["max_rss"].replace("-", "0").replace("NA", "0")
        return float(row["s"]), float(memory)
    except (OSError, StopIteration, KeyError, ValueError):
        return None


def read_kept(notes: Path) -> dict[str, tuple[float, float]]:
    """Return seconds of a cell and MB, by ``paper/experiment``, from kept notes of full runs.

    The last run in which a cell of an experiment has a time says it; without the file nothing is
    known.
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
