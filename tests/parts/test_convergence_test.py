"""The residual test against the exact eigenspace, for every algorithm that has it."""

from __future__ import annotations

import re
import warnings

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import fedcore
from fedcore.federation.ledger import Shape
from fedcore.parts.convergence_test import TOL, ConvergenceTest, by_ritz_values

TESTED = ["block_krylov", "momentum_power", "ssi"]
with_a_test = pytest.mark.parametrize("name", TESTED)


def split(matrix: np.ndarray, parts: int = 4) -> list[np.ndarray]:
    return np.array_split(matrix, parts)


def angle(basis: np.ndarray, matrix: np.ndarray) -> float:
    """Sine of the largest angle to the leading right singular vectors, by NumPy."""
    exact = np.linalg.svd(matrix, full_matrices=False)[2][: basis.shape[1]].T
    return float(np.linalg.norm(exact - basis @ (basis.T @ exact), 2))


@with_a_test
@pytest.mark.parametrize("tol", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize(
    "sigma",
    [
        pytest.param(0.8 ** np.arange(40), id="geometric"),
        pytest.param(1 / np.arange(1, 41), id="harmonic"),
        pytest.param(np.linspace(3, 1, 40), id="arithmetic"),
        pytest.param(np.repeat([9.0, 5.0, 1.0], [2, 2, 36]), id="repeated"),
        pytest.param(np.r_[5.0, 4, 3, 2, np.zeros(36)], id="low rank"),
    ],
)
def test_a_run_ends_when_the_angle_is_below_the_tolerance(name, tol, sigma, matrix_with):
    S = matrix_with(120, 40, sigma, seed=3)
    found = fedcore.run(name, split(S), 4, tol=tol, rounds=2000, measure=["subspace_distance"])
    assert found.output["converged"]
    assert angle(found.components.T, S) <= tol
    assert found.ledger.rounds < 2000
    # Not long after it could have: the test sees what was sent, the iterate is a step ahead.
    distances = found.history["subspace_distance"]
    assert distances[max(len(distances) - 8, 0) :].max() > tol * 1e-3 or len(distances) < 8


@with_a_test
def test_a_tolerance_changes_the_end_and_nothing_else(name, clients):
    S = np.vstack(clients)
    whole = fedcore.run(name, clients, 3, rounds=30, measure=["subspace_distance"], tol=0)
    cut = fedcore.run(name, clients, 3, rounds=30, measure=["subspace_distance"], tol=1e-6)
    records = len(cut.history["round"])
    assert records < len(whole.history["round"])
    for column, values in cut.history.items():
        np.testing.assert_array_equal(values, whole.history[column][:records])
    assert set(cut.output) - set(whole.output) == {"converged", "angle_estimate", "ritz_edge"}
    sigma = np.linalg.svd(S)[1]
    np.testing.assert_allclose(cut.output["ritz_edge"], sigma[2:4] ** 2, rtol=1e-3)


@with_a_test
def test_rounds_that_run_out_are_told_of(name, matrix_with):
    S = matrix_with(120, 40, np.linspace(3, 2.9, 40), seed=4)
    with pytest.warns(fedcore.ConvergenceWarning, match="not converged in 3 rounds"):
        found = fedcore.run(name, split(S), 3, tol=1e-8, rounds=3)
    assert not found.output["converged"]
    with warnings.catch_warnings():  # who stops a run, or asks for no test, is not told
        warnings.simplefilter("error")
        fedcore.run(name, split(S), 3, tol=1e-8, rounds=9, stop=lambda row: row["round"] == 2)
        fedcore.run(name, split(S), 3, tol=0, rounds=3)


@with_a_test
@pytest.mark.parametrize(
    "sigma",
    [
        pytest.param(np.r_[9.0, 5, 5, np.linspace(1, 0.1, 17)], id="equal"),
        pytest.param(np.r_[9.0, 5, 5 * (1 - 1e-14), np.linspace(1, 0.1, 17)], id="nearly equal"),
        pytest.param(np.r_[9.0, np.zeros(19)], id="rank too low"),
    ],
)
def test_a_subspace_that_the_data_do_not_determine_is_told_of(name, sigma, matrix_with):
    S = matrix_with(80, 20, sigma, seed=5)
    with pytest.warns(fedcore.ConvergenceWarning, match="singular values 2 and 3 ") as told:
        found = fedcore.run(name, split(S), 2, tol=1e-8, rounds=300)
    # Where nothing better is to be had; momentum's rate is that of 1/k where λ₂ = λ₃ > 0.
    assert found.output["converged"] == ("as good as equal" in str(told[0].message))
    assert found.output["converged"] or (name == "momentum_power" and sigma[1])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 2), min_size=2, max_size=5), st.integers(1, 4), st.integers(0, 99),
    st.sampled_from(TESTED), st.integers(0, 1), st.sampled_from([1, 2, 40]),
)  # fmt: skip
def test_no_warning_shows_a_value_that_does_not_exist(sizes, r, seed, name, more, rounds):
    """Where singular values are equal or zero, a run may never see the next one."""
    S = np.vstack([np.diag(np.array(sizes, dtype=float))] * 2)
    if not S.any():
        return
    r = min(r, len(sizes))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        fedcore.run(name, split(S, 2), r, seed=seed, n_oversamples=more, rounds=rounds)
    for warning in said:
        assert not re.search(r"\b(nan|inf|None)\b", str(warning.message)), warning.message


