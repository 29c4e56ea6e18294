"""Commands end with their answer, whatever the environment says of figures and warnings."""

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
NOTEBOOK = {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
UNKNOWN = {"MPLBACKEND": "not installed", "SOURCE_DATE_EPOCH": "1000000000000"}


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


@pytest.mark.parametrize(
    ("command", "variables"), [("pca", NOTEBOOK), ("compare", UNKNOWN), ("plot", UNKNOWN)]
)
def test_a_figure_is_drawn_whatever_the_environment_says(folder, command, variables):
    run(folder, *COMMANDS[command], **variables)
    for made in ("made.png", "made.pdf"):
        (folder / made).unlink()


def test_a_warning_ends_no_command_that_has_spent_its_epsilon(folder):
    words = ["pca", *TABLE, "--bounds", "ranges.csv", "--epsilon", "0.05"]
    run(folder, *words, PYTHONWARNINGS="error")
