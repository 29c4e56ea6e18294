"""Tables of `fedpower` on tiny results, and its claims on curves that are made up."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from reports.folder import Folder
from scipy import stats

from fedcore.history import History
from fedcore.reports.papers import fedpower as report

PARAMS = {"n_components": 3, "target": 2, "iterations": 6, "delta": 1e-4}


@pytest.fixture
def unit_clients():
    rng = np.random.default_rng(4)
    clients = [rng.standard_normal((60, 8)) * [5, 4, 1, 1, 1, 1, 1, 1] for _ in range(5)]
    return [c / np.linalg.norm(c, axis=1, keepdims=True) for c in clients]


@pytest.fixture
def folder(tmp_path, unit_clients):
    metrics = ["projection_distance", "misalignment"]
    folder = Folder(tmp_path, "fedpower", PARAMS, metrics)
    folder.add_problem("model1", unit_clients)
    return folder


def made_up(distance, **columns):
    """History of curves, one per repeat, with a communication per record."""
    distance = np.atleast_2d(distance)
    rounds = np.tile(np.arange(distance.shape[1]), (len(distance), 1))
    return History(
        {"iteration": rounds, "round": rounds, "projection_distance": distance, **columns}
    )


def claim(results, name, experiment="fig3"):
    rows = (report.decay_claims if experiment == "decay" else report.panel_claims)(results)
    (row,) = (r for r in rows if (r["experiment"], r["claim"]) == (experiment, name))
    return row


PANEL = {
    "default": [1.0, 0.6, 0.3, 0.11, 0.1],
    "p1": [1.0, 0.9, 0.6, 0.3, 0.11, 0.1],
    "p4": [1.0, 0.3, 0.11],
    "eps1": [1.0, 0.5, 0.2, 0.06, 0.05],
    "eps10": [1.0, 0.4, 0.1, 0.02, 0.01],
    "K20": [1.0, 0.7, 0.4, 0.2, 0.12],
    "K12": [1.0, 0.7, 0.4, 0.2, 0.14],
    "K8": [1.0, 0.7, 0.4, 0.2, 0.17],
    "K8-once": [1.0, 0.7, 0.4, 0.2, 0.16],
}
VARIED = {
    "p1": {"local_steps": 1},
    "p4": {"local_steps": 4},
    "eps1": {"epsilon": 1.0},
    "eps10": {"epsilon": 10.0},
    "K20": {"participants": 20},
    "K12": {"participants": 12},
    "K8": {"participants": 8},
    "K8-once": {"participants": 8, "replacement": False},
}


def results_of(folder, curves):
    for experiment in report.FIGURES:
        for variant, curve in curves.items():
            history, params = made_up(curve), VARIED.get(variant, {})
            folder.add(experiment, "fedpower", "model1", variant, history=history, params=params)
    return folder.results()


def test_claims_that_the_curves_bear_out(folder):
    results = results_of(folder, PANEL)
    for name in ("larger-p-wins", "larger-eps-wins", "larger-K-wins", "K-matters-little"):
        assert claim(results, name)["holds"], name
    assert claim(results, "larger-p-wins")["ratio"] == pytest.approx(0.6 / 0.9)
    assert claim(results, "K-matters-little")["ratio"] == pytest.approx(0.17 / 0.12)
    assert claim(results, "K-matters-little-all")["ratio"] == pytest.approx(1.6)
    assert not claim(results, "K-matters-little-all")["holds"]


@pytest.mark.parametrize(
    ("variant", "curve", "name"),
    [
        ("p4", [1.0, 0.59, 0.31], "larger-p-wins"),  # behind p = 2 at the second communication
        ("eps1", [1.0, 0.5, 0.2, 0.1, 0.099], "larger-eps-wins"),  # no clear step
        ("K12", [1.0, 0.7, 0.4, 0.2, 0.18], "larger-K-wins"),
        ("K8", [1.0, 0.7, 0.4, 0.2, 0.19], "K-matters-little"),
    ],
)
def test_claims_that_one_curve_spoils(folder, variant, curve, name):
    assert not claim(results_of(folder, {**PANEL, variant: curve}), name)["holds"]


def test_no_claim_holds_where_nothing_is_found(folder):
    flat = {variant: [1.0] * (len(curve) - 1) + [0.99] for variant, curve in PANEL.items()}
    rows = report.panel_claims(results_of(folder, flat))
    assert len(rows) == 15 and not any(row["holds"] for row in rows)


def test_runs_are_read_from_histories(folder):
    params = {"participants": 3, "local_steps": 3, "epsilon": 40.0, "calibration": "tight"}
    made = {
        experiment: folder.add(experiment, "fedpower", "model1", "K3", params=params)
        for experiment in (*report.FIGURES, "calibration")
    }
    rows = report.runs(folder.results())
    assert [(row["experiment"], row["repeat"]) for row in rows] == list(product(made, range(2)))
    for row in rows:
        assert (row["p"], row["share"], row["epsilon"], row["rounds"]) == (3, 0.6, 40.0, 3)
        assert row["epsilon_spent"] == pytest.approx(40.0, rel=1e-6)
        assert row["distance"] == made[row["experiment"]].last("projection_distance")[row["repeat"]]


def test_the_noise_table_predicts_what_is_measured(folder, unit_clients):
    """A small noise on a clear gap: the floor is that of the formula, to the spread of a norm."""
    for epsilon in (300.0, 3000.0):
        folder.add(
            "calibration", "fedpower", "model1", f"tight-{epsilon:g}", repeats=10,
            params={"epsilon": epsilon, "calibration": "tight", "iterations": 12, "local_steps": 1},
        )  # fmt: skip
    S = np.vstack(unit_clients)
    eigenvalues = np.linalg.eigvalsh(S.T @ S / len(S))[::-1]
    for row in report.noise(folder.results()):
        assert row["sigma_k"] == pytest.approx(eigenvalues[1])
        assert row["sigma_next"] == pytest.approx(eigenvalues[2])
        norm = row["nu"] * (np.sqrt(8) + np.sqrt(3)) / np.sqrt(5)
        assert row["noise_norm"] == pytest.approx(norm)
        assert 0.4 < row["measured"] / row["predicted"] < 1.3


def test_the_norm_of_averaged_noise_is_the_stated_one():
    """(√d + √r) ν/√m bounds the mean norm of a Gaussian d×r matrix, and is near it."""
    rng = np.random.default_rng(0)
    d, r, m, nu = 200, 3, 7, 0.3
    norms = [np.linalg.norm(nu * rng.standard_normal((m, d, r)).mean(axis=0), 2) for _ in range(50)]
    stated = nu * (np.sqrt(d) + np.sqrt(r)) / np.sqrt(m)
    assert 0.9 * stated < np.mean(norms) <= stated


def test_calibrations_split_into_their_factors():
    rows = report.calibrations()
    assert max(row["share_paper"] for row in rows) <= 1
    for row in rows:
        product = row["from_sensitivity"] * row["from_conversion"]
        assert row["ratio"] == pytest.approx(product) and row["ratio"] > 1


def test_misalignments_and_decays_have_a_row_per_repeat(folder):
    for alignment in ("none", "procrustes"):
        folder.add(
            "alignment", "fedpower", "model1", f"{alignment}-p4",
            params={"epsilon": None, "alignment": alignment, "schedule": "constant",
                    "local_steps": 3},
        )  # fmt: skip
    rows = report.misalignments(folder.results())
    assert [(row["alignment"], row["p"], row["repeat"]) for row in rows] == [
        ("none", 3, 0), ("none", 3, 1), ("procrustes", 3, 0), ("procrustes", 3, 1),
    ]  # fmt: skip
    assert all(0 < row["misalignment"] < 2 for row in rows)


def decay_results(folder, **changes):
    falling = np.geomspace(1.0, 1e-6, 31)
    stalled = np.maximum(falling, 0.01)
    curves = {
        "constant-1": falling,
        "constant-4": np.r_[1.0, 0.5, stalled[2:]],
        "constant-8": np.r_[1.0, 0.4, stalled[2:]],
        "linear-8": falling,
        "halving-8": falling,
    } | changes
    for variant, curve in curves.items():
        schedule, p = variant.split("-")
        folder.add(
            "decay", "fedpower", "model1", variant, history=made_up([curve, curve]),
            params={"schedule": schedule, "local_steps": int(p)},
        )  # fmt: skip
    return folder.results()


def test_claims_of_local_power(folder):
    results = decay_results(folder)
    for name in ("constant-stalls", "decay-goes-on", "larger-p-first"):
        assert claim(results, name, "decay")["holds"], name
    assert claim(results, "decay-goes-on", "decay")["ratio"] == pytest.approx(1e4)


@pytest.mark.parametrize(
    ("variant", "name"),
    [
        ("constant-4", "constant-stalls"),
        ("halving-8", "decay-goes-on"),
        ("constant-8", "larger-p-first"),
    ],
)
def test_claims_of_local_power_that_one_curve_spoils(folder, variant, name):
    curve = np.r_[1.0, 0.9, np.linspace(0.5, 0.02, 29)]
    assert not claim(decay_results(folder, **{variant: curve}), name, "decay")["holds"]


def test_the_least_errors_are_those_of_the_definition():
    """Every point of the curve obeys both inequalities of (ε, δ)-DP, one of them as an equality."""
    missed, alarms = report.least_errors(0.7, 0.01)
    slack = np.minimum(
        np.exp(0.7) * alarms + 0.01 - (1 - missed), np.exp(0.7) * missed + 0.01 - (1 - alarms)
    )
    assert (slack >= -1e-12).all() and np.abs(slack[alarms > 0]).max() < 1e-12


def test_error_rates_of_made_up_scores():
    rng = np.random.default_rng(0)
    zero = np.zeros((2000, 1), int)
    pair = [
        History({"iteration": zero, "canary": rng.normal(mean, 1, (2000, 1))}) for mean in (3, 0)
    ]
    missed, alarms = report.error_rates(*pair)
    area = np.trapezoid(missed[::-1], alarms[::-1])  # P(score with < score without)
    assert area == pytest.approx(stats.norm.cdf(-3 / np.sqrt(2)), abs=0.004)  # 4 standard errors


def test_claims_of_theorem_8(folder):
    """ρ by record, twice; growth is that of the last record, the gain that of the largest."""
    rho = {("none", 4): [0, 0.5, 0.2], ("none", 16): [0, 1.6, 0.6],
           ("procrustes", 4): [0, 0.3, 0.2], ("procrustes", 16): [0, 0.4, 0.21]}  # fmt: skip
    for (alignment, p), values in rho.items():
        history = made_up([[1.0, 0.5, 0.1]] * 2, misalignment=np.array([values] * 2, float))
        folder.add(
            "alignment", "fedpower", "model1", f"{alignment}-p{p}", history=history,
            params={"alignment": alignment, "local_steps": p},
        )  # fmt: skip
    rows = {row["claim"]: row for row in report.alignment_claims(folder.results())}
    assert rows["growth-none"]["ratio"] == pytest.approx(3.0) and rows["growth-none"]["holds"]
    assert rows["growth-procrustes"]["ratio"] == pytest.approx(1.05)
    assert rows["growth-procrustes"]["holds"]
    assert rows["alignment-helps"]["ratio"] == pytest.approx(0.25)
    assert rows["alignment-helps"]["holds"]
