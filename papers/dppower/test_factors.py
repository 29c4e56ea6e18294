"""Slopes of rows of Table 1 of `dppower` factor by factor, from errors that follow known laws."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from dppower import factors as report
from fedcore.history import History
from fedcore.repro.config import claims
from fedcore.repro.plan.plan import load_plan
from folder import Folder, without

ROOT = Path(__file__).parents[2]
# Powers in the rows as printed, of n‖U‖²_∞, d, ε, σ₁, σ₁ − σ₂, κ̄ and n.
PRINTED = {
    "hr13": {"U": 1, "ε": -2, "top": 1, "gap": -3},
    "dn26": {"U": 1, "d": 1, "ε": -2, "gap": -2},
    "lkjo22-3": {"d": 2, "ε": -2, "kappa": -2, "n": -2},
}
ALGORITHMS = {"hr13": "noisy_power", "dn26": "dn26", "lkjo22-3": "dp_pca"}


def settings():
    """Yield the row, and experiment, variant, problem and parameters of every cell."""
    plan = load_plan({"papers": ["dppower"]})
    for row, (algorithm, factors) in report.FACTORS.items():
        named = {(c.experiment, c.variant) for f in factors.values() for c in f.cells}
        for cell in plan.cells_of("dppower"):
            variant = cell.name.removeprefix(f"{cell.problem}-")
            if cell.algorithm == algorithm and (cell.experiment, variant) in named:
                yield row, variant, cell, plan.problems[f"dppower/{cell.problem}"]


def made(folder, powers):
    """Return results in which the errors of a row are products of these powers."""
    for row, variant, cell, problem in settings():
        model = {"gap": 0.75} | problem["params"]
        n, d, kappa = (model[name] for name in ("n_samples", "n_features", "gap"))
        top = model.get("top", math.sqrt(n / (1 + (d - 1) * (1 - kappa))))
        sigma = top * np.sqrt([1.0, 1.0 - kappa])
        facts = {
            "U": 1.0 / model.get("carriers", 1.0), "d": d, "ε": cell.params["epsilon"],
            "top": top, "gap": sigma[0] - sigma[1], "kappa": kappa, "n": n,
        }  # fmt: skip
        rate = math.prod(facts[name] ** power for name, power in powers[row].items())
        errors = 1e-30 * rate * np.array([[1.0], [2.0]])
        about = {"problem": {"n_samples": n, "n_features": d}}
        history = History(
            {"iteration": np.zeros((2, 1), int), "sin_squared": errors},
            reference={"singular_values": sigma}, about=about,
        )  # fmt: skip
        folder.problems[cell.problem] = {"label": cell.problem, "params": problem["params"]}
        folder.add(
            cell.experiment, cell.algorithm, cell.problem, variant,
            params=cell.params, history=history,
        )  # fmt: skip
    return folder.results()


@pytest.fixture
def folder(tmp_path):
    return Folder(tmp_path, "dppower", {"n_components": 1}, ["sin_squared"])


def by_factor(rows):
    """Return the rows of the first repeat by row and factor."""
    return {(r["row"], r["factor"]): r for r in rows if r["repeat"] == 0}


def test_every_slope_is_1_where_the_row_is_the_law(folder):
    results = made(folder, PRINTED)
    rows = report.factors(results)
    found = by_factor(rows)
    assert len(rows) == 2 * len(found) == 2 * (4 + 5 + 4)
    # Against d/(nκ̄²), what falls as n^−2 has the slope 2.
    expected = {key: 2.0 if key == ("lkjo22-3", "n") else 1.0 for key in found}
    assert {key: r["slope"] for key, r in found.items()} == pytest.approx(expected)
    assert {r["points"] for r in found.values()} == {2, 3}
    excess = {key: 1.0 - slope for key, slope in expected.items()}
    assert {key: r["excess"] for key, r in found.items()} == pytest.approx(excess, abs=1e-9)


WORSE = [  # powers of errors that are worse than the row, the factor that shows it, and its slope
    ("hr13", {"ε": -1}, "ε", 0.5),
    ("hr13", {"gap": -6, "top": 1}, "gap", None),
    ("hr13", {"U": 2}, "‖U‖_∞", 2.0),
    ("dn26", {"ε": -1}, "ε", 0.5),
    ("dn26", {"U": 2}, "‖U‖_∞", 2.0),
    ("dn26", {"gap": -4, "d": 1}, "gap", 2.0),
    ("lkjo22-3", {"n": -0.5}, "n", 0.5),
    ("lkjo22-3", {"ε": -4}, "ε", 2.0),
    ("lkjo22-3", {"kappa": -4}, "gap", 2.0),
    ("lkjo22-3", {"d": 4}, "d", 2.0),
]


@pytest.mark.parametrize(("row", "change", "factor", "slope"), WORSE)
def test_an_error_worse_than_the_row_in_one_factor_is_told_by_that_factor(
    folder, row, change, factor, slope
):
    found = by_factor(report.factors(made(folder, PRINTED | {row: PRINTED[row] | change})))
    one = found[row, factor]
    assert one["excess"] > 0.2
    if slope is not None:
        assert one["slope"] == pytest.approx(slope)
        falls = factor in ("n", "n and σ") or (factor == "ε" and row != "lkjo22-3")
        assert one["excess"] == pytest.approx(1 - slope if falls else slope - 1)
    # Factors that have no part in what was changed are as before: those of other rows all are.
    others = [r for (name, _), r in found.items() if name != row]
    assert all(r["excess"] < 1e-6 for r in others)


def test_a_slope_that_could_not_be_fitted_has_no_excess():
    assert report.excess(None, True) is report.excess(None, False) is None


def test_the_factors_of_a_bound_are_those_of_its_items():
    found = {c["id"]: c for c in claims.read(ROOT / "papers/dppower/claims.yaml")["items"]}
    for row, (algorithm, factors) in report.FACTORS.items():
        readings = [reading["cells"]["error"] for reading in found[f"table1-{row}"]["readings"]]
        assert {cell["select"]["where"]["row"] for cell in readings} == {row}
        named = [name for cell in readings for name in cell["select"]["where"]["factor"]]
        assert set(named) == set(factors)
        assert algorithm == ALGORITHMS[row]


def test_the_factors_of_gaussian_rows_are_those_of_the_item_and_in_the_plan():
    found = {c["id"]: c for c in claims.read(ROOT / "papers/dppower/claims.yaml")["items"]}
    plan = load_plan({"papers": ["dppower"]})
    made = {(c.experiment, c.name.removeprefix(f"{c.problem}-")) for c in plan.cells_of("dppower")}
    for row, (algorithm, factors) in report.GAUSSIAN.items():
        where = found[f"table1-{row}"]["readings"][0]["cells"]["error"]["select"]["where"]
        assert set(where["factor"]) == set(factors) and algorithm == ALGORITHMS[row]
        assert {cells[:2] for factor in factors.values() for cells in factor.cells} <= made


def test_a_factor_of_which_only_one_cell_was_run_has_no_rows(folder):
    results = made(folder, PRINTED)
    left = by_factor(report.factors(without(results, "samples", "entry_gap")))
    gone = {("hr13", "n and σ"), ("hr13", "gap"), ("dn26", "gap"), ("lkjo22-3", "n")}
    every = {(row, name) for row, (_, factors) in report.FACTORS.items() for name in factors}
    assert set(left) == every - gone
    assert report.factors(without(results, *results.plan["experiments"])) == []


def test_every_cell_of_a_factor_is_in_the_plan():
    run = {(row, cell.experiment, variant, cell.problem) for row, variant, cell, _ in settings()}
    for row, (_, factors) in report.FACTORS.items():
        for experiment, variant, problems in (c for f in factors.values() for c in f.cells):
            found = {key[3] for key in run if key[:3] == (row, experiment, variant)}
            assert found and found >= set(problems or ())


def test_the_coherence_of_rows_is_that_of_their_carriers():
    assert (report.coherence({}), report.coherence({"carriers": 0.25})) == (1.0, 4.0)
