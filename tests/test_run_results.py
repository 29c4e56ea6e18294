from __future__ import annotations

import copy
import warnings

import numpy as np
import pytest

import fedcore
from fedcore import algorithms
from fedcore.problems.problem import Problem
from fedcore.problems.tasks import shared_basis
from fedcore.runs import execute


def test_a_result_holds_components_history_ledger_and_output(clients):
    result = fedcore.run("power_gd", clients, 3, local_steps=5, power=1, orthonormalise=True)
    assert result.components.shape == (3, 9)
    assert result.history["iteration"].tolist() == [0, 1, 2, 3, 4, 5]
    assert result.history["objective"].shape == (6,)
    assert result.history["bytes_up"][-1] == result.ledger.bytes_up == 2 * 4 * 9 * 3 * 8
    assert [u.shape for u in result.output["U"]] == [(len(c), 3) for c in clients]
    # The components span range(V): projecting V on them leaves rounding, relative to V's norm.
    V, P = result.output["V"], result.components
    np.testing.assert_allclose(P.T @ (P @ V), V, atol=1e-12)


@pytest.mark.parametrize("measure", [(), ("kappa",), ("subspace_distance", "exact_objective")])
def test_what_is_measured_is_what_was_asked_for(clients, measure):
    history = fedcore.run("power_exact", clients, 2, measure=measure).history
    assert set(history) - {
        "iteration", "round", "scalars_up", "scalars_down", "bytes_up", "bytes_down", "diverged",
        *algorithms.get("power_exact").columns,
    } == set(measure)  # fmt: skip


def test_integer_lists_and_a_stacked_array_are_clients_too():
    S = np.random.default_rng(0).integers(0, 9, (4, 5, 3))
    as_array = fedcore.run("power_exact", S, 2).components
    as_lists = fedcore.run("power_exact", S.tolist(), 2).components
    as_floats = fedcore.run("power_exact", list(S.astype(float)), 2).components
    np.testing.assert_array_equal(as_array, as_floats)
    np.testing.assert_array_equal(as_lists, as_floats)


def test_a_start_may_be_a_list_of_whole_numbers(clients):
    start = np.eye(9, 3, dtype=int)
    lists, floats = (
        fedcore.run("power_exact", clients, 3, start=s) for s in (start.tolist(), start * 1.0)
    )
    np.testing.assert_array_equal(lists.components, floats.components)


def test_a_seed_may_be_a_number_or_a_sequence(clients):
    number = fedcore.run("power_exact", clients, 3, seed=3).components
    sequence = fedcore.run("power_exact", clients, 3, seed=np.random.SeedSequence(3)).components
    np.testing.assert_array_equal(number, sequence)


def test_finish_joins_the_output_and_is_charged(clients):
    algorithm = algorithms.get("power_exact")
    settings = algorithm.params({"n_components": 2})

    def mean(federation, output):
        return {"total": federation.sum(lambda data, state, message: data.sum(axis=0))}

    recorder, output = execute(algorithm, Problem("p", clients), settings, 0, finish=mean)
    assert {"V", "U", "total"} <= set(output)
    # Sums in another order: rounding of entries of size one.
    np.testing.assert_allclose(output["total"], np.vstack(clients).sum(axis=0), atol=1e-13)
    assert recorder.ledger.rounds == recorder.rows[-1]["round"] + 1


@pytest.mark.parametrize(
    "exchange", [{"begin": lambda federation: None}, {"finish": lambda federation, output: 3}]
)
def test_an_exchange_that_returns_no_mapping_is_refused(clients, exchange):
    with pytest.raises(fedcore.FedcoreError, match=f"{next(iter(exchange))} must return a mapping"):
        fedcore.run("ssi", clients, 2, **exchange)


def test_results_are_compared_without_their_arrays(clients):
    result = fedcore.run("ssi", clients, 2)
    assert result == result and result != copy.deepcopy(result)
    assert result.history == result.history and result.history != copy.deepcopy(result.history)


def test_a_basis_is_taken_as_it_is_and_v_is_orthonormalised():
    basis = np.eye(4)[:, [2, 0]]
    assert shared_basis({"basis": basis, "V": np.ones((4, 2))}) is basis
    np.testing.assert_allclose(shared_basis({"V": 3 * basis}), basis, atol=1e-15)  # rounding


def test_a_result_worse_than_zero_is_told_of(clients):
    with pytest.warns(fedcore.ConvergenceWarning):
        found = fedcore.run("power_gd", clients, 3, local_steps=5, power=1)
    zero = 0.5 * np.linalg.norm(np.vstack(clients)) ** 2
    assert zero == pytest.approx(25.2, rel=1e-2) and found.history["objective"][-1] > zero
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fedcore.run("power_exact", clients, 3)
        fedcore.run("power_gd", clients, 3, local_steps=5, power=1, measure=())


@pytest.mark.parametrize("measure", [(), ("objective",), ("training_loss",)])
def test_a_result_that_is_not_finite_is_told_of(clients, measure):
    labels = [1e8 * client[:, 0] for client in clients]
    with pytest.warns(fedcore.ConvergenceWarning):
        found = fedcore.run("fedsgd_linear", clients, 2, labels=labels, measure=measure)
    assert found.history["diverged"][-1] == 1


def test_a_finish_without_a_finite_basis_is_told_of(clients):
    with pytest.warns(fedcore.ConvergenceWarning):
        found = fedcore.run(
            "ssi", clients, 2, finish=lambda _, found: {"basis": np.nan * found["basis"]}
        )
    assert found.history["diverged"][-1] == 1


def test_what_is_printed_of_a_private_result_says_what_it_claims(clients):
    result = fedcore.run("analyze_gauss", clients, 2, clip=True, epsilon=0.5, delta=1e-5)
    text = repr(result)
    assert repr(result.ledger.privacy) in text
    assert "epsilon = 0.5" in text and "delta = 1e-05, neighbours = " in text
    assert "objective (not released)" in text and "round (not released)" not in text
    public = repr(fedcore.run("analyze_gauss", clients, 2, epsilon=None))
    assert "epsilon" not in public and "released" not in public


def test_public_names_are_found_on_first_use_and_others_are_not():
    assert fedcore.Federation.__module__ == "fedcore.federation.federation"
    assert {"run", "History", "FedcoreError"} <= set(dir(fedcore))
    with pytest.raises(AttributeError):
        _ = fedcore.nothing


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("key", ["V", "extra"])
def test_what_comes_out_not_finite_is_marked_as_diverged(clients, redeclared, key, value):
    """Though every iterate that was recorded is finite."""
    real = algorithms.get("power_exact").run

    def run(*arguments):
        output = real(*arguments)
        return {**output, key: output["V"] * value}

    assert fedcore.run("power_exact", clients, 3).history["diverged"][-1] == 0
    redeclared("power_exact", run=run)
    problem = Problem("p", clients)
    algorithm = algorithms.get("power_exact")
    settings = algorithm.params({"n_components": 3})
    recorder, _ = execute(algorithm, problem, settings, 0)
    assert recorder.columns()["diverged"][-1] == 1
    assert not recorder.columns()["diverged"][:-1].any()
