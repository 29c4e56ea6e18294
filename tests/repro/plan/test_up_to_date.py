"""What a history no longer fits of the settings of its cell, and which kept histories come back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedcore.experiments.cell import Cell
from fedcore.experiments.repeats import run_repeats
from fedcore.history import History
from fedcore.problems.problem import Problem
from fedcore.repro.plan.up_to_date import changed, outdated

TUNE = {"by": "objective", "every": 1, "repeats": 1, "over": {"rounds": [1, 4]}}
CELL = Cell(
    "p", "e", "ssi", "x-default", "x", {"n_components": 2}, 2, ["objective"], "last", 3,
    tune=TUNE, twin="rounding", code="of its commit",
)  # fmt: skip


@pytest.fixture(scope="module")
def history(tmp_path_factory):
    rng = np.random.default_rng(0)
    problem = Problem("x", [rng.standard_normal((9, 4)) for _ in range(2)])
    file = tmp_path_factory.mktemp("kept") / "x.h5"
    run_repeats(CELL, [problem]).save(file)
    return History.load(file)


def test_a_tuned_history_fits_its_cell(history, tool):
    assert history.about["params"] != CELL.params  # with what was chosen
    assert not changed(CELL, history)
    assert not tool("kept_histories").outdated(history, CELL)


@pytest.mark.parametrize(
    "changes",
    [
        {"repeats": 5},
        {"seed": 4},
        {"twin": "none"},
        {"params": {"n_components": 3}},
        {"metrics": ["objective", "kkt"]},
        *({"tune": TUNE | change} for change in ({"over": {"rounds": [1, 5]}}, {"by": "kkt"},
                                                 {"first": 1})),
        {"newcomers": {"problem": "y", "epochs": 7}},
    ],
)  # fmt: skip
def test_a_changed_setting_is_named_and_keeps_a_kept_history_out(history, changes, tool):
    cell = replace(CELL, **changes)
    (said,) = changed(cell, history)
    (name,) = changes
    assert {"metrics": "kkt", "params": "n_components", "tune": "tuning"}.get(name, name) in said
    assert said in tool("kept_histories").outdated(history, cell)


def test_a_history_that_was_not_tuned_does_not_fit_a_cell_that_is(history):
    untuned = replace(CELL, tune=None)
    assert any("tuning" in said for said in changed(untuned, history))


def test_a_reader_refuses_other_code_and_other_settings(history):
    assert outdated(CELL, history) == ""
    assert "seed" in outdated(replace(CELL, seed=4), history)
    assert outdated(replace(CELL, code="another"), history)
    assert outdated(replace(CELL, recipes=["another"]), history)


def test_of_a_restored_history_the_settings_alone_are_compared(history):
    kept = replace(history, about=history.about | {"restored": "then", "code": "of then"})
    assert outdated(replace(CELL, recipes=["another"]), kept) == ""
    assert "repeats" in outdated(replace(CELL, repeats=5), kept)
