"""`fedcore verdicts`: which verdicts it lists, and which have become worse."""

from __future__ import annotations

import json

import pytest

from commands import call, refused_command
from fedcore.repro.config import papers
from fedcore.repro.verdicts import verdict_pages, verdicts


def made(paper="faps", word="holds", name="table1", **more):
    plain = dict(
        section="items", source="Table 1", kind="row", title="iterations", printed="207",
        headline="", measured="210 [200, 220]", why="", because="because", cause="", figure="",
        remark="", readings=(),
    )  # fmt: skip
    return verdicts.Verdict(paper=paper, id=name, word=word, **(plain | more))


@pytest.fixture
def judged(tmp_path):
    """A folder of results with the verdicts of two papers."""
    folder = tmp_path / "results" / "verdicts"
    longer = made("fedrep", "fails", "fig3", printed="FedRep " * 20)
    verdict_pages.write([made(), made(name="table2", word="undecided")], folder / "faps.tsv")
    verdict_pages.write([longer], folder / "fedrep.tsv")
    return folder.parent


def listed(*words):
    return json.loads(call("verdicts", *words, "--json").stdout)


def names(*words):
    return [(one["paper"], one["id"]) for one in listed(*words)]


def test_verdicts_are_listed_and_chosen(judged):
    assert str(judged.parent) in refused_command("verdicts", judged.parent)
    done = call("verdicts", judged)
    assert done.exit_code == 0 and "no headline claims" in done.output
    done = call("verdicts", judged, "--all")
    assert done.exit_code == 0 and "3 items as printed" in done.output
    assert max(map(len, done.output.splitlines())) <= 120
    assert "1 item fails" in call("verdicts", judged, "--paper", "fedrep").output.lower()
    every = [("faps", "table1"), ("faps", "table2"), ("fedrep", "fig3")]
    assert names(judged) == every
    assert names(judged, "--paper", "faps") == every[:2]
    assert names(judged, "--word", "fails") == every[2:]
    assert names(judged, "--paper", "faps", "--word", "undecided") == every[1:2]
    (one,) = listed(judged, "--show", "faps/table1")
    assert (one["measured"], one["word"]) == ("210 [200, 220]", "holds")
    text = call("verdicts", judged, "--show", "table1").output
    assert all(str(one[part]) in text for part in ("printed", "measured", "word", "because"))
    assert names(judged / "verdicts", "--show", "fig3") == every[2:]  # as a checkout keeps them
    for words, name in (
        (("--paper", "fap"), "'faps'"), (("--word", "fail"), "'fails'"),
        (("--show", "tabel1"), "'table1'"), (("--show", "fap/table1"), "'faps/table1'"),
    ):  # fmt: skip
        assert name in refused_command("verdicts", judged, *words)


def test_verdicts_that_became_worse_have_status_1(judged, tmp_path, monkeypatch):
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


def test_verdicts_finds_the_full_run_before_the_quick_one_before_what_is_kept(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    kept = tmp_path / "papers" / "faps"
    verdict_pages.write([made(headline="the lead", measured="kept")], kept / "verdicts.tsv")
    (kept / "claims.yaml").write_text("question: Is it fast?\nitems: []\n")
    found = call("verdicts")
    assert "Is it fast?" in found.stdout and "Yes." in found.stdout and "kept" in found.stderr
    one = call("verdicts", "faps").stdout
    assert one.startswith("Is it fast?\n  Yes.") and "kept" in one
    quick = [made(word="ran", measured=""), made(word="did not run", name="b", measured="")]
    verdict_pages.write(quick, tmp_path / "results" / "quick" / "verdicts.tsv")
    found = call("verdicts").stdout
    assert "says nothing about a paper" in found and "1 ran, 1 did not run" in found
    assert "Yes." in found  # the kept answer
    verdict_pages.write([made()], tmp_path / "results" / "verdicts.tsv")
    assert "no headline claims" in call("verdicts").stdout


def test_a_comparison_needs_a_run_and_one_paper(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call("verdicts", "--strict")
    assert done.exit_code == 1 and "there is none" in done.stderr
    assert "two papers" in refused_command("verdicts", "faps", "--paper", "dppower")
    assert "did you mean 'faps'" in refused_command("verdicts", "fapz")


@pytest.mark.parametrize(
    "words",
    [["job", "plan"], ["verdicts"], ["verdicts", "faps"], ["certify"], ["decide", "--hours", 1]],
)
def test_an_installed_package_says_that_a_checkout_is_needed(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(papers, "CHECKOUT", tmp_path)
    assert "checkout" in refused_command(*words)
