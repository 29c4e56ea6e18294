"""Tuning: the grid, trials on separate draws, and the record in the history."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import cells
from fedcore.errors import ConfigError
from fedcore.experiments import build
from fedcore.experiments.repeats import run_cell
from fedcore.history import History
from fedcore.problems import storage
from refused import refused

SPEC = {
    "generator": "shared_heads",
    "params": {"n_clients": 20, "samples": 6, "n_features": 6, "heads": "assumption"},
    "draws": 3,
}


@pytest.fixture
def file(tmp_path):
    made = build.build_draws("drawn", SPEC, raw="", seed=1, surrogate=False)
    storage.save(made, tmp_path / "drawn.h5")
    return tmp_path / "drawn.h5"


def cell(grid, repeats=3, tried=3, **params):
    return cells.cell(
        "fedrep_linear", {"n_components": 2, "rounds": 20, **params}, problem="drawn", seed=4,
        repeats=repeats, metrics=["fitted_loss", "representation_distance"], iterates="none",
        tune={"by": "fitted_loss", "every": 5, "repeats": tried, "over": grid},
    )  # fmt: skip


def plain(file, spec, **params):
    """The same cell without a grid."""
    without = replace(spec, tune=None, params={**spec.params, **params})
    return run_cell(without, file, file.parent / "plain.h5")


def test_the_setting_with_the_smallest_mean_of_the_measure_is_taken(file):
    steps = [0.001, 0.3, 0.05]
    spec = cell({"step": steps})
    history = run_cell(spec, file, file.parent / "tuned.h5")
    values = []
    for step in steps:
        loss = plain(file, spec, step=step)["fitted_loss"][:, [5, 10, 15, 20]]
        values.append(np.median(np.exp(np.log(loss).mean(axis=1))))
    tuned = history.about["tuning"]
    np.testing.assert_allclose(tuned["values"], values, rtol=1e-12)
    assert tuned["settings"] == [{"step": step} for step in steps]
    assert tuned["chosen"] == {"step": steps[int(np.argmin(values))]} == {"step": 0.3}
    assert history.about["params"]["step"] == 0.3
    np.testing.assert_array_equal(
        history["fitted_loss"], plain(file, spec, step=0.3)["fitted_loss"]
    )


def test_settings_that_diverge_come_last(file):
    wild = {"orthonormalise": False, "head_steps": 1, "head_step": 5.0, "rounds": 200}
    spec = cell({"step": [50.0, 0.001], "head_step": [5.0, 0.1]}, **wild)
    history = run_cell(spec, file, file.parent / "tuned.h5")
    tuned = history.about["tuning"]
    assert tuned["settings"][0] == {"step": 50.0, "head_step": 5.0}
    assert tuned["diverged"][0] == 3 and tuned["values"][0] == np.inf
    assert tuned["chosen"] == {"step": 0.001, "head_step": 0.1}
    assert not history.last("diverged").any()


@pytest.mark.parametrize("first", [0, 2])
def test_only_the_first_repeats_are_tried_or_such_as_are_not_reported(file, first):
    spec = cell({"step": [0.001, 0.3, 0.05]}, repeats=2, tried=1)
    spec.tune.update({"first": first} if first else {})
    history = run_cell(spec, file, file.parent / "a.h5")
    tuned = history.about["tuning"]
    loss = plain(file, cell({}), step=0.3)["fitted_loss"][first, [5, 10, 15, 20]]
    assert (tuned["first"], tuned["repeats"], history.repeats) == (first, 1, 2)
    assert tuned["values"][1] == pytest.approx(np.exp(np.log(loss).mean()), rel=1e-12)


def test_a_grid_is_not_tried_on_draws_that_are_reported_instead_of_missing_ones(file):
    spec = cell({"step": [0.1]}, tried=2)
    spec.tune["first"] = 2
    refused(lambda: run_cell(spec, file, file.parent / "a.h5"), ConfigError, "2 to 3", "draws")


def test_a_tuned_history_comes_back_whole(file):
    written = run_cell(cell({"step": [0.1, 0.3]}), file, file.parent / "a.h5")
    assert History.load(file.parent / "a.h5").about == written.about


def test_each_repeat_has_a_draw_of_its_own(file):
    history = plain(file, cell({"step": [0.1]}))
    draws = storage.load_draws(file)
    for repeat in range(3):
        B = draws[repeat].truth.representation
        found = history.final["V"][repeat]
        distance = np.linalg.norm(B - found @ (found.T @ B), 2)
        assert distance == pytest.approx(history.last("representation_distance")[repeat])
    assert history.reference["head_singular_values"].shape == (3, 2)
    for sigma, draw in zip(history.reference["head_singular_values"], draws, strict=True):
        expected = np.linalg.svd(draw.truth.heads)[1] / np.sqrt(20)
        np.testing.assert_allclose(sigma, expected, rtol=1e-12)
