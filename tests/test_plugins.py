from __future__ import annotations

import importlib
import sys
from functools import partial

import numpy as np
import pytest

import fedcore
from commands import refused_command
from fedcore.errors import ConfigError, InputError
from fedcore.experiments.cell import Cell
from fedcore.metrics import Metric, heads
from fedcore.plugins import Registry
from fedcore.repro.plan.plan import check_cell
from refused import refused

TALL = np.eye(3, 1)


@pytest.fixture
def registry(tmp_path, monkeypatch, installed):
    """Return a registry over a package of one folder, with two entries from elsewhere."""
    package = tmp_path / "zoo"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "lion.py").write_text("LEGS = 4\n")
    (package / "_keeper.py").write_text("")
    (package / "broken.py").write_text("raise SystemExit('imported without need')\n")
    (tmp_path / "their_package.py").write_text("LEGS = 2\n")
    zoo = "[zoo]\nostrich = their_package\nlion = their_package\n"
    installed(tmp_path, "their_package", zoo + "[other.group]\ncat = their_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield Registry("zoo", [str(package)], "animal")
    for name in ("zoo", "zoo.lion", "their_package"):
        sys.modules.pop(name, None)


def test_a_file_in_the_folder_is_an_entry_and_so_is_an_entry_point(registry):
    """Of two with one name the own one wins, and nothing is imported before it is asked for."""
    with pytest.warns(UserWarning, match="'lion' = their_package"):
        assert registry.names() == ["broken", "lion", "ostrich"]
    assert registry.module_name("lion") == "zoo.lion"
    assert registry.module_name("ostrich") == "their_package"
    assert "zoo.lion" not in sys.modules and "their_package" not in sys.modules
    assert registry.module("lion").LEGS == 4
    assert registry.module("ostrich").LEGS == 2


UNKNOWN = {"loin": "mean 'lion'", "Lion": "mean 'lion'", "lions": "mean 'lion'", "xyz": "'xyz'",
           "": "''", "_keeper": "known", "__init__": "known", "cat": "known"}  # fmt: skip


@pytest.mark.filterwarnings("ignore:entry point zoo")
@pytest.mark.parametrize("name", UNKNOWN)
def test_an_unknown_name_gets_the_nearest_and_the_list(registry, name):
    for call in (registry.module_name, registry.module):
        refused(lambda call=call: call(name), InputError, UNKNOWN[name], "broken, lion, ostrich")


WRONG = [  # recorded, returned, and what is said of it
    ({"bassis": TALL}, {"basis": TALL}, "bassis"),
    ({"basis": TALL.T}, {"basis": TALL}, "(1, 3)"),
    ({"basis": TALL[:, 0]}, {"basis": TALL}, "(3,)"),
    (None, {"basis": TALL}, "record(0"),
    ({"basis": TALL}, {"U": [TALL]}, "neither V"),
    ({"basis": TALL}, TALL, "neither V"),
    ({"basis": TALL}, None, "neither V"),
    ({"basis": TALL}, {"V": TALL.T}, "V of shape (1, 3)"),
    ({"basis": TALL}, {"basis": 3.0 * TALL}, "returns a basis"),
]


@pytest.mark.parametrize(("iterate", "output", "name"), WRONG)
def test_what_an_algorithm_should_not_record_or_return(redeclared, iterate, output, name):
    def run(federation, params, rng, record):
        if iterate is not None:
            record(0, **iterate)
        return output

    redeclared("one_shot", run=run)
    for measure in (["objective"], []):
        call = partial(fedcore.run, "one_shot", [np.eye(3)], 1, measure=measure)
        refused(call, InputError, "one_shot", name)


CLASHES = [  # columns that a method declares, the name of a measure, and what is said
    ({"epsilon": ("1", "mine")}, "own", "column 'epsilon' of one_shot"),
    ({"own": ("1", "mine")}, "own", "column 'own' of one_shot"),
    ({}, "round", "metric 'round'"),
    ({}, "objective", "metric 'objective'"),
    ({}, "", "rename"),
    ({}, "a/b", "rename"),
]


@pytest.mark.parametrize(("columns", "name", "said"), CLASHES)
def test_names_that_a_history_cannot_tell_apart_or_store(
    redeclared, monkeypatch, columns, name, said
):
    own = Metric(name, "1", "mine", lambda iterate, problem: 7.0)
    monkeypatch.setattr(heads, "METRICS", (*heads.METRICS, own))
    redeclared("one_shot", columns=columns)
    refused(partial(fedcore.run, "one_shot", [np.eye(3)], 1, measure=[name]), InputError, said)
    words = ("run", "one_shot", "w8a", "-r", 1, "--surrogate", "--metric", name)
    assert said in refused_command(*words)
    cell = Cell("p", "e", "one_shot", "n", "n", {"n_components": 1}, 1, [name], "none", 1)
    refused(partial(check_cell, cell, "here"), ConfigError, said)


def test_a_measure_of_each_client_has_a_value_of_each(monkeypatch):
    own = Metric("own", "1", "mine", lambda *asked: 7.0, each=lambda *asked: np.ones(7))
    monkeypatch.setattr(heads, "METRICS", (*heads.METRICS, own))
    call = partial(fedcore.run, "one_shot", [np.eye(3)], 1, measure=["own"])
    refused(call, InputError, "'own'", "shape (7,)", "1 client")
    words = ("run", "one_shot", "w8a", "-r", 1, "--surrogate", "--metric", "own")
    assert "shape (7,)" in refused_command(*words)


@pytest.mark.parametrize("records", [(0,), (1,)])
def test_a_column_that_only_some_records_fill_is_refused(redeclared, records):
    def run(federation, params, rng, record):
        for k in range(2):
            record(k, basis=TALL, counts={"products": k} if k in records else None)
        return {"basis": TALL}

    redeclared("one_shot", run=run)
    refused(partial(fedcore.run, "one_shot", [np.eye(3)], 1), InputError, "one_shot", "'products'")


def test_an_algorithm_may_ask_record_whether_to_go_on_and_say_that_it_has_converged(redeclared):
    def run(federation, params, rng, record):
        for k in range(9):
            if record(k, basis=TALL):
                break
        return {"basis": TALL, "converged": True}

    redeclared("one_shot", run=run)
    result = fedcore.run("one_shot", [np.eye(3)], 1, stop=lambda row: row["iteration"] >= 4)
    assert list(result.history["iteration"]) == [0, 1, 2, 3, 4] and result.output["converged"]
    assert fedcore.FederatedPCA(1, algorithm="one_shot").fit([np.eye(3)]).converged_ is True
