"""Runs the tests with the oldest versions that pyproject.toml allows, by uv in .venv-oldest.

Arguments that are not listed here are passed to pytest, such as ``-n 2`` or ``-k faps``.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
VENV = ROOT / ".venv-oldest"
# Not docs, whose myst-parser brings a newer markdown-it-py, nor deep, whose PyTorch takes 5 GB.
EXTRAS = ("workflow", "slurm", "dev", "mpi")
THREADS = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM", "NUMEXPR_NUM")


def install(python: str, extras: list[str]) -> None:
    """Make the environment .venv-oldest anew, with the oldest allowed versions."""
    pip = ["uv", "pip", "install", "--quiet", f"--python={VENV / 'bin/python'}"]
    oldest = ["--resolution=lowest-direct", "-r", "pyproject.toml"]
    for command in (
        ["uv", "venv", "--quiet", "--seed", "--clear", f"--python={python}", str(VENV)],
        [*pip, *oldest, *(f"--extra={extra}" for extra in extras)],
        [*pip, "--no-deps", "--no-build-isolation", "--editable", "."],
    ):
        subprocess.run(command, cwd=ROOT, check=True)


def main() -> int:
    """Install the oldest versions, run the tests, and return pytest's exit status."""
    about, more = __doc__.strip().split("\n\n")
    parser = argparse.ArgumentParser(description=about, epilog=more)
    parser.add_argument("--python", default="3.11", help="version or path for uv  [3.11]")
    every = f"of pyproject.toml  [{' '.join(EXTRAS)}]"
    parser.add_argument("--extras", nargs="*", default=EXTRAS, metavar="EXTRA", help=every)
    chosen, of_pytest = parser.parse_known_args()
    install(chosen.python, chosen.extras)
    path = f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}"
    one_thread = {f"{name}_THREADS": "1" for name in THREADS}
    environment = os.environ | one_thread | {"PATH": path}
    tests = [str(VENV / "bin/python"), "-m", "pytest", *of_pytest]
    return subprocess.run(tests, cwd=ROOT, env=environment).returncode


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FileNotFoundError:
        sys.exit("Error: this needs uv (pipx install uv)")
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
