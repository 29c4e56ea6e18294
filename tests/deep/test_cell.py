"""A network in the workflow's terms: a problem of shards, a cell, a history, the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from fedcore.cli import main
from fedcore.config.strict_yaml import read_yaml
from fedcore.errors import ConfigError
from fedcore.experiments import build
from fedcore.experiments.cell import run_cell
from fedcore.experiments.fingerprint import closure
from fedcore.experiments.plan import Cell, _check_cell, load_plan
from fedcore.history import History
from fedcore.problems import storage

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
    run_cell(cell().spec(), tmp_path / "problem.h5", tmp_path / "one.h5")
    run_cell(cell().spec(), tmp_path / "problem.h5", tmp_path / "two.h5")
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()
    history = History.load(tmp_path / "one.h5")
    each = history.clients["test_accuracy"]
    assert each.shape == (2, 4, 10) and history["test_accuracy"].shape == (2, 4)
    np.testing.assert_allclose(each.mean(axis=2), history["test_accuracy"], rtol=1e-15)
    assert history.final["heads"].shape == (2, 10, 15)
    apart = [len(x) for x in problem.held_out]
    np.testing.assert_array_equal(history.reference["held_out_samples"], apart)
    assert "torch" in history.about["versions"]
    sparse = cell(measured={"every": 2, "last": 0}, algorithm="fedavg").spec()
    run_cell(sparse, tmp_path / "problem.h5", tmp_path / "sparse.h5")
    seldom = History.load(tmp_path / "sparse.h5")
    assert np.isnan(seldom["test_accuracy"]).tolist() == [[False, True, False, True]] * 2
    assert not seldom["diverged"].any()


def test_the_plan_checks_a_network_without_pytorch():
    _check_cell(cell(), "here")
    with pytest.raises(ConfigError, match="here: rate must be a finite number above 0"):
        _check_cell(cell(params={**PARAMS, "rate": 0.0}), "here")
    with pytest.raises(ConfigError, match="has no parameter 'n_components', as it learns no"):
        _check_cell(cell(params={**PARAMS, "n_components": 2}), "here")
    lacks = r"here: fedrep needs the parameter 'model' \(one of .*\): give it as NAME: VALUE"
    with pytest.raises(ConfigError, match=lacks):
        _check_cell(cell(params={}), "here")
    with pytest.raises(ConfigError, match="model = 'cnn' is unknown"):
        _check_cell(cell(params={"model": "cnn"}), "here")
    with pytest.raises(ConfigError, match="fedrep learns no subspace: it has no twin"):
        _check_cell(cell(twin="rounding"), "here")


def test_without_pytorch_the_paper_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr("fedcore.experiments.plan.find_spec", lambda name: None)
    plan = load_plan({"papers": ["fedrep"], "surrogates": True})
    assert plan.cells_of("fedrep") == []
    get = "torch: pip install torch, or make deep in fedcore's checkout"
    assert all(reason.endswith(get) for reason in plan.unavailable.values())
    assert "fedrep/digits" in plan.unavailable  # of newcomers, on which no method trains
    monkeypatch.setattr("fedcore.experiments.plan.find_spec", lambda name: name)
    plan = load_plan({"papers": ["fedrep"], "surrogates": True})
    assert plan.cells_of("fedrep") and not plan.unavailable


def test_the_quick_run_covers_the_readings_of_the_authors_code():
    pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")
    plan = load_plan(read_yaml(Path("config/quick.yaml")) | {"papers": ["fedrep"]})
    cells = [cell for cell in plan.cells_of("fedrep") if cell.experiment == "code"]
    found = {(cell.algorithm, cell.params["model"]) for cell in cells}
    models = ("cifar10_cnn", "femnist_mlp3", "sent140_reshaped")
    methods = ("fedavg", "fedper", "fedrep")
    assert found >= {(method, model) for method in methods for model in models}
    averaged = [cell for cell in cells if cell.params.get("first_head") == "averaged"]
    assert {cell.algorithm for cell in averaged} == {"fedper", "fedrep"} and len(averaged) == 6
    assert {cell.params["weight_decay"] for cell in cells if cell.name.endswith("code")} == {1e-4}


def test_a_network_runs_again_when_its_training_changes_and_a_subspace_does_not():
    assert "fedcore.deep.training" in closure(["fedcore.algorithms.fedrep"])
    other = closure(["fedcore.experiments.cell", "fedcore.algorithms.fedrep_linear"])
    assert not [module for module in other if module.startswith("fedcore.deep")]


def call(*arguments):
    return CliRunner().invoke(main, list(arguments))


RUN = ("run", "fedavg", "mnist", "--surrogate", "--set", "model=femnist_mlp", "--set", "rounds=1")


def test_the_network_that_help_proposes_runs():
    pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")
    (line,) = [line for line in call("run", "--help").output.splitlines() if "fedrep mnist" in line]
    done = call(*line.split()[1:])
    assert done.exit_code == 0 and "test_accuracy" in done.output, done.output


def test_the_command_line_runs_a_network(tmp_path):
    pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")
    out = str(tmp_path / "h.h5")
    done = call(*RUN, "--set", "fine_tune=1", "--held-out", "0.5", "--out", out)
    assert done.exit_code == 0, done.output
    assert "test_accuracy" in done.output
    history = History.load(out)
    assert history["fine_tuned"].tolist() == [[0, 0, 1]]
    assert 0 < history.last("test_accuracy")[0] <= 1
    assert history.reference["held_out_samples"].sum() == pytest.approx(1797 / 2, abs=10)
    assert "clients/test_accuracy  1 x 3 x 10" in call("show", out).output


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((*RUN, "--held-out", "2"), "'2' is not test or a share below 1"),
        (
            (*RUN, "-r", "2"),
            "fedavg has no parameter 'n_components', as it learns no subspace: drop --components",
        ),
        (("run", "fedavg", "mnist", "--surrogate"), "needs the parameter 'model' (one of cifar10_"),
        (("run", "ssi", "mnist", "--surrogate"), "Missing option '--components'"),
        (
            ("run", "ssi", "mnist", "--surrogate", "-r", "2", "--held-out", "test"),
            "ssi learns no classifiers to measure: drop --held-out",
        ),
    ],
)
def test_the_command_line_refuses_what_does_not_fit(arguments, says):
    done = call(*arguments)
    assert done.exit_code and says in " ".join(done.output.split())
