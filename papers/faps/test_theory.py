"""Theorem 8 of `faps`: its assumption on the data of the experiment, its lemmas, and the table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from faps import tables as report
from faps import theory
from fedcore import algorithms
from fedcore.files.strict_yaml import read_yaml
from fedcore.generators import spiked_rows
from fedcore.problems.problem import Problem
from fedcore.repro.plan.plan import load_plan
from fedcore.runs import execute
from folder import Folder

PAPER = read_yaml(Path(__file__).with_name("experiments.yaml"))
DATA = PAPER["problems"]["small"]["params"]
(RUN,) = PAPER["experiments"]["theorem8"]["runs"]
RULE = PAPER["experiments"]["theorem8"]["params"]
WIDTH = PAPER["problems"]["small"]["defaults"]["n_components"]


def clients_of(seed):
    return spiked_rows.generate(np.random.default_rng(seed), **DATA)


def after(rounds, clients, variant="assumption", start=None, **options):
    """Return the output of FAPS as the experiment runs it, after some rounds."""
    params = RULE | RUN["variants"][variant] | {"rounds": rounds}
    settings = algorithms.get("faps").params({"n_components": WIDTH, "start": start, **params})
    return execute(algorithms.get("faps"), Problem("small", clients), settings, 5, **options)[1]


def projection(X):
    return X @ X.T


def apart(X, Z):
    return np.linalg.norm(projection(X) - projection(Z))


def penalties(clients, variant):
    """β of every client, by the definition of `beta_factor` in the Frobenius norm."""
    factor = RUN["variants"][variant]["beta_factor"]
    return np.array([factor * np.sum(data**2) for data in clients])


def omega(p, d, rho, delta, c1=theory.C1, c1_prime=1.0):
    """ω of Appendix B, and the limit of δ in Assumption 6 (i)."""
    low = np.sqrt(1 - 1 / (2 * rho * d))
    needed = max(
        c1_prime,
        12 * rho * d * np.sqrt(p) / (c1 * low**2),
        4 * np.sqrt(2) * (1 + np.sqrt(2 * rho * d)) / (low - 2 * np.sqrt(rho * d) * delta),
        16 * rho * d * np.sqrt(p),
        4 * (1 + np.sqrt(2 * rho * d)) / (c1 * low**2 * rho * d),
    )
    return needed, low / (2 * np.sqrt(rho * d))


@pytest.mark.parametrize("seed", range(10))
def test_the_experiment_fulfils_assumption_6(seed):
    clients = clients_of(seed)
    betas = penalties(clients, "assumption")
    rho, total = betas.max() / betas.min(), np.sum(np.vstack(clients) ** 2)
    needed, most = omega(WIDTH, len(clients), rho, RULE["delta"])
    assert RULE["delta"] < most
    assert rho == pytest.approx(1)
    assert betas.min() > needed * total


def test_the_experiment_is_made_of_what_these_tests_look_at():
    cells = load_plan({"papers": ["faps"]}, answers=lambda _: True).cells.values()
    found = {cell.name: cell for cell in cells if cell.experiment == "theorem8"}
    assert set(found) == {"small-assumption"}
    for variant, own in RUN["variants"].items():
        cell = found[f"small-{variant}"]
        assert cell.params == {"n_components": WIDTH} | RULE | own
        assert (cell.repeats, cell.iterates) == (PAPER["problems"]["small"]["draws"], "all")


def lagged(clients, rounds):
    """Yield (k, Z, the old Xᵢ, the new Xᵢ, the new Z) of rounds k + 1, from the outputs of FAPS."""
    outputs = {k: after(k, clients) for k in sorted({*rounds, *(k + 1 for k in rounds)})}
    for k in rounds:
        old, new = outputs[k], outputs[k + 1]
        yield k, old["basis"], old["X"], new["X"], new["basis"]


@pytest.mark.parametrize("seed", range(3))
def test_the_rounds_fulfil_13_and_14_and_keep_22(seed):
    """With c₁ of `C1` and c₁' = 1; in the first round Xᵢ = Z is stationary, and both are 0 ≥ 0."""
    clients = clients_of(seed)
    betas = penalties(clients, "assumption")
    for k, Z, old, new, _ in lagged(clients, [1, 2, 3, 5, 10, 30, 100, 300, 1000]):
        for data, beta, X, found in zip(clients, betas, old, new, strict=True):
            G = data.T @ data
            W = -(np.eye(len(G)) - projection(X)) @ G @ X
            H = G + X @ W.T + W @ X.T + beta * projection(Z)
            first, last = (
                np.linalg.norm((np.eye(len(H)) - projection(B)) @ H @ B) for B in (X, found)
            )
            gained = (np.trace(found.T @ H @ found) - np.trace(X.T @ H @ X)) / 2
            rounding = 1e-13 * beta
            least = theory.C1 / (np.linalg.norm(data, 2) ** 2 + beta) * first**2
            assert last <= RULE["delta"] * first + rounding, k
            assert gained >= least - rounding, k
            assert first > 1e3 * rounding or k > 100  # so that the two say something
            assert apart(X, Z) ** 2 <= 1 / len(clients)


