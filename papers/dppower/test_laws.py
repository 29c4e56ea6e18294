"""Slopes of the laws of `dppower`, from errors that follow a power of the rate."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dppower import laws as report
from dppower import theory
from fedcore.history import History
from folder import Folder

X = np.array([1.0, 2.0, 4.0])


def test_slopes_are_those_of_power_laws_and_leave_out_what_is_no_small_error():
    errors = np.outer([0.001, 0.002], X**-2.0)
    points, slopes = report.fitted(X, errors)
    assert points == 3 and slopes == pytest.approx([-2.0, -2.0])
    points, slopes = report.fitted(X, np.where(X == 1.0, 0.9, errors))
    assert points == 2 and slopes == pytest.approx([-2.0, -2.0])
    points, slopes = report.fitted(X, np.where(X < 4.0, 0.9, errors))
    assert points == 1 and slopes == [None] * 2


def test_a_ratio_needs_small_errors_on_both_sides():
    above, below = np.outer([0.01, 0.02], X**-1.0), np.outer([0.001, 0.001], X**-2.0)
    points, slopes = report.fitted(X, above, below)
    assert points == 3 and slopes == pytest.approx([1.0, 1.0])
    assert report.fitted(X, above, np.where(X == 2.0, 0.5, below))[0] == 2


def rows_of(gap: float, d: int) -> np.ndarray:
    """Rows whose singular values are 10 and 10 √(1 − κ), the first along (1, …, 1)."""
    sigma = np.full(d, 10.0 * math.sqrt(1.0 - gap))
    sigma[0] = 10.0
    basis = np.linalg.qr(np.column_stack([np.ones(d), np.eye(d)[:, 1:]]))[0]
    return np.diag(sigma) @ basis.T


@pytest.fixture
def folder(tmp_path):
    made = Folder(tmp_path, "dppower", {"n_components": 1}, ["sin_squared"])
    for gap in (0.5, 0.1):
        name = f"gap{round(100 * gap)}"
        made.add_problem(name, [rows_of(gap, 4)])
        made.problems[name]["params"] = {"gap": gap, "n_samples": 4, "n_features": 4}
    return made


def test_a_law_is_fitted_to_the_runs_of_its_experiment(folder, monkeypatch):
    for gap in (50, 10):
        for algorithm in ("centralized_svd", "noisy_power"):
            private = {"epsilon": None} if algorithm == "noisy_power" else {}
            folder.add("here", algorithm, f"gap{gap}", params=private)

    def error(run):
        power = 3.0 if run.algorithm == "noisy_power" else 1.0
        return np.full(2, 1e-6) * report.relative_gap(run, {}) ** power

    laws = {
        "one": report.Law("here", "noisy_power", error, report.relative_gap),
        "ratio": report.Law(
            "here", "noisy_power", error, report.relative_gap, over="centralized_svd"
        ),
    }
    monkeypatch.setattr(report, "LAWS", laws)
    found = report.laws(folder.results())
    assert [(r["law"], r["repeat"], r["points"]) for r in found] == [
        ("one", 0, 2), ("one", 1, 2), ("ratio", 0, 2), ("ratio", 1, 2),
    ]  # fmt: skip
    assert [r["slope"] for r in found] == pytest.approx([3.0, 3.0, 2.0, 2.0])


def test_rates_and_errors_are_those_of_the_model(folder):
    folder.add("here", "centralized_svd", "gap50")
    (run,) = folder.results().runs("here")
    model = {"gap": 0.5, "n_samples": 100, "n_features": 4}
    assert theory.to_population(run) == pytest.approx([0.0, 0.0], abs=1e-12)
    assert report.relative_gap(run, model) == pytest.approx(1 / (1 - math.sqrt(0.5)))
    assert report.moments_rate(run, model) == pytest.approx((10 - 10 * math.sqrt(0.5)) ** -2)
    assert report.top(run, model) == pytest.approx(1 / 2.5)
    assert report.top(run, model | {"minor": 2}) == pytest.approx(1 / 2)
    assert report.sampling_term(run, model) == pytest.approx(2.5 / (100 * 0.25))


def test_a_small_gap_compares_repeats_on_the_same_problem(folder):
    given = {"epsilon": 10.0, "clip": True}
    folder.add("small_gap", "analyze_gauss", "gap10", params=given)
    folder.add("small_gap", "analyze_gauss", "gap10", "own", params=given | {"epsilon": 1.0})
    folder.add("small_gap", "adaptive_power", "gap10", params=given)
    folder.add("small_gap", "adaptive_power", "gap10", "paper", params=given)
    results = folder.results()
    theirs, own = (
        next(results.runs("small_gap", algorithm="analyze_gauss", variant=name)).last("sin_squared")
        for name in ("default", "own")
    )
    found = report.small_gap(results)
    assert {r["gap"] for r in found} == {0.1}
    for name in ("default", "paper"):  # claims choose the noise by it
        rows = [r for r in found if r["variant"] == name]
        error = np.array([r["error"] for r in rows])
        assert [r["ratio"] for r in rows] == pytest.approx(error / theirs)
        expected = error / own if name == "paper" else [math.nan] * 2
        assert [r["own_ratio"] for r in rows] == pytest.approx(expected, nan_ok=True)


def test_growth_is_counted_from_the_first_step_to_the_last(tmp_path):
    """Step t starts from record t − 1: 0.3 to 0.6 along v₁, with thresholds 0.5 to 0.6."""
    along, threshold = np.array([[0.3, 0.6, 0.9]] * 2), np.array([[0.0, 0.5, 0.6]] * 2)
    history = History({"iteration": np.array([[0, 1, 2]] * 2), "sin_squared": 1.0 - along**2})
    history.columns["threshold"] = threshold
    folder = Folder(tmp_path, "dppower", {"n_components": 1}, ["sin_squared"])
    folder.problems["rows"] = {"label": "rows", "params": {}}
    folder.add("dimension", "adaptive_power", "rows", "tuned", history=history)
    folder.add("dimension", "adaptive_power", "rows", history=history)
    found = report.correlation(folder.results())
    assert [r["variant"] for r in found] == ["tuned", "tuned"]
    assert [r["of_rows"] for r in found] == pytest.approx([1.2, 1.2])
    assert [r["share"] for r in found] == pytest.approx([0.6, 0.6])
