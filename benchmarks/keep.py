"""Runs benchmarks and keeps what they print in benchmarks/kept/.

README's parts between two comments are these files. Only a run that succeeds is kept.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from fedcore.experiments.provenance import commit
from fedcore.repro.plan.machine import describe_machine

FOLDER = Path(__file__).parent
KEPT = FOLDER / "kept"
README = FOLDER / "README.md"
OPTIONS = {  # of benchmarks that are not kept with their defaults
    "bench_defaults": ["--repeats", "3"],
    "bench_before_after": ["--commit", "7f11eb9a", "--turns", "3"],  # before MPI was one program
    "bench_mpi": ["--ranks", "1", "--ranks", "2", "--ranks", "3", "--repeats", "3"],
    "bench_run-rehearsal": ["--rehearsal"],
    "bench_networks-cuda": ["--device", "cuda", "--repeats", "1"],
}
DRAWN = {"bench_mpi": "docs/mpi_scaling.png"}  # figures of what is kept
# Kept when they are named, for they take an accelerator, environments of peers, or hours.
ASKED = {"bench_networks-cuda", "bench_peers", "bench_run-rehearsal"}


def where(at: str) -> str:
    """Return what figures depend on: day, commit, processor, load and versions."""
    load = f"{os.getloadavg()[0]:.0f}" if hasattr(os, "getloadavg") else "?"
    versions = [f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn")]
    return (
        f"{datetime.now(UTC).date()}, commit {at}\n"
        f"{describe_machine()['CPU']}, {os.cpu_count()} threads, load {load} before\n"
        f"Python {platform.python_version()}, {', '.join(versions)}"
    )


def keep(name: str, at: str) -> None:
    """Run a benchmark of a commit and keep its output; a name may end with that of a device."""
    said, options, script = where(at), OPTIONS.get(name, []), f"{name.partition('-')[0]}.py"
    command = [sys.executable, str(FOLDER / script), *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=FOLDER.parent)
    if done.returncode:
        sys.exit(f"Error: {name} ends with status {done.returncode}: {done.stdout}{done.stderr}")
    KEPT.mkdir(exist_ok=True)
    output = "\n".join(line.rstrip() for line in done.stdout.strip().splitlines())
    text = f"{' '.join([script, *options])}\n{said}\n\n{output}\n"
    file = KEPT / f"{name}.txt"
    file.write_text(text, encoding="utf-8", newline="\n")
    if name in DRAWN:
        drawing = [*command[:2], "--kept", str(file), "--plot", str(FOLDER.parent / DRAWN[name])]
        subprocess.run(drawing, check=True)


def marks(name: str) -> tuple[str, str]:
    """Return the comments between which README has the output of a benchmark."""
    begin = f"<!-- `python benchmarks/keep.py` writes what follows: {name} -->"
    return begin, f"<!-- end of what `python benchmarks/keep.py` writes: {name} -->"


def inserted(text: str) -> str:
    """Return README with the kept outputs between its comments."""
    for file in sorted(KEPT.glob("*.txt")):
        begin, end = marks(file.stem)
        if text.count(begin) != 1 or text.count(end) != 1:
            sys.exit(f"Error: {README} needs the lines '{begin}' and '{end}' once each")
        head, rest = text.split(begin)
        shown = f"```text\n{file.read_text(encoding='utf-8')}```"
        text = f"{head}{begin}\n\n{shown}\n\n{end}{rest.split(end)[1]}"
    return text


def main() -> None:
    """Keep the named benchmarks; by default those in README, but for `ASKED`."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    what = f"such as bench_users; by default all but {', '.join(ASKED)}"
    parser.add_argument("names", nargs="*", metavar="NAME", help=what)
    names = parser.parse_args().names
    shown = re.findall(r"writes what follows: ([\w-]+) -->", README.read_text(encoding="utf-8"))
    every = [name for name in shown if name not in ASKED]
    at = commit(FOLDER.parent)  # before outputs are kept, which are files of the checkout
    for name in names or every:
        print(f"== {name}", flush=True)
        keep(name, at)
    README.write_text(inserted(README.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