class One(Folder):
    """Results of the experiment with fewer rounds, from the problem `small`."""

    def run(self, clients, variant, rounds):
        params = RULE | RUN["variants"][variant] | {"rounds": rounds}
        self.add_problem("small", clients)
        self.add("theorem8", "faps", "small", variant, params=params, iterates="all", repeats=1)
        return self.results()


@pytest.fixture
def folder(tmp_path):
    return One(tmp_path, "faps", {"n_components": WIDTH}, ["kkt_residual"])


def test_the_distances_are_bounded_by_the_movement_of_z(folder):
    """The true dᵢ stay below, from the same start, and not by orders of magnitude."""
    clients = clients_of(4)
    (run,) = folder.run(clients, "assumption", 300).runs("theorem8")
    bound = theory.bases_apart(run, run.history.reference["singular_values"][:1] ** 2)[0]
    start = run.history.iterates["shared"][0, 0]
    for k in (2, 3, 5, 20, 100, 300):
        output = after(k, clients, start=start)
        assert output["basis"] == pytest.approx(run.history.iterates["shared"][0, k], abs=1e-9)
        true = max(apart(X, output["basis"]) for X in output["X"])
        assert 0 < true <= bound[k] <= 1000 * true


@pytest.mark.parametrize("seed", range(3))
def test_the_descent_of_the_server_is_at_least_that_of_the_constant(seed):
    """Lemma 12 with the c₂ of `constant`, from the messages' Q; and (33) with its factor."""
    clients = clients_of(seed)
    betas, d = penalties(clients, "assumption"), len(clients)
    tops = [np.linalg.norm(data, 2) ** 2 for data in clients]
    a, b = max(tops), betas.sum()
    c2 = ((1 - 1 / (2 * d)) * b - d * a) / (2 * (b + d * a / 2) ** 2)
    factor = theory.shrinking(d, betas[0], max(tops), RULE["delta"])
    for _, Z, old, new, after_it in lagged(clients, [1, 2, 5, 30, 200]):
        Q = np.zeros((len(Z), len(Z)))
        for data, beta, X in zip(clients, betas, new, strict=True):
            W = -(np.eye(len(Z)) - projection(X)) @ data.T @ data @ X
            Q += beta * projection(X) - X @ W.T - W @ X.T
        descent = (np.trace(after_it.T @ Q @ after_it) - np.trace(Z.T @ Q @ Z)) / 2
        assert descent >= c2 * np.linalg.norm((np.eye(len(Z)) - projection(Z)) @ Q @ Z) ** 2
        for X, found in zip(old, new, strict=True):
            assert apart(found, Z) <= factor * apart(X, Z)


def test_the_factor_of_33_by_hand():
    """2 (100 + 20) / (√2 √0.75 1000 − 40) for d = 2, β = 1000, ‖Aᵢ‖₂² = 5 and δ = 0.1."""
    found = theory.shrinking(2, np.array([1000.0]), np.array([5.0]), 0.1)
    assert found == pytest.approx(240 / (np.sqrt(1.5) * 1000 - 40))


def test_the_constant_is_the_one_of_the_proof():
    """Written out once more for d = 2, β = 1000 and ‖Aᵢ‖₂² = 5."""
    d, beta, a = 2, 1000.0, 5.0
    c4 = theory.C1 * 0.75 * beta / 4 - 3 / 2 * a
    c2 = (0.75 * 2000 - 10) / (2 * 2005**2)
    c3 = (2 * (beta + 4 * a) / np.sqrt(2 * d * c4) + np.sqrt(1 / c2)) ** -2
    start = 2 * (a / 2 + a**2 / (8 * beta))
    found = theory.constant(d, np.array([beta]), np.array([a]))
    assert found == pytest.approx(start / c3 + start / c4)


def test_the_row_of_a_run_under_the_assumption(folder):
    (row,) = report.TABLES["theorem_8"].rows(folder.run(clients_of(7), "assumption", 4000))
    assert row["residual"] < 1e-5
    assert 0 < row["share"] < 1


def test_n_times_the_least_by_hand(folder):
    """Residuals 1, 1/2, 1 and 1/4 of ‖A‖₂² = 4 and resting Z: 16, 8, 12 and 4."""
    (run,) = folder.run(clients_of(1), "assumption", 3).runs("theorem8")
    run.history.columns["kkt_residual"] = np.array([[1.0, 0.5, 1.0, 0.25]])
    run.history.reference["singular_values"] = np.array([2.0, 1.0])
    run.history.iterates["shared"][:] = run.history.iterates["shared"][:, :1]
    (row,) = run.rows(**theory.shares(run))
    assert (row["largest"], row["residual"]) == (16, 0.25)


def test_a_run_that_failed_has_no_share(folder):
    (run,) = folder.run(clients_of(1), "assumption", 2).runs("theorem8")
    run.history.columns["kkt_residual"] = np.array([[1.0, 0.5, np.nan]])
    (row,) = run.rows(**theory.shares(run))
    assert np.isnan(row["share"])
