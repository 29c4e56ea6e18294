"""The contract of all registered algorithms that learn a subspace; see also `test_networks`."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import Any

import numpy as np
import pytest

import fedcore
from contract.cases import CASES, case_of
from contract.checks import checks_of, require, settings_of, usable
from fedcore import algorithms, testing
from fedcore.errors import InputError
from fedcore.federation.engine import everywhere
from fedcore.federation.engines.in_process import InProcess
from fedcore.problems.clients import Clients
from fedcore.problems.tasks import SUBSPACE
from fedcore.testing.answers import compare_with_oracle
from fedcore.testing.asserting import ROUNDING, projection, require_close
from fedcore.testing.samples import RANK, labels_of, starting_basis
from fedcore.testing.subject import FinishedRun, Subject
from refused import refused

NAMES = [known.name for known in usable() if known.task is SUBSPACE]
LABELLED = [name for name in NAMES if algorithms.get(name).labelled]
SUBSPACE = [
    name for name in NAMES if name not in LABELLED
]  # approximate the top space of the samples
EXACT = [name for name in SUBSPACE if not case_of(name).asymptotic]
every_algorithm = pytest.mark.parametrize("name", NAMES)
labelled_settings = pytest.mark.parametrize(("name", "setting"), settings_of(LABELLED, case_of))


def run(name: str, clients: Any, seed: int = 5, **options: Any) -> FinishedRun:
    """Run an algorithm by the function that library and workflow share."""
    return Subject(algorithms.get(name), case_of(name)).run(clients, seed, **options)


@pytest.mark.parametrize("name", algorithms.names())
def test_every_algorithm_can_be_imported_and_has_a_valid_case(name):
    testing.cases.case_of(algorithms.get(name))


@pytest.mark.parametrize(("check", "name", "case"), checks_of(NAMES, case_of))
def test_every_algorithm_keeps_the_contract(check, name, case):
    require(check, name, case)


# --- results ------------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", [s for s in case_of("faps").settings if s["rounds"]])
@pytest.mark.parametrize("wrong", ["penalty", "rounds"])
def test_a_wrong_step_is_not_taken_for_rounding(wrong, setting, clients):
    """The oracle has a penalty with an error of 1e-4, or one round too few."""
    subject = Subject(algorithms.get("faps"), case_of("faps"))
    options = {**setting, "start": starting_basis()}
    found = subject.run(clients, **options)
    right = found.settings
    other = dataclasses.replace(
        right,
        beta_factor=right.beta_factor * (1 + 1e-4 * (wrong == "penalty")),
        rounds=right.rounds - (wrong == "rounds"),
    )
    with pytest.raises(AssertionError):
        changed = dataclasses.replace(found, settings=other)
        compare_with_oracle(subject, clients, changed, **options)


@pytest.mark.parametrize(
    "name", [n for n in EXACT if case_of(n).floor and not case_of(n).needs_equal_clients]
)
def test_a_start_that_spans_the_top_space_is_never_left(name, clients):
    S = np.vstack(clients)
    top = np.linalg.svd(S)[2][:RANK].T
    settings = {**case_of(name).floor(S, RANK), "start": top}
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


@labelled_settings
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.in_process
def test_the_stacked_form_gives_what_the_plain_form_gives(name, setting, dtype, clients):
    """For clients of equal size."""
    alike = [part.astype(dtype) for part in np.split(np.vstack(clients), 8)]
    with everywhere(partial(InProcess, plain=True)):
        plain = run(name, alike, iterates="all", **setting)
    stacked = run(name, alike, iterates="all", **setting)
    assert stacked.ledger == plain.ledger
    tolerance = ROUNDING if dtype == np.float64 else 1e-3
    held = [[found.shared, *found.output.get("heads", [])] for found in (stacked, plain)]
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


GOOD = starting_basis()
HOLE = np.where(np.arange(45).reshape(5, 9) == 38, np.nan, 1.0)
WRONG_CALLS = {  # of every method: clients, and other parameters; more: test_federation
    "NaN": ({1: HOLE}, {}, "client 1 has NaN", "row 4, feature 2"),
    "fewer features": ({2: np.ones((5, 8))}, {}, "client 2 has 8 features"),
    "no samples": ({1: np.empty((0, 9))}, {}, "client 1 is empty"),
    "a rank above both": ({}, {"n_components": 10}, "n_components = 10", "= 9"),
    **{f"rank {value!r}": ({}, {"n_components": value}, "n_components")
       for value in (0, -1, 2.0, "3", True, None)},
    "a narrow start": ({}, {"start": GOOD[:, :2]}, "start", "(9, 2)", "(9, 3)"),
    "a start on its side": ({}, {"start": GOOD.T}, "start", "(3, 9)"),
    "a start of NaN": ({}, {"start": GOOD * np.nan}, "start", "missing value"),
    "a start of rank 2": ({}, {"start": GOOD[:, [0, 1, 1]]}, "start has rank 2"),
    "a name for a start": ({}, {"start": "top"}, "start", "array"),
    "no parameter": ({}, {"strat": 1}, "'strat'", "'start'"),
}  # fmt: skip


@every_algorithm
@pytest.mark.parametrize("wrong", WRONG_CALLS)
def test_what_every_method_refuses(name, wrong, clients):
    changes, params, *names = WRONG_CALLS[wrong]
    clients = [changes.get(i, own) for i, own in enumerate(clients)]
    needs = {k: 1.0 for k in ("sigma_max", "sigma_r") if algorithms.get(name).takes(k)}
    given = {"n_components": RANK, **needs, **params}
    refused(lambda: fedcore.run(name, clients, **given), InputError, *names)


@pytest.mark.parametrize("name", LABELLED)
def test_what_methods_that_learn_from_labels_refuse(name, clients):
    refused(lambda: fedcore.run(name, clients, RANK), InputError, name, "labels")
    if algorithms.get(name).takes("init"):  # a start from the clients' own solutions
        one = partial(run, name, [np.vstack(clients)], rounds=1, init="pgd")
        refused(one, InputError, "at least 3 clients")


@every_algorithm
def test_data_that_are_all_zero_are_refused_unless_that_would_tell(name):
    """A private run may not reveal that all rows are zero: a neighbour has a non-zero row."""
    zeros = [np.zeros((30, 9)), np.zeros((30, 9))]
    needs = {k: 1.0 for k in ("sigma_max", "sigma_r") if algorithms.get(name).takes(k)}
    call = partial(fedcore.run, name, zeros, RANK, **needs)
    if getattr(algorithms.get(name).parameters, "epsilon", None) is not None:  # by default
        assert np.isfinite(call().components).all()
    else:
        refused(call, InputError, "zero")


def test_the_table_of_cases_names_no_algorithm_that_is_gone():
    assert set(CASES) <= set(NAMES)
