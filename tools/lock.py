"""Writes requirements.lock, and the locks of the extras deep, mpi and slurm, by uv.

A locked package stays at its version while pyproject.toml allows the version, unless --upgrade is
given.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
UV = ["uv", "pip", "compile", "--universal", "--python-version=3.11", "--generate-hashes"]
UV += ["--no-header", "--quiet"]
BASE = ("workflow", "dev", "docs")  # the extras of requirements.lock
ADDED = {  # by other extras, with what these packages need and requirements.lock does not have
    "deep": ["torch"],
    "mpi": ["mpi4py", "mpich"],
    "slurm": ["snakemake-executor-plugin-slurm", "snakemake-executor-plugin-slurm-jobstep"],
}


def lock(name: str, says: str, *options: str, packages: list[str] | None = None) -> None:
    """Let uv lock pyproject.toml or some packages; write `says` as a comment on the first line."""
    given = {"input": "\n".join(packages)} if packages else {"stdin": subprocess.DEVNULL}
    source = "-" if packages else "pyproject.toml"
    command = [*UV, source, *options, f"--output-file={name}"]
    subprocess.run(command, cwd=ROOT, text=True, check=True, **given)
    text = (ROOT / name).read_text(encoding="utf-8")
    head = f"# {says}. Written by `python tools/lock.py`; not to be edited.\n"
    (ROOT / name).write_text(head + text, encoding="utf-8", newline="\n")


def main() -> None:
    """Write all lock files."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    newest = ["--upgrade"] * parser.parse_args().upgrade
    extras = [f"--extra={extra}" for extra in BASE]
    says = f"fedcore-repro[{','.join(BASE)}] for Python 3.11 and later"
    lock("requirements.lock", says, *extras, "--fork-strategy=fewest", *newest)
    there = re.findall(r"^[\w.-]+", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE)
    without = [f"--no-emit-package={name}" for name in sorted(set(there))]
    for extra, packages in ADDED.items():
        says = f"What fedcore-repro[{extra}] adds to requirements.lock"
        options = ["--constraint=requirements.lock", *without, "--no-annotate", *newest]
        lock(f"requirements-{extra}.lock", says, *options, packages=packages)


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError:
        sys.exit("Error: this needs uv (pipx install uv)")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
