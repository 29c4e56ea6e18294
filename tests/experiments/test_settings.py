"""What a history no longer fits of the settings of its cell, and which kept histories come back."""

from __future__ import annotations

from dataclasses import asdict, replace

import numpy as np
import pytest

from fedcore.experiments.cell import run_repeats
from fedcore.experiments.plan import Cell
from fedcore.experiments.settings import changed, outdated
from fedcore.history import History
from fedcore.problems.problem import Problem

TUNE = {"by": "objective", "every": 1, "repeats": 1, "over": {"rounds": [1, 4]}}
CELL = Cell(
    "p", "e", "ssi", "x-default", "x", {"n_components": 2}, 2, ["objective"], "last", 3,
    tune=TUNE, twin="rounding",
)  # fmt: skip


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    rng = np.random.default_rng(0)
    problem = Problem("x", [rng.standard_normal((9, 4)) for _ in range(2)])
    file = tmp_path_factory.mktemp("kept") / "x.h5"
    run_repeats(CELL.spec(), [problem], code=CELL.code).save(file)
    return History.load(file)


def test_a_tuned_history_fits_its_cell(history, docs_script):
    assert history.about["params"] != CELL.params  # with what was chosen
    assert not changed(CELL.spec(), history)
    assert not docs_script("kept_histories").outdated(history, CELL)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"repeats": 5}, "number of repeats was 2 and is 5"),
        ({"seed": 4}, "seed was 3 and is 4"),
        ({"twin": "none"}, "twin was rounding and is none"),
        ({"params": {"n_components": 3}}, "parameter n_components was 2 and is 3"),
        ({"metrics": ["objective", "kkt"]}, "the measure kkt is new"),
        ({"tune": TUNE | {"over": {"rounds": [1, 5]}}}, "the tuning has changed"),
        ({"tune": TUNE | {"by": "kkt"}}, "the tuning has changed"),
        ({"tune": TUNE | {"first": 1}}, "the tuning has changed"),
        (
            {"newcomers": {"problem": "y", "epochs": 7}},
            "number of newcomers' epochs was not given and is 7",
        ),
    ],
)
def test_a_changed_setting_is_named_and_keeps_a_kept_history_out(
    history, changes, said, docs_script
):
    cell = replace(CELL, **changes)
    assert changed(cell.spec(), history) == [said]
    found = docs_script("kept_histories").outdated(history, cell)
    assert found == f"the configuration has changed: {said}"


def test_a_history_that_was_not_tuned_does_not_fit_a_cell_that_is(history):
    untuned = replace(CELL, tune=None)
    assert "the tuning has changed" in changed(untuned.spec(), history)


def planned(**changes):
    cell = replace(CELL, **changes)
    return {**asdict(cell), "code": cell.code}


def test_a_reader_refuses_other_code_and_other_settings(history):
    assert outdated(planned(), history) == ""
    assert outdated(planned(seed=4), history) == "seed was 3 and is 4"
    assert outdated(planned() | {"code": "another"}, history)
    assert outdated(planned(recipes=["another"]), history)


def test_of_a_restored_history_the_settings_alone_are_compared(history):
    kept = replace(history, about=history.about | {"restored": "then", "code": "of its commit"})
    assert outdated(planned(recipes=["another"]), kept) == ""
    assert outdated(planned(repeats=5), kept) == "number of repeats was 2 and is 5"
