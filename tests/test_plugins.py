from __future__ import annotations

import importlib
import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import fedcore
from fedcore import algorithms
from fedcore.errors import InputError
from fedcore.plugins import Registry

MODULE = "PAPER = 'none'\n"


def test_a_name_that_is_taken_is_said_to_be_ignored(tmp_path, installed, monkeypatch):
    installed(tmp_path, "theirs", "[fedcore.algorithms]\nssi = their_ssi\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry = Registry("fedcore.algorithms", algorithms.__path__, "algorithm")
    with pytest.warns(UserWarning, match="'ssi' = their_ssi is ignored: fedcore's own algorithm"):
        assert registry.module_name("ssi") == "fedcore.algorithms.ssi"


TALL = np.eye(3, 1)


@pytest.fixture
def their_package(tmp_path, installed):
    """Return a function that makes a package in the test's folder, given its entry points."""

    def make(entries):
        (tmp_path / "their_package.py").write_text(MODULE)
        installed(tmp_path, "their_package", entries)

    return make


@pytest.fixture
def registry(tmp_path, monkeypatch, their_package):
    """Return a registry over a package of one folder, with two entries from elsewhere."""
    package = tmp_path / "zoo"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "lion.py").write_text("LEGS = 4\n")
    (package / "_keeper.py").write_text("")
    (package / "broken.py").write_text("raise SystemExit('imported without need')\n")
    zoo = "[zoo]\nostrich = their_package\nlion = their_package\n"
    their_package(zoo + "[other.group]\ncat = their_package\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    yield Registry("zoo", [str(package)], "animal")
    for name in ("zoo", "zoo.lion", "their_package"):
        sys.modules.pop(name, None)


def test_a_file_in_the_folder_is_an_entry_and_so_is_an_entry_point(registry):
    assert registry.names() == ["broken", "lion", "ostrich"]
    assert registry.module_name("lion") == "zoo.lion"
    assert registry.module_name("ostrich") == "their_package"
    assert registry.module("lion").LEGS == 4
    assert registry.module("ostrich").PAPER == "none"


def test_what_is_built_in_wins_over_an_entry_point_of_its_name(registry):
    assert registry.names().count("lion") == 1
    assert registry.module_name("lion") == "zoo.lion"
    assert registry.module("lion").LEGS == 4 and not hasattr(registry.module("lion"), "PAPER")


def test_nothing_is_imported_before_it_is_asked_for(registry):
    registry.names()
    registry.module_name("lion")
    assert "zoo.lion" not in sys.modules and "their_package" not in sys.modules


@pytest.mark.parametrize("name", ["loin", "Lion", "lions"])
def test_an_unknown_name_gets_the_nearest_and_the_list(registry, name):
    message = f"unknown animal '{name}': did you mean 'lion'\\? known: broken, lion, ostrich"
    with pytest.raises(InputError, match=message):
        registry.module_name(name)


def test_a_name_like_no_other_gets_the_list_alone(registry):
    with pytest.raises(InputError, match="unknown animal 'xyz': known: broken, lion, ostrich"):
        registry.module("xyz")


@pytest.mark.parametrize("name", ["", "_keeper", "__init__", "cat"])
def test_private_modules_and_other_groups_are_no_entries(registry, name):
    with pytest.raises(InputError, match="unknown animal"):
        registry.module(name)


def test_importing_the_registry_imports_no_algorithm():
    script = (
        "import sys, fedcore.algorithms as a; a.names();"
        "print([m for m in sys.modules if m.startswith('fedcore.algorithms.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_the_papers_methods_are_registered():
    assert {"centralized_svd", "power_gd", "wk2023", "yd2021"} <= set(algorithms.names())


def test_an_algorithm_whose_params_lack_a_field_is_refused_by_name(monkeypatch):
    @dataclass(frozen=True)
    class Params:
        n_components: int

    monkeypatch.setattr(algorithms.get("one_shot").module, "Params", Params)
    says = "algorithm 'one_shot': Params of .* has no start"
    with pytest.raises(InputError, match=says):
        fedcore.run("one_shot", [np.eye(3)], 1)
    monkeypatch.setattr("fedcore.algorithms.one_shot.Params", object)
    with pytest.raises(InputError, match="has no n_components and no start"):
        algorithms.get("one_shot")


def test_an_algorithm_with_an_unknown_task_is_refused_by_name(monkeypatch):
    module = algorithms.get("one_shot").module
    monkeypatch.setattr(module, "TASK", "classifier", raising=False)
    says = "algorithm 'one_shot': unknown TASK 'classifier': did you mean 'classifiers'"
    with pytest.raises(InputError, match=says):
        algorithms.get("one_shot")
    monkeypatch.setattr(module, "TASK", "classifiers")
    with pytest.raises(InputError, match=r"Params of .* has no model"):
        algorithms.get("one_shot")


@pytest.mark.parametrize(
    ("iterate", "output", "says"),
    [
        ({"bassis": TALL}, {"basis": TALL}, "one_shot records bassis: record takes basis or fac"),
        ({"basis": TALL.T}, {"basis": TALL}, r"one_shot records a matrix of shape \(1, 3\): it "),
        ({"basis": TALL[:, 0]}, {"basis": TALL}, r"one_shot records a matrix of shape \(3,\): it "),
        (None, {"basis": TALL}, r"one_shot has recorded no iterate: run calls record\(0, "),
        ({"basis": TALL}, {"U": [TALL]}, "one_shot returns no V and no basis: "),
        ({"basis": TALL}, TALL, "one_shot returns no V and no basis: "),
        ({"basis": TALL}, None, "one_shot returns no V and no basis: "),
        ({"basis": TALL}, {"V": TALL.T}, r"one_shot returns V of shape \(1, 3\): it needs 3 rows"),
    ],
)
def test_an_algorithm_that_records_or_returns_what_it_should_not_is_refused_by_name(
    monkeypatch, iterate, output, says
):
    def run(federation, params, rng, record):
        if iterate is not None:
            record(0, **iterate)
        return output

    monkeypatch.setattr(algorithms.get("one_shot").module, "run", run)
    for measure in (["objective"], []):
        with pytest.raises(InputError, match=says):
            fedcore.run("one_shot", [np.eye(3)], 1, measure=measure)


def test_an_algorithm_may_say_by_a_test_of_its_own_that_it_has_converged(monkeypatch):
    def run(federation, params, rng, record):
        record(0, basis=TALL)
        return {"basis": TALL, "converged": True}

    monkeypatch.setattr(algorithms.get("one_shot").module, "run", run)
    assert fedcore.run("one_shot", [np.eye(3)], 1).output["converged"]
    assert fedcore.FederatedPCA(1, algorithm="one_shot").fit([np.eye(3)]).converged_ is True


def test_an_algorithm_may_ask_record_itself_whether_to_go_on(monkeypatch):
    def run(federation, params, rng, record):
        for k in range(9):
            if record(k, basis=TALL):
                return {"basis": TALL}

    monkeypatch.setattr(algorithms.get("one_shot").module, "run", run)
    result = fedcore.run("one_shot", [np.eye(3)], 1, stop=lambda row: row["iteration"] >= 4)
    assert list(result.history["iteration"]) == [0, 1, 2, 3, 4]
