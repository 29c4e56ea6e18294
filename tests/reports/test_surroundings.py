"""Commands that draw do not ask for the backend that a notebook server has set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

TABLE = ["a.csv", "b.csv", "-r", "2"]
COMMANDS = {
    "pca": ["pca", *TABLE, "--bounds", "ranges.csv", "--epsilon", "50", "--plot", "made"],
    "compare": ["compare", "ssi", "block_krylov", *TABLE, "--set", "rounds=3", "--plot", "made"],
    "plot": ["plot", "run.h5", "--out", "made"],
}
BACKENDS = ["module://matplotlib_inline.backend_inline", "not installed"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("own")
    for name in "ab":
        rows = np.random.default_rng(ord(name)).uniform(-1, 1, (400, 3)) * [4, 2, 1]
        np.savetxt(made / f"{name}.csv", rows, delimiter=",", header="x,y,z", comments="")
    (made / "ranges.csv").write_text("column,low,high\nx,-4,4\ny,-2,2\nz,-1,1\n")
    run(made, "run", "block_krylov", *TABLE, "--set", "rounds=3", "--out", "run.h5")
    return made


def run(folder: Path, *words: str, **variables: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "fedcore", *words], cwd=folder, env=os.environ | variables,
        check=True, timeout=300,
    )  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_figure_is_drawn_whatever_backend_is_set(folder, command, backend):
    run(folder, *COMMANDS[command], MPLBACKEND=backend)
    for made in ("made.png", "made.pdf"):
        (folder / made).unlink()
