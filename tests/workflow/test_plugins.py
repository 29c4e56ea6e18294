"""A data set from another package runs like one of fedcore's own."""

from __future__ import annotations

import pytest

from fedcore.problems import storage

LOADER = """
from pathlib import Path

import numpy as np

from fedcore.datasets import Dataset


def make(raw_dir, *, split, surrogate, options):
    rows = np.loadtxt(Path(__file__).with_name("rows.txt"))
    extra = Path(raw_dir, "outside", "extra.txt")
    if extra.exists():
        rows = np.vstack([rows, np.loadtxt(extra)])
    return Dataset("outside", rows, None, "official", "Of another package.", "0" * 64)
"""
FILES = {
    "elsewhere/__init__.py": "",
    "elsewhere/data/__init__.py": LOADER,
    "elsewhere/data/rows.txt": "1 0 0\n0 2 0\n0 0 3\n4 4 4\n",
}
PROBLEM = "data/clients/tiny/tiny/little.h5"
HISTORY = "results/tiny/histories/tiny/first/wk2023/little-default.h5"


@pytest.fixture
def plugged(done, installed):
    """Copy in which a package adds a data set, and the paper uses it."""
    for name, text in FILES.items():
        file = done.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    installed(done.root, "elsewhere", "[fedcore.datasets]\noutside = elsewhere.data:make\n")
    paper = "papers/tiny/experiments.yaml"
    done.edit(paper, "dataset: little", "dataset: outside")
    done.edit(paper, "scale: unit", "scale: none")
    done.edit(paper, "partition: {by: label}", "partition: {by: shuffled, clients: 2}")
    return done


def test_it_runs_and_follows_its_code_and_its_files(plugged):
    run = plugged.snakemake(HISTORY)
    assert run.status == 0, run.text
    assert storage.load(plugged.root / PROBLEM).n_samples == 4
    assert plugged.planned(HISTORY) == {}

    plugged.append("elsewhere/data/rows.txt", "5 5 5\n")
    assert PROBLEM in plugged.planned(HISTORY)
    run = plugged.snakemake(HISTORY)
    assert run.status == 0, run.text
    assert storage.load(plugged.root / PROBLEM).n_samples == 5

    plugged.append("data/raw/outside/extra.txt", "6 6 6\n")
    assert PROBLEM in plugged.planned(HISTORY)
    (plugged.root / "data/raw/outside/extra.txt").unlink()
    plugged.append("elsewhere/data/__init__.py", "\nEDITED = True\n")
    assert PROBLEM in plugged.planned(HISTORY)
