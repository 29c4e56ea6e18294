"""What `fedcore run` keeps of a private run with real noise: what was released, and no more.

Each private method runs twice, and every row of the second data set is another one. Mechanisms
return in the second run what they have returned in the first. So both files are equal, unless one
keeps something that depends on the data in another way.
"""

from __future__ import annotations

import functools
import json
from dataclasses import MISSING
from pathlib import Path

import h5py
import numpy as np
import pytest

from commands import call, refused_command
from fedcore import algorithms, metrics
from fedcore.history import History
from fedcore.privacy.events import Bounded
from fedcore.privacy.mechanisms import Mechanisms
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.words import EXACT

FEW = {"batch": 10, "batches": 2, "rounds": 2, "iterations": 2}
PRIVATE = [
    name
    for name in algorithms.names()
    if (field := algorithms.get(name).parameters.__dataclass_fields__.get("epsilon"))
    and field.default not in (None, MISSING)
]


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """Three problem files without a row in common; the last has one row more than the others."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    for name, sizes in (("one", (40, 30)), ("same", (40, 30)), ("more", (41, 30))):
        rows = [rng.uniform(-0.4, 0.4, (n, 4)) for n in sizes]
        storage.save(Problem("x", rows), f"{name}.h5")


@pytest.fixture
def again(monkeypatch):
    """Return what makes mechanisms return again what they have returned so far."""
    given: dict[str, list] = {"_release": [], "above_threshold": []}
    coming = {name: iter(()) for name in given}
    release, search = Mechanisms._release, Mechanisms.above_threshold

    def released(self, value):
        given["_release"].append(next(coming["_release"], value))
        return release(self, given["_release"][-1])

    def searched(self, *asked, **how):  # it may end without a release
        try:
            found = next(coming["above_threshold"])
        except StopIteration:
            found = search(self, *asked, **how)
        else:
            self._charge(Bounded(how["epsilon"], mechanism="sparse vector"))
            found = found if found is None else self._release(found)
        given["above_threshold"].append(found)
        return found

    monkeypatch.setattr(Mechanisms, "_release", released)
    monkeypatch.setattr(Mechanisms, "above_threshold", searched)
    return lambda: coming.update({name: iter([*values]) for name, values in given.items()})


@functools.cache
def measurable() -> list[str]:
    """Every metric of a subspace of data without labels, as options."""
    every = [metric.name for family in metrics.families()[0].values() for metric in family]
    one = functools.partial(call, "run", "power_exact", "one.h5", "-r", 1, "--metric")
    return [word for name in every if one(name).exit_code == 0 for word in ("--metric", name)]


def words(name: str, data: str = "one.h5", *more) -> list:
    """Return a call of `fedcore run` with every metric."""
    given = {key: value for key, value in FEW.items() if algorithms.get(name).takes(key)}
    few = [word for key, value in given.items() for word in ("--set", f"{key}={value}")]
    return ["run", name, data, "-r", 1, *few, *measurable(), "--iterates", "all", *more]


@pytest.mark.parametrize("name", PRIVATE)
def test_what_is_kept_follows_from_what_was_released(name, again):
    assert len(measurable()) > 10
    first = call(*words(name, "one.h5", "--out", "a.h5", "--json"))
    about = History.load("a.h5").about
    again()
    public = about["privacy"]["neighbours"] != "add_or_remove_one"
    other = "same.h5" if public else "more.h5"
    second = call(*words(name, other, "--out", "b.h5", "--json"))
    assert first.exit_code == second.exit_code == 0, first.output + second.output
    assert first.stdout == second.stdout
    with open("a.h5", "rb") as one, open("b.h5", "rb") as two:
        assert one.read() == two.read()
    assert ("n_samples" in about["problem"]) == public
    assert {*measurable()[1::2]} <= {*about["privacy"]["left_out"]}


@pytest.mark.parametrize("name", PRIVATE)
def test_what_is_exact_is_kept_if_asked_for_and_marked(name):
    assert call(*words(name, "one.h5", "--out", "a.h5", "--keep-exact")).exit_code == 0
    kept = History.load("a.h5")
    assert {*measurable()[1::2], *kept.released} <= kept.columns.keys()
    assert "sha256" in kept.about["privacy"]["not_released"]
    with h5py.File("a.h5") as file:
        marks = {name: data.attrs["privacy"] for name, data in file["history"].items()}
        assert {data.attrs["privacy"] for data in file["reference"].values()} == {"not released"}
    assert {name for name, mark in marks.items() if mark == "released"} == kept.released
    assert call("show", "a.h5", "--iterates").exit_code == 0


def test_a_run_with_simulated_noise_keeps_all():
    assert call(*words("noisy_power", "one.h5", "--out", "a.h5", "--simulate")).exit_code == 0
    kept = History.load("a.h5")
    assert {*measurable()[1::2]} <= kept.columns.keys() and "n_samples" in kept.about["problem"]


def test_commands_say_why_a_measure_is_not_there():
    compare = ["compare", "noisy_power", "ssi", "one.h5", "-r", 1, "--set", "rounds=2"]
    assert "--keep-exact" in refused_command(*compare, "--plot", "all")
    assert call(*compare, "--plot", "all", "--keep-exact").exit_code == 0
    text = call(*compare, "--out", "kept").stdout
    assert text.count("--keep-exact") == 1
    assert json.loads(call(*compare, "--json").stdout)["noisy_power"]["metrics"] == {}
    assert call("show", "kept/noisy_power.h5").stdout.count("--keep-exact") == 1
    assert "--keep-exact" in refused_command("plot", "kept/noisy_power.h5")
    both = ["plot", "kept/noisy_power.h5", "kept/ssi.h5", "--metric", "objective"]
    assert "--keep-exact" in refused_command(*both)
    assert "--keep-exact" in refused_command("show", "kept/noisy_power.h5", "--iterates")


# What a command says of a file: how it is spoiled, and an option with which it says so.
SPOILED = {
    "a gap, refused": ("", []),
    "a gap, left out": ("", ["--missing", "drop"]),
    "a text": ("often", []),
    "a mark": ("-999", []),
    "most are outside of the range": (None, []),
}


@pytest.mark.parametrize("kind", SPOILED)
@pytest.mark.parametrize("command", [("pca", "--epsilon", 50), ("run", "noisy_power")])
def test_what_is_said_of_exact_values_is_marked(kind, command, recwarn):
    cell, how = SPOILED[kind]
    rows = np.random.default_rng(1).uniform(1.0, 2.0, (400, 3)).round(3).astype(str)
    if cell is not None:
        rows[7:40, 1] = cell
    Path("a.csv").write_text("x,y,z\n" + "".join(",".join(row) + "\n" for row in rows))
    low = 1.9 if cell is None else 1
    Path("ranges.csv").write_text(f"column,low,high\nx,{low},2\ny,1,2\nz,1,2\n")
    of = {"pca": ["--bounds", "ranges.csv"], "run": ["--set", "clip=true", "--set", "epsilon=50"]}
    done = call(*command, "a.csv", "-r", 1, *of[command[0]], *how)
    told = [str(warning.message) for warning in recwarn if warning.category is UserWarning]
    told += done.stderr.splitlines()
    assert told or (command[0] == "run" and cell is None)  # it knows no ranges
    assert all(EXACT in line for line in told)
