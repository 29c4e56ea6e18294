"""docs/tutorial.md, its console blocks in order, from a built wheel and outside the checkout."""

from __future__ import annotations

import os
import re
import shutil
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from printed import ROOT, blocks, require_output, session
from processes import python

PAGE = ROOT / "docs" / "tutorial.md"
SCRIPTS = ROOT / "examples" / "three_hospitals"
CONSOLE = [block for block in blocks(PAGE) if block.language == "console"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return the wheel of this checkout."""
    folder = tmp_path_factory.mktemp("wheel")
    python("-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def followed(wheel, tmp_path_factory):
    """Follow the page in an empty folder; return the folder, the seconds and what was printed."""
    installed, folder = (tmp_path_factory.mktemp(name) for name in ("installed", "hospitals"))
    zipfile.ZipFile(wheel).extractall(installed)  # what pip does with a wheel of pure Python
    for script in SCRIPTS.glob("*.py"):
        shutil.copy(script, folder)
    environment = os.environ | {"PYTHONPATH": str(installed)}
    programs = {"python": [], "fedcore": ["-m", "fedcore"]}
    began, said = time.monotonic(), []
    for block in CONSOLE:
        if block.dry:
            continue
        for words, printed in session(block):
            command = (*programs[words[0]], *words[1:])
            done = python(*command, cwd=folder, env=environment, encoding="utf-8")
            require_output(block, words, printed, done.stdout)
            said.append(done.stdout)
    code = "import fedcore; print(fedcore.__file__)"
    where = python("-c", code, cwd=folder, env=environment)
    assert Path(where.stdout.strip()).is_relative_to(installed)
    return folder, time.monotonic() - began, said


def test_what_it_finds_is_what_the_pooled_table_gives(followed):
    folder, _, said = followed
    tables = [
        np.loadtxt(folder / f"{name}.csv", delimiter=",", skiprows=1)
        for name in ("north", "south", "west")
    ]
    low = np.array([18, 80, 14, 2.6, 2.2, 30])
    high = np.array([92, 180, 38, 8.6, 8.2, 130])
    pooled = np.vstack(tables)

    def components(units):
        rows = (pooled - pooled.mean(axis=0)) / units
        right_t = np.linalg.svd(rows, full_matrices=False)[2][:2]
        return right_t * np.sign(right_t[np.arange(2), np.abs(right_t).argmax(axis=1)])[:, None]

    def weights(text):
        lines = [line.split() for line in text.splitlines() if re.match(r"  \w", line)]
        return np.array([[float(number) for number in line[1:]] for line in lines])

    np.testing.assert_allclose(weights(said[1]), components(pooled.std(axis=0)).T, atol=0.00051)
    right_t = components((high - low) / 2)
    np.testing.assert_allclose(weights(said[2]), right_t.T, atol=0.00051)
    private = np.linalg.qr(weights(said[3]))[0]
    # 1 is the same plane; the least of 200 private fits was 0.992.
    assert np.linalg.svd(private.T @ right_t.T, compute_uv=False).min() > 0.95


def test_it_ends_with_plots_of_both(followed):
    folder = followed[0]
    pictures = [image.imread(folder / f"{name}.png") for name in ("scores", "scores-private")]
    assert all(picture.std() > 0.05 for picture in pictures)
    assert not np.array_equal(*pictures)


def test_the_data_are_named_synthetic_and_repeat(followed, tmp_path):
    first = followed[2][0]
    assert first.count("synthetic patients") == 3
    python(SCRIPTS / "synthetic_hospitals.py", cwd=tmp_path)
    for name in ("north", "south", "west"):
        again = (tmp_path / f"{name}.csv").read_bytes()
        assert again == (followed[0] / f"{name}.csv").read_bytes() and len(again) < 150_000
