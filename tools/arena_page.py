"""Keeps the tables of the arena's last full run, and writes papers/arena/README.md from them.

The arena is a set of experiments that run every method on the same data. `make arena` runs them and
then this program, which keeps the tables in papers/arena/kept/. The page follows from these tables,
and a test fails if the page is stale.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import sys
import textwrap
from pathlib import Path

from fedcore.errors import DataError
from fedcore.experiments.provenance import commit
from fedcore.files.strict_yaml import read_yaml
from fedcore.reports import tables
from fedcore.repro.plan.machine import describe_machine
from fedcore.repro.site import curves

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "papers"))
from arena import tables as arena  # noqa: E402

PAGE = ROOT / "papers" / "arena" / "README.md"
KEPT = PAGE.parent / "kept"
NAMES = ("results", "ranks", "leaks")
WRITTEN = (
    "`make arena` runs [the arena's experiments](../arena/experiments.yaml) and writes this "
    "page; a test fails if it is stale."
)
ABOUT = (
    "An error is the sine of the largest angle to the exact subspace of all clients together. "
    "Methods are compared only with those that give the same privacy guarantee; of a private run, "
    "only the last error counts. Errors are compared to three digits, and those below 1e-10 are "
    "equal. For methods that need only sums over the clients, the four partitions of a data set "
    "are the same problem with other starts. The histories are in `results/histories/arena/`."
)
RANKS = (
    "The method with the least error within `budget` rounds has rank 1; equal errors share a rank. "
    "`deviation` is the standard deviation of the rank over the problems and repeats with a "
    "result; `of` is their number."
)
COMMANDS = (
    "Each name stands for an algorithm with settings. Replace `DATA` by a data set or your own "
    "files, and 5 by the number of components that you want."
)
LEAKS = (
    "The server rebuilds a client's Gram matrix from the client's messages. The table gives the "
    "relative error of the better of two attacks: 0 means that the server knows the matrix. 1 is "
    "the error of guessing zero: both attacks fail, but this does not mean that nothing leaks. "
    "Other attacks may learn more, for example from the second message of aligned methods."
)


def keep(results: Path, kept: Path) -> None:
    """Copy the tables of a full run to `kept`, and write the run's date, machine and time there.

    Raises
    ------
    DataError
        If a table is missing or damaged, or was made with stand-ins for data.
    """
    folder, at = results / "tables" / "arena", commit(ROOT)  # before files of the checkout change
    for name in NAMES:
        if any(row["status"] == "surrogate" for row in tables.read(folder / f"{name}.tsv")):
            raise DataError(f"{folder / name}.tsv was made on stand-ins for data")
    kept.mkdir(exist_ok=True)
    for name in NAMES:
        shutil.copyfile(folder / f"{name}.tsv", kept / f"{name}.tsv")
    took = [
        tables.read(file)[0] for file in (results / "benchmarks" / "arena").rglob("*/*/*.tsv")
    ]  # a row of seconds, CPU seconds and MB
    notes = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "commit": at,
        **describe_machine(),
        "cells": len(took),
        "CPU minutes": round(sum(float(row["cpu_time"] or 0) for row in took) / 60),
    }
    (kept / "run.json").write_text(json.dumps(notes, indent=1) + "\n", encoding="utf-8")


def page(kept: Path) -> str:
    """Return the text of papers/arena/README.md."""
    notes = json.loads((kept / "run.json").read_text(encoding="utf-8"))
    found = {name: tables.read(kept / f"{name}.tsv") for name in NAMES}
    leaks = arena.TABLES["leaks"].shown
    assert leaks is not None
    parts = [
        "# The arena: every method on the same data",
        WRITTEN,
        "; ".join(f"{name}: {value}" for name, value in notes.items()) + ".",
        ABOUT,
        "## Ranks",
        RANKS,
        tables.markdown(arena.mean_ranks(found["ranks"])),
        "## What the server learns",
        LEAKS,
        tables.markdown(leaks(found["leaks"])),
        "## The methods as commands",
        COMMANDS,
        tables.markdown(methods()),
    ]
    filled = [part if part.startswith("|") else textwrap.fill(part, 99) for part in parts]
    return "\n\n".join(part.rstrip() for part in filled) + "\n"


def methods() -> list[dict[str, str]]:
    """Return a table row for each method, with the command that runs the method."""
    rows = curves.of_variants(
        read_yaml(ROOT / "papers/arena/experiments.yaml")["experiments"]["contest"]
    )
    return [{**row, "command": f"`{row['command']}`"} for row in rows]


def main() -> None:
    """Keep the tables of results/, unless --page-only is given, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    only = "write the page anew from what is kept, and leave results/ alone"
    parser.add_argument("--page-only", action="store_true", help=only)
    if not parser.parse_args().page_only:
        keep(ROOT / "results", KEPT)
    PAGE.write_text(page(KEPT), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    try:
        main()
    except DataError as error:
        sys.exit(f"Error: {error}")
