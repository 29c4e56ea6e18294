"""A network in the workflow's terms: a problem of shards, a cell, a history, the command line."""

from __future__ import annotations

import numpy as np
import pytest

from commands import call, ran
from fedcore.errors import ConfigError
from fedcore.experiments import build
from fedcore.experiments.cell import Cell
from fedcore.experiments.repeats import run_cell
from fedcore.history import History
from fedcore.problems import storage
from fedcore.repro.plan.plan import check_cell, load_plan
from processes import python
from refused import refused

SPEC = {
    "dataset": "cifar10",
    "options": {"samples": 400},
    "scale": "unit",
    "precision": "single",
    "partition": {"by": "shards", "clients": 10, "shards_per_client": 2},
    "held_out": "test",
}
PARAMS = {"model": "tiny_mlp", "rounds": 3, "participation": 0.3, "rate": 0.1}


def cell(algorithm="fedrep", **changes):
    given = {"params": PARAMS, "metrics": ["test_accuracy"], **changes}
    return Cell("p", "e", algorithm, "shards-x", "shards", repeats=2, iterates="last", seed=0,
                **given)  # fmt: skip


def test_a_cell_keeps_accuracies_of_all_and_of_each_client(tmp_path):
    pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")
    spec = SPEC | {"dataset": "mnist", "options": {}, "held_out": 0.2}
    problem = build.build("p/shards", spec, raw="", seed=0, surrogate=True)
    for samples in (problem.clients, problem.held_out):
        samples.labels = [np.minimum(y, 2) for y in samples.labels]  # three classes
    storage.save(problem, tmp_path / "problem.h5")
    run_cell(cell(), tmp_path / "problem.h5", tmp_path / "one.h5")

    history = History.load(tmp_path / "one.h5")
    each = history.clients["test_accuracy"]
    assert each.shape == (2, 4, 10) and history["test_accuracy"].shape == (2, 4)
    np.testing.assert_allclose(each.mean(axis=2), history["test_accuracy"], rtol=1e-15)
    assert history.final["heads"].shape == (2, 10, 15)
    apart = [len(x) for x in problem.held_out]
    np.testing.assert_array_equal(history.reference["held_out_samples"], apart)
    assert "torch" in history.about["versions"]
    sparse = cell(measured={"every": 2, "last": 0}, algorithm="fedavg")
    run_cell(sparse, tmp_path / "problem.h5", tmp_path / "sparse.h5")
    seldom = History.load(tmp_path / "sparse.h5")
    assert np.isnan(seldom["test_accuracy"]).tolist() == [[False, True, False, True]] * 2
    assert not seldom["diverged"].any()


WRONG_CELLS = [
    ({"params": {**PARAMS, "rate": 0.0}}, "rate"),
    ({"params": {**PARAMS, "n_components": 2}}, "'n_components'"),
    ({"params": {}}, "fedrep", "'model'"),
    ({"params": {"model": "cnn"}}, "'cnn'"),
    ({"twin": "rounding"}, "fedrep", "twin"),
]


@pytest.mark.parametrize(("changes", "names"), [(c, names) for c, *names in WRONG_CELLS])
def test_the_plan_checks_a_network_without_pytorch(changes, names):
    check_cell(cell(), "here")
    refused(lambda: check_cell(cell(**changes), "here"), ConfigError, "here", *names)


@pytest.mark.parametrize("there", [True, False])
def test_without_pytorch_the_paper_says_how_to_get_it(monkeypatch, there):
    monkeypatch.setattr("fedcore.repro.plan.plan.find_spec", lambda name: name if there else None)
    plan = load_plan({"papers": ["fedrep"], "surrogates": True})
    assert bool(plan.cells_of("fedrep")) == there
    # Newcomers, too, on which no method trains.
    assert ("pip install torch" in plan.unavailable.get("fedrep/digits", "")) == (not there)


RUN = ("run", "fedavg", "mnist", "--surrogate", "--set", "model=femnist_mlp", "--set", "rounds=1")


def test_the_command_line_runs_a_network(tmp_path):
    pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")
    out = str(tmp_path / "h.h5")
    done = ran(*RUN, "--set", "fine_tune=1", "--held-out", "0.5", "--out", out)
    assert "test_accuracy" in done.output and "not standardised" in done.output
    history = History.load(out)
    assert history["fine_tuned"].tolist() == [[0, 0, 1]]
    assert 0 < history.last("test_accuracy")[0] <= 1
    assert history.reference["held_out_samples"].sum() == pytest.approx(1797 / 2, abs=10)
    assert "clients/test_accuracy  1 x 3 x 10" in call("show", out).output


def test_the_import_of_pytorch_is_not_of_the_first_run():
    """The clock of a run begins when its recorder is made."""
    pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")
    code = """
import sys
import fedcore
from fedcore.recorder import Recorder
from fedcore.testing.samples import images
begin, there = Recorder.__init__, []
def spied(self, *given, **more):
    there.append("torch" in sys.modules)
    begin(self, *given, **more)
Recorder.__init__ = spied
data = images()
assert "torch" not in sys.modules
fedcore.run("fedavg", list(data), labels=data.labels, model="tiny_mlp", rounds=1, batch=5)
assert there == [True], there
"""
    python("-c", code)
