"""The contract of all registered algorithms that learn a subspace; see also `test_networks`."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import numpy as np
import pytest
from contract.cases import CASES, case_of
from contract.checks import checks_of, require, settings_of

import fedcore
from fedcore import algorithms
from fedcore.errors import InputError
from fedcore.federation.in_process import InProcess
from fedcore.parts.params import describe
from fedcore.problems.clients import Clients
from fedcore.tasks import TASKS
from fedcore.testing.answers import compare_with_oracle
from fedcore.testing.asserting import ROUNDING, projection, require_close
from fedcore.testing.contract import WRONG
from fedcore.testing.samples import RANK, labels_of, starting_basis
from fedcore.testing.subject import Found, Subject

NAMES = [n for n in algorithms.names() if algorithms.get(n).task is TASKS["subspace"]]
LABELLED = [name for name in NAMES if algorithms.get(name).labelled]
SUBSPACE = [
    name for name in NAMES if name not in LABELLED
]  # approximate the top space of the samples
EXACT = [name for name in SUBSPACE if not case_of(name).asymptotic]
every_algorithm = pytest.mark.parametrize("name", NAMES)
labelled_settings = pytest.mark.parametrize(("name", "setting"), settings_of(LABELLED, case_of))


def run(name: str, clients: Any, seed: int = 5, **options: Any) -> Found:
    """Run an algorithm by the function that library and workflow share."""
    return Subject(algorithms.get(name), case_of(name)).run(clients, seed, **options)


@pytest.mark.parametrize(("check", "name", "case"), checks_of(NAMES, case_of))
def test_every_algorithm_keeps_the_contract(check, name, case):
    require(check, name, case)


# --- results ------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [s for s in case_of("faps").settings if s["rounds"]])
@pytest.mark.parametrize("wrong", ["penalty", "rounds"])
def test_a_wrong_step_is_not_taken_for_rounding(wrong, setting, clients):
    """The oracle has a penalty with an error of 1e-4, or one round too few."""
    case, start = case_of("faps"), starting_basis()
    found = run("faps", clients, start=start, **setting)
    right = found.settings
    other = dataclasses.replace(
        right,
        beta_factor=right.beta_factor * (1 + 1e-4 * (wrong == "penalty")),
        rounds=right.rounds - (wrong == "rounds"),
    )
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        compare_with_oracle(case, clients, dataclasses.replace(found, settings=other))


@pytest.mark.parametrize("name", ["fedrep_linear", "fedsgd_linear"])
def test_a_start_from_the_clients_own_solutions_needs_three_of_them(name, clients):
    with pytest.raises(InputError, match="needs at least 3 clients, got 1"):
        run(name, [np.vstack(clients)], rounds=1, init="pgd")


@pytest.mark.parametrize("name", [name for name in EXACT if not case_of(name).needs_equal_clients])
def test_a_start_that_spans_the_top_space_is_never_left(name, clients):
    S = np.vstack(clients)
    top = np.linalg.svd(S)[2][:RANK].T
    case = case_of(name)
    if case.floor is None:
        pytest.fail(f"{name}: say in CASE or in tests/contract/cases.py how it reaches the optimum")
    settings = {**case.floor(S, RANK), "start": top}
    settings |= {"power": 0} if "power" in settings else {}
    basis = run(name, clients, measure=[], **settings).basis
    # Sine of the angle: rounding for the power methods; 1e-4 for the descents, the rest after their
    # steps at a linear rate. The objective depends on its square.
    assert np.linalg.norm(top - basis @ (basis.T @ top), 2) < 1e-4


@pytest.mark.parametrize("name", SUBSPACE)
def test_labels_that_are_not_asked_for_change_nothing(name, clients):
    plain = run(name, clients, iterates="all")
    labelled = run(name, Clients(clients, labels=labels_of(clients, RANK)), iterates="all")
    assert labelled.content == plain.content and labelled.arrays == plain.arrays


@pytest.mark.parametrize("name", LABELLED)
def test_an_algorithm_that_learns_from_labels_asks_for_them(name, clients):
    with pytest.raises(InputError, match=f"{name} learns from labels and these data have none"):
        fedcore.run(name, clients, RANK)


@labelled_settings
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.in_process
def test_the_stacked_form_gives_what_the_plain_form_gives(
    name, setting, dtype, clients, monkeypatch
):
    """For clients of equal size."""
    alike = [part.astype(dtype) for part in np.split(np.vstack(clients), 8)]
    calls = []
    real = InProcess._run_stacked
    monkeypatch.setattr(
        InProcess, "_run_stacked", lambda self, *a: calls.append(1) or real(self, *a)
    )
    plain = run(name, alike, iterates="all", stack=False, **setting)
    assert not calls
    stacked = run(name, alike, iterates="all", **setting)
    assert calls
    assert stacked.ledger == plain.ledger
    tolerance = ROUNDING if dtype == np.float64 else 1e-3
    held = [
        [
            found.shared,
            *([found.output["heads"]] if "heads" in plain.output else []),
        ]
        for found in (stacked, plain)
    ]
    for ours, theirs in zip(*held, strict=True):
        assert ours.dtype == theirs.dtype
        require_close(ours, theirs, tolerance, f"{name}, stacked and plain")
    for column in ("objective", "subspace_distance"):
        np.testing.assert_allclose(
            stacked.columns[column], plain.columns[column], rtol=0, atol=100 * tolerance
        )


@every_algorithm
def test_single_precision_data_give_the_same_subspace_to_single_precision(name, clients):
    single = run(name, [client.astype(np.float32) for client in clients])
    double = run(name, clients)
    # 6e-8 per operation, times the condition number of V, below 1e3 at the defaults.
    require_close(projection(single.basis), projection(double.basis), 2e-4, "single and double")


# --- bad input ----------------------------------------------------------------------------------


def refuse(name: str, clients: Any, n_components: Any = RANK, **params: Any) -> str:
    """Return the message, one line, with which a run is refused."""
    needs = {"sigma_max": 1.0, "sigma_r": 1.0}
    fields = [field.name for field in dataclasses.fields(algorithms.get(name).module.Params)]
    known = {key: value for key, value in needs.items() if key in fields}
    with pytest.raises(InputError) as caught:
        fedcore.run(name, clients, n_components, **{**known, **params})
    message = str(caught.value)
    assert "\n" not in message
    return message


@every_algorithm
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_is_refused_with_its_place(name, value, clients):
    clients[1][4, 2] = value
    message = refuse(name, clients)
    assert f"client 1 has {value}" in message and "row 4, feature 2" in message


@every_algorithm
def test_unfit_client_data_are_refused_by_the_name_of_the_client(name, clients):
    assert "client 2 has 8 features, client 0 has 9" in refuse(
        name, [*clients[:2], clients[2][:, :8]]
    )
    assert "client 1 is empty" in refuse(name, [clients[0], np.empty((0, 9))])
    assert "client 0: expected a 2-D" in refuse(name, [clients[0][0]])
    assert "client 0: dtype <U1 is not numeric" in refuse(name, [np.full((9, 9), "a")])
    assert "client 0: dtype object is not numeric" in refuse(name, [np.full((9, 9), None)])
    assert "client 0: dtype complex128 is not numeric" in refuse(name, [np.full((9, 9), 1j)])
    assert "at least one client" in refuse(name, [])
    assert "pass [matrix]" in refuse(name, clients[0])


@every_algorithm
def test_data_that_are_all_zero_are_refused_unless_that_would_tell(name):
    """A private run may not reveal that all rows are zero: a neighbour has a non-zero row."""
    zeros = [np.zeros((30, 9)), np.zeros((30, 9))]
    if getattr(algorithms.get(name).module.Params, "epsilon", None) is not None:  # by default
        assert np.isfinite(fedcore.run(name, zeros, RANK).components).all()
    else:
        assert "zero" in refuse(name, zeros)


@every_algorithm
def test_a_rank_that_the_data_cannot_have_is_refused(name, clients):
    message = refuse(name, clients, 10)
    assert "n_components = 10" in message and "= 9" in message
    message = refuse(name, [clients[0][:2]], 3)
    assert "n_components = 3" in message and "= 2" in message
    for value in (0, -1, 2.0, "3", True, None):
        assert "n_components" in refuse(name, clients, value)


@every_algorithm
def test_a_start_that_does_not_fit_is_refused(name, clients):
    good = starting_basis()
    assert "start has shape (9, 2), expected (9, 3)" in refuse(name, clients, start=good[:, :2])
    assert "start has shape (3, 9), expected (9, 3)" in refuse(name, clients, start=good.T)
    assert "start has a missing value for the feature 0" in refuse(
        name, clients, start=good * np.nan
    )
    assert "start has rank 2" in refuse(name, clients, start=good[:, [0, 1, 1]])
    assert "start must be a list or an array" in refuse(name, clients, start="top")


@every_algorithm
def test_unknown_names_get_a_suggestion(name, clients):
    assert f"{name} has no parameter 'strat': did you mean 'start'?" in refuse(
        name, clients, strat=1
    )
    message = refuse_name(name + "x", clients)
    assert f"unknown algorithm '{name}x': did you mean '{name}'?" in message


def refuse_name(name: str, clients: list[np.ndarray]) -> str:
    with pytest.raises(InputError) as caught:
        fedcore.run(name, clients, RANK)
    return str(caught.value)


@every_algorithm
def test_every_parameter_is_declared_and_described_and_states_no_default(name):
    for known in describe(algorithms.get(name).module.Params):
        assert "default" not in known.sentence, known
        assert known.kind.startswith(tuple(WRONG)) or known.name == "start", known
    for owner in algorithms.get(name).module.Params.__mro__:
        assert "default" not in (inspect.getdoc(owner) or "") or owner is object


@every_algorithm
def test_a_missing_parameter_is_named(name):
    with pytest.raises(InputError, match=f"{name} needs the parameters? 'n_components' "):
        algorithms.get(name).params({})


def test_the_table_of_cases_names_no_algorithm_that_is_gone():
    assert set(CASES) <= set(NAMES)
