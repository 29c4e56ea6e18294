"""What a private run has released, what it has not, and that stop rules read the former only."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial

import h5py
import numpy as np
import pytest

import cells
import fedcore
from commands import call
from fedcore import algorithms
from fedcore.errors import ConfigError, ConvergenceWarning, InputError
from fedcore.experiments.cell import Cell
from fedcore.experiments.repeats import run_cell
from fedcore.history import History
from fedcore.iterates import ExplicitFactors
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.recorder import COLUMNS
from fedcore.reports import comparison
from fedcore.repro.plan.plan import check_cell
from fedcore.stop_rules import StopRules
from refused import refused

COUNTS = {"iteration", "round", "scalars_up", "scalars_down", "bytes_up", "bytes_down", "diverged"}


def cell(**changes) -> Cell:
    given = {"algorithm": "adaptive_power", "params": {"n_components": 1, "rounds": 2}, **changes}
    return cells.cell(**{"repeats": 2, "metrics": ["sin_squared"], **given})


@pytest.fixture
def problem_file(rows, tmp_path):
    storage.save(Problem("x", [rows]), tmp_path / "x.h5")
    return tmp_path / "x.h5"


# --- stop rules ---------------------------------------------------------------------------------


def test_a_stop_rule_cannot_tell_neighbours_apart_by_an_exact_measure(rows):
    """One record on one data set and never one on the other, for ε = 0: refused at once."""
    for stop in (
        lambda row: row["objective"] < 20.0,
        lambda row: row.get("objective") < 20.0,
        StopRules({"objective": {"at_most": 20.0}}),
    ):
        call = partial(fedcore.run, "fedpower", [rows], 2, stop=stop)
        refused(call, InputError, "'objective'", "not released", "bytes_down")
    fedcore.run(
        "fedpower", [rows], 2, epsilon=None, stop=StopRules({"objective": {"at_most": 20.0}})
    )


def test_an_exact_count_of_the_algorithm_is_no_rule_either_and_its_threshold_is(rows):
    seen = []

    def look(row):
        seen.append(dict(row))
        assert "filtered" not in row and row.get("no such thing", 7) == 7
        refused(lambda: row["filtered"], InputError)
        with pytest.raises(KeyError):
            row["no such thing"]
        return row["threshold"] > 0

    result = fedcore.run("adaptive_power", [rows], 1, rounds=5, stop=look)
    assert len(result.history["round"]) == 2  # the first threshold is that of the first step
    assert set(seen[-1]) == COUNTS | {"epsilon", "threshold"}


@pytest.mark.parametrize("column", ["epsilon", "round", "bytes_up", "iteration"])
def test_a_rule_may_read_what_was_released(rows, column):
    end = fedcore.run("noisy_power", [rows], 1, rounds=4, simulate=True).history[column][2]
    stopped = fedcore.run(
        "noisy_power", [rows], 1, rounds=4, simulate=True, stop=lambda row: row[column] >= end
    )
    assert len(stopped.history[column]) == 3
    assert stopped.ledger.privacy.epsilon() < 1.0  # what was spent; the budget was 1


@pytest.mark.parametrize("name", [n for n in algorithms.names()])
def test_a_paper_cannot_ask_for_it_of_any_private_algorithm(name):
    """No list by hand: an algorithm is private when its parameters have an ε."""
    chosen = algorithms.get(name)
    params = {"n_components": 1, "sigma_max": 1.0, "sigma_r": 1.0, "model": "tiny_mlp"}
    fields = chosen.parameters.__dataclass_fields__
    params = {k: v for k, v in params.items() if k in fields}
    rule = {"objective": {"at_most": 1.0}}
    planned = Cell("p", "e", name, "x-a", "x", params, 1, ["objective"], "last", 0, stop=rule)
    if chosen.private(chosen.params(params)):
        refused(lambda: check_cell(planned, "here"), ConfigError, "stop", "'objective'")
        told = {key: {"at_most": 1.0} for key in ("epsilon", *chosen.released)}
        check_cell(replace(planned, stop=told), "here")  # what was released may be asked for
        planned.params["epsilon"] = None
    check_cell(planned, "here")


@pytest.mark.parametrize("name", algorithms.names())
def test_what_an_algorithm_declares_it_has(name):
    assert algorithms.get(name).released <= set(algorithms.get(name).columns)


def test_a_warning_shows_no_exact_measure_of_a_private_run(rows, redeclared):
    """An objective above that of a zero model is told of a run without privacy only."""

    def run(federation, params, rng, record):
        if params.epsilon is not None:
            federation.protect(delta=params.delta, neighbours="add_or_remove_one")
        V = 100.0 * np.eye(5)[:, :1]
        federation.local(lambda data, state, message: vars(state).update(U=np.ones((len(data), 1))))
        record(0, factors=ExplicitFactors(V, federation.observe))
        return {"V": V}

    redeclared("analyze_gauss", run=run)
    with pytest.warns(ConvergenceWarning, match="larger than the"):
        fedcore.run("analyze_gauss", [rows], 1, epsilon=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fedcore.run("analyze_gauss", [rows], 1)


# --- marks --------------------------------------------------------------------------------------


def test_a_result_says_which_columns_were_released(rows):
    result = fedcore.run("adaptive_power", [rows], 1, measure=("sin_squared", "objective"))
    assert result.released == COUNTS | {"epsilon", "threshold"}
    assert set(result.history) - result.released == {"sin_squared", "objective", "filtered"}
    for other in (fedcore.run("adaptive_power", [rows], 1, epsilon=None),
                  fedcore.run("power_exact", [rows], 1)):  # fmt: skip
        assert other.released is None


def test_a_history_and_its_file_say_it_too(problem_file, tmp_path):
    written = run_cell(cell(), problem_file, tmp_path / "a.h5")
    read = History.load(tmp_path / "a.h5")
    assert written.released == read.released == COUNTS | {"epsilon", "threshold"}
    with h5py.File(tmp_path / "a.h5") as file:
        marks = {name: data.attrs["privacy"] for name, data in file["history"].items()}
        answers = {data.attrs["privacy"] for data in file["reference"].values()}
    assert {name for name, mark in marks.items() if mark == "released"} == written.released
    assert marks["sin_squared"] == marks["filtered"] == "not released"
    assert answers == {"not released"}
    params = {"n_components": 1, "epsilon": None}
    run_cell(cell(params=params), problem_file, tmp_path / "b.h5")
    assert History.load(tmp_path / "b.h5").released is None
    with h5py.File(tmp_path / "b.h5") as file:
        assert all("privacy" not in data.attrs for data in file["history"].values())


def test_show_marks_every_column_that_was_not_released(rows, problem_file, tmp_path):
    def shown(name, **changes):
        run_cell(cell(**changes), problem_file, tmp_path / name)
        return call("show", tmp_path / name).output

    text = shown("a.h5")
    marked = {line.split()[0] for line in text.splitlines() if line.endswith("not released")}
    answer = {"reference/singular_values", "reference/leading_vectors"}
    assert marked == {"data", "sin_squared", "filtered", *answer}
    # Rows may be added or removed under this relation, so that their number is protected, too.
    assert f"{len(rows)} samples (not released)" in text and "no guarantee" in text
    replaced = {"algorithm": "fedpower", "params": {"n_components": 1, "iterations": 1}}
    assert f"{len(rows)} samples, " in shown("b.h5", **replaced)  # replace_one: it is public
    assert "released" not in shown("c.h5", params={"n_components": 1, "epsilon": None})


@pytest.mark.parametrize("epsilon", [1.0, None])
def test_a_choice_by_exact_measures_is_told(problem_file, tmp_path, epsilon):
    tune = {"by": "objective", "every": 1, "repeats": 1, "over": {"ratio": [1.5, 2.0]}}
    params = {"n_components": 1, "rounds": 2, "epsilon": epsilon}
    history = run_cell(cell(tune=tune, params=params), problem_file, tmp_path / "a.h5")
    text = call("show", tmp_path / "a.h5").output
    assert ("note" in history.about["tuning"]) == ("not paid for" in text) == bool(epsilon)


def test_figures_of_private_runs_say_it_on_the_axis():
    columns = {name: np.array([[0, 1, 2]]) for name in ("iteration", "round")}
    columns["error"] = np.array([[4.0, 2.0, 1.0]])
    private, plain = History(columns, released=frozenset(COLUMNS)), History(columns)
    for of, words in (((plain, private), ["error", "(not released)"]), ((plain,), ["error"])):
        figure = comparison.figure(dict(zip("ab", of, strict=False)), metrics=["error"])
        assert figure.axes[0].get_ylabel().split("\n") == words
