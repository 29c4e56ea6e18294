"""The program that compares two folders of results finds whatever differs, and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from fedcore.history import History

PROGRAM = Path(__file__).parents[1] / "tools" / "compare_results.py"


def save(path, commit="1", **changed):
    columns = {"iteration": np.arange(3)[None], "loss": np.array([[1.0, np.nan, 0.5]])}
    about = {"commit": commit, "code": commit, "seed": 7, **changed}
    path.parent.mkdir(parents=True)
    History(columns, {"V": np.ones((1, 2, 2))}, about=about).save(path)


def compared(tmp_path):
    call = [sys.executable, PROGRAM, tmp_path / "a", tmp_path / "b"]
    return subprocess.run(call, capture_output=True, text=True)


@pytest.fixture
def cell(tmp_path):
    """The second of two equal files of other commits."""
    for folder, commit in (("a", "1"), ("b", "2")):
        save(tmp_path / folder / "paper" / "cell.h5", commit)
    return tmp_path / "b" / "paper" / "cell.h5"


def test_equal_results_of_two_commits_are_equal(tmp_path, cell):
    done = compared(tmp_path)
    assert done.returncode == 0 and not done.stderr, done.stdout


def last_bit(file, name, at):
    data = file[name]
    whole = data[()]
    whole.view(np.uint64).reshape(-1)[at] ^= 1
    data[...] = whole


CHANGES = {
    "/history/loss": lambda file: last_bit(file, "history/loss", 2),
    "/history/loss ": lambda file: last_bit(file, "history/loss", 1),  # a NaN's
    "/final/V": lambda file: last_bit(file, "final/V", 3),
    "/history/loss: units": lambda file: file["history/loss"].attrs.__setitem__("units", "2"),
    "about: seed": lambda file: file.attrs.__setitem__("about", '{"seed": 8}'),
    "/history/more": lambda file: file.create_dataset("history/more", data=1.0),
    "/final": lambda file: file.__delitem__("final"),
    "/history/loss: DIMENSION_LIST":
        lambda file: file["history/loss"].dims[0].detach_scale(file["repeat"]),
}  # fmt: skip


@pytest.mark.parametrize("place", CHANGES)
def test_any_change_is_found_and_named(tmp_path, cell, place):
    with h5py.File(cell, "r+") as file:
        CHANGES[place](file)
    done = compared(tmp_path)
    assert done.returncode == 1 and f"paper/cell.h5: {place.strip()}" in done.stdout


@pytest.mark.parametrize("folder", ["a", "b"])
def test_a_file_in_one_folder_only_is_a_difference(tmp_path, cell, folder):
    save(tmp_path / folder / "paper" / "more" / "cell.h5")
    done = compared(tmp_path)
    assert done.returncode == 1 and f"more/cell.h5: only in {tmp_path / folder}" in done.stdout


def test_folders_without_histories_are_not_equal(tmp_path):
    assert compared(tmp_path).returncode == 2
