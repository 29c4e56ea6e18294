"""Three shelves: what stands above can be deleted, and what stands below still works."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import processes

ROOT = Path(__file__).parents[1]
SMALL = ("run", "block_krylov", "w8a", "--components", "2", "--surrogate", "--set", "rounds=2")
IMPORT_ALL = """
import importlib, pkgutil, fedcore
assert fedcore.__file__.startswith({root!r}), fedcore.__file__
for found in pkgutil.walk_packages(fedcore.__path__, "fedcore."):
    if not found.name.startswith(("fedcore.deep", "fedcore.__main__")):
        importlib.import_module(found.name)
"""


@pytest.fixture
def copied(tmp_path):
    """Return a copy of the checkout's code, and what runs Python on it."""
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("fedcore", "papers", "config", "workflow", "notebooks"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
    shutil.copy(ROOT / "Snakefile", tmp_path)

    paths = {**os.environ, "PYTHONPATH": str(tmp_path)}
    return tmp_path, lambda *words: processes.python(*words, cwd=tmp_path, env=paths).stdout


def test_the_library_works_without_papers_and_reproduction(copied):
    root, python = copied
    with_all = python("-m", "fedcore", "--help")
    assert "  job " in with_all and "  verdicts " in with_all
    for shelf in ("papers", "fedcore/repro", "workflow/rules", "notebooks"):
        shutil.rmtree(root / shelf)
    python("-c", IMPORT_ALL.format(root=str(root)))
    without = python("-m", "fedcore", "--help")
    assert "  job " not in without and "  run " in without
    assert "objective" in python("-m", "fedcore", *SMALL, "--out", "kept.h5")
    assert "objective" in python("-m", "fedcore", "show", "kept.h5")
    for name in "ab":
        rows = "\n".join(f"{i},{(i * i) % 7},{(3 * i) % 5}" for i in range(20))
        (root / f"{name}.csv").write_text(f"one,two,three\n{rows}\n")
    assert "three" in python("-m", "fedcore", "pca", "a.csv", "b.csv", "--components", "2")


def test_the_reproduction_works_without_the_papers(copied):
    root, python = copied
    shutil.rmtree(root / "papers")
    python("-c", IMPORT_ALL.format(root=str(root)))
    shutil.copytree(ROOT / "tests/workflow/tiny", root / "elsewhere/tiny")
    settings = root / "elsewhere/tiny/experiments.yaml"
    settings.write_text(settings.read_text().replace("dataset: little", "dataset: mnist"))
    named = ("--config", "papers=[elsewhere/tiny]", "surrogates=True")
    assert "run_" in python("-m", "snakemake", "--cores", "1", "-n", *named)
