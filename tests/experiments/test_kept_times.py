"""What is said before a run: sums of known times, and how much is not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedcore.experiments.expectation import Expected, cells_of, expected, kept, measured, sentence

HEAD = "s\tcpu_time\tmax_rss\n"


def test_a_cell_has_its_own_time_or_its_experiments(tmp_path):
    (tmp_path / "p/e/a").mkdir(parents=True)
    (tmp_path / "p/e/a/x.tsv").write_text(HEAD + "7.5\t7\t900.0\n")
    (tmp_path / "p/e/a/y.tsv").write_text(HEAD)  # a killed job's
    usual = {"p/e": (10.0, 100.0)}
    names = ["p/e/a/x", "p/e/a/y", "p/e/a/z", "p/f/a/x"]
    assert expected(names, tmp_path, usual) == Expected(4, 27.5, 900.0, 1)
    assert expected([], tmp_path, usual) == Expected(0, 0.0, 0.0, 0)
    assert measured(tmp_path / "p/e/a/x.tsv") == (7.5, 900.0)
    (tmp_path / "t.tsv").write_text("s\tmax_rss\n1\t-\n")
    assert measured(tmp_path / "t.tsv") == (1.0, 0.0)
    for text in ("", "s\tmax_rss\nx\t1\n", "else\n1\n"):
        (tmp_path / "t.tsv").write_text(text)
        assert measured(tmp_path / "t.tsv") is None


def test_kept_times_are_of_the_last_run_that_has_an_experiment(tmp_path):
    def time(cells, seconds, memory):
        return {"cells": cells, "seconds": seconds, "MB": memory}

    older = {"times": {"e": time(1, 99.0, 9), "f": time(2, 8.0, 3)}}
    notes = {"p": {"times": {"e": time(4, 10.0, 7)}, "earlier": [older]}}
    (tmp_path / "run.json").write_text(json.dumps(notes))
    assert kept(tmp_path / "run.json") == {"p/e": (2.5, 7.0), "p/f": (4.0, 3.0)}
    assert kept(tmp_path / "none.json") == {}
    (tmp_path / "run.json").write_text("{")
    assert kept(tmp_path / "run.json") == {}


def test_cells_without_a_time_do_not_make_the_others_faster(tmp_path):
    def time(untimed, seconds):
        return {"cells": 4, "untimed": untimed, "seconds": seconds, "MB": 7}

    older = {"times": {"gone": time(0, 8.0)}}
    last = {"times": {"some": time(1, 30.0), "gone": time(4, 0.0), "none": time(4, 0.0)}}
    (tmp_path / "run.json").write_text(json.dumps({"p": last | {"earlier": [older]}}))
    assert kept(tmp_path / "run.json") == {"p/some": (10.0, 7.0), "p/gone": (2.0, 7.0)}


@pytest.mark.parametrize(
    ("found", "cores", "says"),
    [
        (Expected(0, 0, 0, 0), 2, ""),
        (Expected(1, 0, 0, 1), 2, "To run: 1 cell; of none is the time known."),
        (Expected(2, 50, 1500, 0), 1, "To run: 2 cells, about 50 s of computing, up to 1.5 GB"),
        (Expected(9, 7200, 10, 1), 2, "about 2.0 h of computing (60 min on 2 cores)"),
        (Expected(9, 7200, 10, 1), 2, "; of 1 cell no time is known."),
    ],
)
def test_the_sentence(found, cores, says):
    said = sentence(found, cores)
    assert says in said and bool(says) == bool(said)


def test_the_kept_notes_of_this_repository_are_read():
    notes = Path(__file__).parents[2] / "docs/verdicts/run.json"
    assert {"factorization/fig1", "faps/table4"} <= kept(notes).keys()


def test_cells_are_those_of_histories():
    found = cells_of(
        ["r/histories/p/e/a/x.h5", "r/seconds/p/e/a/x.tsv", "d/p.h5"], Path("r/histories")
    )
    assert found == ["p/e/a/x"]
