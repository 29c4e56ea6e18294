"""What a run will take, from the times of earlier ones."""

from __future__ import annotations

import csv
import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fedcore.words import counted

Times = Mapping[str, tuple[float, float]]


class Expected(NamedTuple):
    """Cells, their seconds together, the largest memory of one in MB, and how many are unknown."""

    cells: int
    seconds: float
    memory: float
    unknown: int


def measured(path: Path) -> tuple[float, float] | None:
    """Return seconds and MB of a job from its benchmark file; None where it says no time.

    Memory that was not measured is 0.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            row = next(csv.DictReader(file, delimiter="\t"))
        memory = row["max_rss"].replace("-", "0")
        return float(row["s"]), float(memory)
    except (OSError, StopIteration, KeyError, ValueError):
        return None


def kept(notes: Path) -> dict[str, tuple[float, float]]:
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


def expected(cells: Iterable[str], benchmarks: Path, usual: Times) -> Expected:
    """Return what cells take, by their own last time, or else by their experiment's.

    Parameters
    ----------
    cells : iterable of str
        Paths of cells, ``paper/experiment/algorithm/name``.
    benchmarks : path
        Folder of the jobs' benchmark files.
    usual : mapping
        Of `kept`.
    """
    names = list(cells)
    own = {name: measured(benchmarks / f"{name}.tsv") for name in names}
    times = {name: own[name] or usual.get("/".join(name.split("/")[:2])) for name in names}
    known = [time for time in times.values() if time]
    memory = max((mb for _, mb in known), default=0.0)
    return Expected(len(names), sum(s for s, _ in known), memory, len(names) - len(known))


def sentence(found: Expected, cores: int) -> str:
    """Return what a person reads before a run; empty when no cell runs."""
    if not found.cells:
        return ""
    said = f"To run: {counted(found.cells, 'cell')}"
    if found.unknown == found.cells:
        return f"{said}; of none is the time known."
    said += f", about {_duration(found.seconds)} of computing"
    if cores > 1:
        said += f" ({_duration(found.seconds / cores)} on {cores} cores)"
    said += f", up to {found.memory / 1000:.1f} GB a job"
    of = f"; of {counted(found.unknown, 'cell')} no time is known" if found.unknown else ""
    return f"{said}{of}. Times are of earlier runs, other machines' included."


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def cells_of(outputs: Collection[str], histories: Path) -> list[str]:
    """Return the cells whose histories are among the outputs of jobs."""
    paths = [Path(output) for output in outputs]
    return [
        path.relative_to(histories).with_suffix("").as_posix()
        for path in paths
        if path.is_relative_to(histories)
    ]
