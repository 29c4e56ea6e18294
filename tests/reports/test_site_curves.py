"""Curves of the report's site: how runs are told apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedcore.history import History, save_seconds
from fedcore.reports.curve_styles import CYCLE, DASHES, look, of_methods, told_apart
from fedcore.reports.plotting import method_looks
from fedcore.reports.results import Run
from fedcore.reports.site.curves import _axes, _tell_apart


def test_variants_of_a_single_algorithm_have_colours_of_their_own():
    first = CYCLE.index(look("faps")["colour"])
    colours = [found["colour"] for found in told_apart(["faps"] * 3)]
    assert colours == [CYCLE[(first + i) % len(CYCLE)] for i in range(3)]


def test_of_several_algorithms_each_keeps_its_colour():
    colours = [found["colour"] for found in told_apart(["faps", "faps", "ssi"])]
    assert colours == [look("faps")["colour"]] * 2 + [look("ssi")["colour"]]


@pytest.mark.parametrize("algorithms", [["faps"] * 12, ["faps", "faps", "ssi", "wk2023"], ["ssi"]])
def test_no_two_runs_of_a_plot_look_alike(algorithms):
    """The seventh variant once looked like the first, and methods of one colour like another."""
    looks = told_apart(algorithms)
    assert len({(found["colour"], found["dash"]) for found in looks}) == len(algorithms)


def test_a_method_looks_the_same_in_every_plot_of_the_site_and_in_the_notebook():
    """The notebook of the arena took colours in the order of its methods, the site others."""
    methods = {"FedPower, 10": "fedpower", "SSI": "ssi", "FAPS": "faps", "WK2023": "wk2023"}
    cells = {
        f"{experiment}/{name}": {"algorithm": algorithm, "tags": {"method": name}}
        for experiment, names in {"contest": methods, "leakage": ["WK2023", "SSI"]}.items()
        for name, algorithm in methods.items()
        if name in names
    }
    cells["other"] = {"algorithm": "ssi", "tags": {"method": None}}
    plan = {"cells": cells}
    drawn = method_looks(plan)
    assert list(drawn) == list(methods)
    for names in (methods, ["WK2023", "SSI"], ["SSI"]):
        runs = [{"name": name, "algorithm": methods[name]} for name in names]
        _tell_apart(runs, of_methods(plan))
        for run in runs:
            seen = {"color": run["colour"], "linestyle": DASHES[run["dash"]]}
            assert drawn[run["name"]] == seen
            assert run["colour"] == look(run["algorithm"])["colour"]


def test_the_notebook_of_the_arena_takes_its_looks_from_there():
    text = (Path(__file__).parents[2] / "notebooks/arena.ipynb").read_text(encoding="utf-8")
    assert "looks = plotting.method_looks(results.plan)" in text


@pytest.mark.parametrize(("where", "timed"), [({}, True), ({"device": "cuda"}, False)])
def test_only_what_ran_on_a_core_has_cpu_seconds(where, timed, tmp_path):
    """On an accelerator they are those of the process that waits, and no sum over clients."""
    count = np.arange(3)[None]
    names = ("iteration", "round", "bytes_up", "bytes_down")
    history = History(dict.fromkeys(names, count), about=where)
    history.seconds = 2.5 * count
    file = tmp_path / "seconds.tsv"
    save_seconds(history, file)
    run = Run("table1", "p", "fedavg", "default", "P", {}, history, file)
    found = _axes(run)
    assert ("seconds" in found) == timed and {"rounds", "up", "bytes"} <= set(found)
    if timed:
        np.testing.assert_array_equal(found["seconds"], [0, 2.5, 5])