@with_a_test
def test_a_column_more_is_charged_and_finds_what_equal_values_hide(name, matrix_with):
    sigma = np.r_[9.0, 5, 5 * (1 - 1e-9), np.linspace(1, 0.1, 17)]
    S = matrix_with(80, 20, sigma, seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = fedcore.run(name, split(S), 2, rounds=300, n_oversamples=1, iterates="last")
    assert found.ledger.scalars_up == found.ledger.rounds * 4 * 20 * 3
    assert found.components.shape == (2, 20)
    # Rounding of products is 1e-7 of a gap of 1e-9 (relative); the other direction is at 1.
    assert angle(found.components.T, S) < 100 * found.output["angle_estimate"]


def test_values_apart_are_not_called_equal_where_float32_is_what_lacks(matrix_with):
    """A gap of a fifth, and a leading value beside which float32 hardly sees it."""
    S = matrix_with(80, 20, np.r_[1e3, 5, 4, np.linspace(1, 0.1, 17)], seed=5)
    with pytest.warns(fedcore.ConvergenceWarning, match="float32 data") as told:
        found = fedcore.run("block_krylov", split(S.astype(np.float32)), 2, tol=1e-8)
    assert "equal" not in str(told[0].message)
    assert 1e-3 < found.output["angle_estimate"] < 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fedcore.run("block_krylov", split(S), 2, tol=1e-8)


@with_a_test
def test_a_run_ends_by_itself_and_a_tolerance_of_zero_makes_all_rounds(name, clients):
    found, given = (fedcore.run(name, clients, 3, rounds=500, **t) for t in ({}, {"tol": TOL}))
    assert found.ledger.rounds < 200
    np.testing.assert_array_equal(found.components, given.components)
    assert fedcore.run(name, clients, 3, rounds=40, tol=0, measure=()).ledger.rounds == 40
    whole = fedcore.run(name, clients, 9, tol=1e-8)  # the whole space
    assert whole.ledger.rounds == 1 and whole.output["angle_estimate"] == 0


@with_a_test
def test_single_precision_ends_where_its_rounding_does(name, matrix_with):
    S = matrix_with(120, 40, 0.7 ** np.arange(40), seed=6)
    found = fedcore.run(name, split(S.astype(np.float32)), 3, tol=1e-12)
    assert found.output["converged"] and found.ledger.rounds < 200
    # ε = 1.2e-7 of a gap of (0.49² - 0.34²) = 0.12, and a few roundings more.
    assert angle(found.components.T.astype(float), S) < 3e-5


@pytest.mark.parametrize("share", [1e-2, 1e-4, 1e-6])
@pytest.mark.parametrize("third", [1.9, 1.45])
def test_a_column_that_turns_to_a_direction_not_yet_seen_is_waited_for(share, third):
    """One column mixes two nearly equal directions; the other one has a little of what is left."""
    G = np.diag([2.0, 2.0 - 1e-7, third, 1e-6])
    start = np.array([[1.0, share], [1.0, -share], [0.0, 1.0], [0.0, 0.0]])
    Z, test = np.linalg.qr(start)[0], ConvergenceTest(1e-2, Shape(1, 4, 4), 1)
    for _ in range(1000):
        Z, U = by_ritz_values(Z, G @ Z)
        if test.blocks(Z, U):
            break
        Z = np.linalg.qr(U)[0]
    assert np.linalg.norm(Z[1:, 0]) <= 100 * test.output()["angle_estimate"]


def test_a_slow_turn_below_the_gap_delays_nothing():
    """The next two eigenvalues are nearly equal, so that their Ritz vector turns for ever."""
    G = np.diag([2.0, 1.0, 1.0 - 1e-6, 1e-6])
    start = np.array([[1.0, 0.0], [1e-3, 1e-3], [1e-3, 1.0], [1e-3, 1e-3]])
    Z, test, rounds = np.linalg.qr(start)[0], ConvergenceTest(1e-8, Shape(1, 4, 4), 1), 0
    while rounds < 40 and not test.output()["converged"]:
        rounds += 1
        Z, U = by_ritz_values(Z, G @ Z)
        test.blocks(Z, U)
        Z = np.linalg.qr(U)[0]
    assert rounds <= 30  # 27 halvings of 1e-3 or so
