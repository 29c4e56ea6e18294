"""Times of jobs that have run, and of an experiment in the papers' full runs."""

from __future__ import annotations

import json
from pathlib import Path

from fedcore.repro.plan.job_costs import measured, read_kept

HEAD = "s\tcpu_time\tmax_rss\n"


def test_a_benchmark_says_seconds_and_memory_or_nothing(tmp_path):
    (tmp_path / "t.tsv").write_text(HEAD + "7.5\t7\t900.0\n")
    assert measured(tmp_path / "t.tsv") == (7.0, 7.5, 900.0)
    for unmeasured in ("-", "NA"):
        (tmp_path / "t.tsv").write_text(HEAD + f"1\t{unmeasured}\t{unmeasured}\n")
        assert measured(tmp_path / "t.tsv") == (0.0, 1.0, 0.0)
    assert measured(tmp_path / "none.tsv") is None
    for text in ("", HEAD, "s\tmax_rss\nx\t1\n", "else\n1\n"):
        (tmp_path / "t.tsv").write_text(text)
        assert measured(tmp_path / "t.tsv") is None


def test_kept_times_are_of_the_last_run_that_has_an_experiment(tmp_path):
    def time(cells, seconds, memory):
        return {"cells": cells, "seconds": seconds, "MB": memory}

    older = {"times": {"e": time(1, 99.0, 9), "f": time(2, 8.0, 3)}}
    notes = {"p": {"times": {"e": time(4, 10.0, 7)}, "earlier": [older]}}
    (tmp_path / "run.json").write_text(json.dumps(notes))
    assert read_kept(tmp_path / "run.json") == {"p/e": (2.5, 7.0), "p/f": (4.0, 3.0)}
    assert read_kept(tmp_path / "none.json") == {}
    (tmp_path / "run.json").write_text("{")
    assert read_kept(tmp_path / "run.json") == {}


def test_cells_without_a_time_do_not_make_the_others_faster(tmp_path):
    def time(untimed, seconds):
        return {"cells": 4, "untimed": untimed, "seconds": seconds, "MB": 7}

    older = {"times": {"gone": time(0, 8.0)}}
    last = {"times": {"some": time(1, 30.0), "gone": time(4, 0.0), "none": time(4, 0.0)}}
    (tmp_path / "run.json").write_text(json.dumps({"p": last | {"earlier": [older]}}))
    assert read_kept(tmp_path / "run.json") == {"p/some": (10.0, 7.0), "p/gone": (2.0, 7.0)}


def test_the_kept_notes_of_this_repository_are_read():
    notes = Path(__file__).parents[3] / "kept/run.json"
    assert {"factorization/fig1", "faps/table4"} <= read_kept(notes).keys()
