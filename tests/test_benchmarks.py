"""The benchmark for users: its searches, its clocks, and that it fails when an answer is wrong."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

FOLDER = Path(__file__).parents[1] / "benchmarks"
SMALL = ["--case", "200,20,3,2", "--repeats", "1", "--rounds", "3"]

pytest.importorskip("sklearn")


@pytest.fixture
def bench(monkeypatch):
    """The benchmark as a module; it imports its neighbours."""
    monkeypatch.syspath_prepend(FOLDER)
    for library in ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "VECLIB_MAXIMUM"):
        monkeypatch.setenv(f"{library}_THREADS", "1")  # it sets them, too
    spec = importlib.util.spec_from_file_location("bench_users", FOLDER / "bench_users.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "bench_users", module)
    spec.loader.exec_module(module)
    return module


def test_it_prints_four_tables(bench):
    done = CliRunner().invoke(bench.main, SMALL)
    assert done.exit_code == 0, done.output
    assert [line for line in done.output.splitlines() if line.isalpha()] == [
        "pooled", "limits", "stages", "textbook",
    ]  # fmt: skip
    assert done.output.count("| 200 × 20, 3, 2 |") == 3 + 6


@pytest.mark.parametrize("wrong", ["FederatedPCA", "textbook"])
def test_it_fails_when_an_answer_is_wrong(bench, monkeypatch, wrong):
    if wrong == "textbook":
        monkeypatch.setattr(bench.textbook, "ssi", lambda clients, Z, rounds: Z)
    else:
        loose = bench.fedcore.FederatedPCA
        monkeypatch.setattr(bench.fedcore, "FederatedPCA", lambda r: loose(r, tol=0.9))
        monkeypatch.setattr(bench, "TOL", 1e-14)
    done = CliRunner().invoke(bench.main, SMALL)
    assert done.exit_code == 1


@pytest.mark.parametrize("needed", [0, 1, 2, 5, 63, 64])
def test_the_fewest_iterations_that_are_enough_are_found(bench, needed):
    assert bench.least(lambda q: q >= needed) == needed


def test_too_many_iterations_are_none(bench):
    assert bench.least(lambda q: q > bench.MOST) is None


def test_the_pooled_data_have_the_vectors_that_errors_are_measured_against(bench):
    S, right_t = bench.pooled(60, 8, 1.3)
    covariance = np.cov(S.T)
    inside = right_t @ covariance @ right_t.T
    np.testing.assert_allclose(inside, np.diag(np.diag(inside)), atol=1e-14 * inside[0, 0])
    assert (np.diff(np.diag(inside)) <= 0).all()


def test_ratios_are_taken_turn_by_turn(bench):
    mine = bench.Times([1.0, 20.0, 3.0], [1.0, 1.0, 1.0])
    assert mine.over(bench.Times([2.0, 40.0, 6.0], [4.0, 4.0, 4.0])) == 0.5
    assert mine.over(bench.Times([2.0, 40.0, 6.0], [4.0, 4.0, 4.0]), "wall") == 0.25
