"""Runs every command of README and of the tutorial, in a fresh clone.

The commands are the lines of a page's console blocks, and the code in README's prose that begins
with a program's name and is on no such line. A shell for each page runs them in a clone of HEAD,
each as printed, but for those of `INSTEAD`, and prints how long each took. It fails if a command
fails, or if one leaves a file that git would ask about.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from printed import BLOCK, PARSERS, ROOT, typed

PAGES = ("README.md", "docs/tutorial.md")
HIDDEN = re.compile(r"<!--.*?-->", re.S)
CODE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
HISTORY = "results/quick/histories/factorization"
# What cannot run as printed: what is run in its place, and why.
INSTEAD = {
    "make reproduce": ("make -n reproduce", "it takes hours"),
    'make reproduce PAPERS="factorization fedpower"': ("make -n reproduce", "it takes an hour"),
    "make test": ("make -n test", "continuous integration runs it"),
    "make env EXTRAS=deep": ("make -n env EXTRAS=deep", "PyTorch is large"),
    "snakemake --workflow-profile workflow/profiles/slurm": (
        "snakemake --workflow-profile workflow/profiles/slurm --dry-run",
        "there is no cluster; a test runs it on one of a node",
    ),
    "fedcore pca north.csv south.csv --scale --plot scores": (
        "(mkdir -p build/readme && cd build/readme && "
        "python ../../examples/three_hospitals/synthetic_hospitals.py && "
        "fedcore pca north.csv south.csv --scale --plot scores)",
        "the files are the reader's: those of the tutorial stand in for them",
    ),
    "mpiexec -n 4 fedcore run ssi problem.h5 --components 20 --engine mpi": (
        "mpiexec -n 4 fedcore run ssi data/clients/quick/factorization/w8a.h5 --components 20 "
        "--engine mpi",
        "the file is the reader's: a problem of `make quickstart` stands in for it",
    ),
    "fedcore check my_package.my_pca": (
        "pip install ./examples/plugin && fedcore check federated_wards.stacked_svd",
        "the package is the reader's: the example stands in for it",
    ),
}
# Lines that download data: without a network and FEDCORE_MIRROR they run on a stand-in.
UNREACHABLE = "could not be downloaded"
STAND_IN = "--surrogate"


@dataclass(frozen=True)
class Command:
    """A command of a page: the line as it is printed, without its comment."""

    line: str
    in_prose: bool = False


def commands(text: str) -> list[Command]:
    """Return the commands of a page in their order; in prose, only those that no block has."""
    found: list[tuple[int, Command]] = []

    def take(block: re.Match[str]) -> str:
        if block["language"] == "console":
            found.extend((block.start(), Command(_plain(line))) for line, _ in typed(block["code"]))
        return " " * len(block[0])

    prose = BLOCK.sub(take, HIDDEN.sub(lambda hidden: " " * len(hidden[0]), text))
    known = {command.line for _, command in found}
    for code in CODE.finditer(prose):
        line = " ".join(code[1].split())
        program, _, rest = line.partition(" ")
        if program in PARSERS and rest and line not in known:
            known.add(line)
            found.append((code.start(), Command(line, in_prose=True)))
    return [command for _, command in sorted(found, key=lambda pair: pair[0])]


def of_page(page: str, root: Path = ROOT) -> list[Command]:
    """Return the commands of one of `PAGES`; prose of others than README has examples."""
    found = commands((root / page).read_text(encoding="utf-8"))
    return [command for command in found if page == PAGES[0] or not command.in_prose]


def _plain(line: str) -> str:
    return re.sub(r"\s+#.*", "", line).strip()


class Shell:
    """A shell that stays: what a line sets or activates holds for the next."""

    def __init__(self, folder: Path, log: Path) -> None:
        self._log = log
        self._process = subprocess.Popen(
            ["bash", "--norc"], cwd=folder, env=dict(_surroundings()), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def run(self, line: str) -> tuple[int, float, str]:
        """Return a line's status, its seconds, and what it printed."""
        assert self._process.stdin and self._process.stdout
        began = time.monotonic()
        self._process.stdin.write(f'{{ {line}\n}} </dev/null >"{self._log}" 2>&1\necho $?\n')
        self._process.stdin.flush()
        said = self._process.stdout.readline()
        status = int(said) if said else self._process.wait() or 1
        return status, time.monotonic() - began, self._log.read_text(errors="replace")


def _surroundings() -> Iterator[tuple[str, str]]:
    """Yield the environment variables of a reader's shell, without those of this test."""
    for name, value in os.environ.items():
        if name == "PATH":
            programs = {Path(sys.prefix) / "bin", Path(sys.prefix) / "Scripts"}
            kept = [part for part in value.split(os.pathsep) if Path(part) not in programs]
            yield name, os.pathsep.join(kept)
        elif name == "FEDCORE_MIRROR":
            yield name, str(Path(value).resolve())
        elif not re.fullmatch(r"PYTHONPATH|VIRTUAL_ENV.*|MAKE.*|MFLAGS|VENV", name):
            yield name, value


def run(shell: Shell, command: Command) -> bool:
    """Run a command or what stands in for it, print what came of it, and tell if it failed."""
    line, why = INSTEAD.get(command.line, (command.line, ""))
    print(f"$ {command.line}" + (f"\n  in its place: {line}\n  because {why}" if why else ""))
    status, seconds, output = shell.run(line)
    if status and UNREACHABLE in output:
        print(f"  its data {UNREACHABLE}, so it runs again with {STAND_IN}")
        status, seconds, output = shell.run(f"{line} {STAND_IN}")
    if status:
        print("".join(f"  | {printed}\n" for printed in output.splitlines()[-40:]), end="")
    print(f"  {'FAILED' if status else 'ran'}, {seconds:.1f} s", flush=True)
    return bool(status)


@click.command()
@click.option("--dry-run", is_flag=True, help="list the commands, and run none")
def main(dry_run: bool) -> None:
    """Run the commands of README and of the tutorial in a fresh clone of HEAD."""
    if dry_run:
        for command in (command for page in PAGES for command in of_page(page)):
            print(f"{command.line}  =>  {INSTEAD.get(command.line, ('as printed',))[0]}")
        return
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder) / "fedcore"
        subprocess.run(["git", "clone", "-q", ROOT, clone], check=True)
        failed, found = [], 0
        for page in PAGES:
            shell = Shell(clone, Path(folder) / "output")
            for command in of_page(page, clone):
                found += 1
                if run(shell, command):
                    failed.append(command.line)
        status = ["git", "status", "--porcelain"]
        left = subprocess.run(status, cwd=clone, capture_output=True, text=True, check=True)
    print(f"{found - len(failed)} of {found} commands ran")
    if left.stdout:
        failed.append(f"git asks about what they leave:\n{left.stdout}")
    if failed:
        sys.exit("README or the tutorial does not work in a fresh clone: " + "; ".join(failed))


if __name__ == "__main__":
    main()
