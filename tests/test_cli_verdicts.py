"""`fedcore verdicts`: which verdicts it lists, and which have become worse."""

from __future__ import annotations

import json

import pytest

from commands import call, refused_command
from fedcore.repro.verdicts import verdict_pages, verdicts


def made(paper="faps", verdict="reproduced", name="table1", **more):
    plain = dict(
        section="claims", source="Table 1", kind="cell", quantity="iterations", printed="207",
        accepted="200 to 220", measured="210", place="1 of 5 below",
        low=200.0, high=float("inf"), count=5, missing=0, because="because", readings=(),
        counterfactual="310 printed: fails", turned=True, where="counts.tsv, rounds",
    )  # fmt: skip
    return verdicts.Verdict(paper=paper, id=name, verdict=verdict, **(plain | more))


@pytest.fixture
def judged(tmp_path):
    """A folder of results with the verdicts of two papers, not yet merged."""
    folder = tmp_path / "results" / "verdicts"
    longer = made("fedrep", "deviates", "fig3", printed="FedRep " * 20)
    verdict_pages.write([made(), made(name="table2", verdict="undecided")], folder / "faps.tsv")
    verdict_pages.write([longer], folder / "fedrep.tsv")
    return folder.parent


def listed(*words):
    return json.loads(call("verdicts", *words, "--json").stdout)


def names(*words):
    return [(one["paper"], one["id"]) for one in listed(*words)]


def test_verdicts_are_merged_listed_and_chosen(judged):
    assert str(judged) in refused_command("verdicts", judged)
    done = call("verdicts", judged, "--combine")
    assert done.exit_code == 0 and "2 printed items" in done.output
    assert max(map(len, done.output.splitlines())) <= 120
    every = [("faps", "table1"), ("faps", "table2"), ("fedrep", "fig3")]
    assert names(judged) == every
    assert names(judged, "--paper", "faps") == every[:2]
    assert names(judged, "--verdict", "deviates") == every[2:]
    assert names(judged, "--paper", "faps", "--verdict", "undecided") == every[1:2]
    (one,) = listed(judged, "--show", "faps/table1")
    assert (one["measured"], one["low"], one["high"]) == ("210", 200, None)
    text = call("verdicts", judged, "--show", "table1").output
    assert all(str(one[part]) in text for part in ("printed", "measured", "where", "verdict"))
    assert names(judged / "verdicts", "--show", "fig3") == every[2:]  # as a checkout keeps them
    for words, name in (
        (("--paper", "fap"), "'faps'"), (("--verdict", "deviate"), "'deviates'"),
        (("--show", "tabel1"), "'faps/table1'"), (("--show", "fap/table1"), "'faps/table1'"),
    ):  # fmt: skip
        assert name in refused_command("verdicts", judged, *words)


def test_verdicts_that_became_worse_have_status_1(judged, tmp_path, monkeypatch):
    call("verdicts", judged, "--combine")
    verdict_pages.write([made(name="table2"), made(name="old")], tmp_path / "kept" / "faps.tsv")
    for kept in ("kept", "kept/faps.tsv"):
        found = call("verdicts", judged, "--strict", tmp_path / kept)
        lines = found.stdout.splitlines()
        assert found.exit_code == 1 and len(lines) == 2
        assert lines[0].startswith("faps/table2: ") and lines[1].startswith("faps/old: ")
        told = call("verdicts", judged, "--strict", tmp_path / kept, "--json")
        assert told.exit_code == 1 and json.loads(told.stdout) == lines
    monkeypatch.chdir(tmp_path)  # where a checkout has its kept verdicts
    paper = tmp_path / "papers" / "faps"
    verdict_pages.write([made(name="table2")], paper / "verdicts.tsv")
    (paper / "claims.yaml").touch()
    assert call("verdicts", judged, "--strict").exit_code == 1
    assert call("verdicts", judged, "--strict", judged / "verdicts").exit_code == 0
    (tmp_path / "empty").mkdir()
    for nothing in ("empty", "gone"):
        assert nothing in refused_command("verdicts", judged, "--strict", nothing)


def test_verdicts_finds_those_of_the_quick_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    verdict_pages.write([made()], tmp_path / "results" / "quick" / "verdicts.tsv")
    quick = call("verdicts")
    assert quick.exit_code == 0 and "1 reproduced" in quick.stdout and "quick" in quick.stderr
    verdict_pages.write([made()], tmp_path / "results" / "verdicts.tsv")
    assert call("verdicts").stderr == ""
