"""The report's site: how runs are told apart, and what stands beside a claim."""

from __future__ import annotations

import numpy as np
import pytest

from fedcore.history import History, save_seconds
from fedcore.reports.curve_styles import distinct_looks
from fedcore.repro.site.curves import axes_of
from fedcore.repro.site.model import judged_by
from fedcore.repro.tables.results import Run


@pytest.mark.parametrize("algorithms", [["faps"] * 12, ["faps", "faps", "ssi", "wk2023"], ["ssi"]])
def test_no_two_runs_of_a_plot_look_alike(algorithms):
    """The seventh variant once looked like the first, and methods of one colour like another."""
    looks = distinct_looks(algorithms)
    assert len({(found["colour"], found["dash"]) for found in looks}) == len(algorithms)


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
    found = axes_of(run)
    assert ("seconds" in found) == timed and {"rounds", "up", "bytes"} <= set(found)
    if timed:
        np.testing.assert_array_equal(found["seconds"], [0, 2.5, 5])


@pytest.mark.parametrize(("algorithm", "whole"), [("gone", False), ("ssi", True)])
def test_a_run_of_an_algorithm_that_is_not_installed_has_parameters(algorithm, whole, tmp_path):
    history = History({}, about={"params": {"n_components": 2}})
    run = Run("e", "p", algorithm, "default", "P", {}, history, tmp_path / "seconds.tsv")
    assert run.shown_params["n_components"] == 2 and ("rounds" in run.shown_params) == whole


def test_beside_a_flag_stand_the_numbers_that_it_was_read_off():
    rows = [{"claim": "c", "repeat": i, "ratio": 1.5 + i, "holds": True} for i in range(2)]
    select = {"table": "claims", "where": {"claim": "c"}, "column": "holds", "points": []}
    judged = judged_by(select, rows)
    assert judged["columns"] == ["claim", "repeat", "ratio", "holds"]
    assert judged["rows"][1] == ["c", "1", "2.5", "true"]
