"""Which verdicts the kept tables have after a run, and that pages and README are made of them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedcore.errors import DataError
from fedcore.files.strict_yaml import read_yaml
from fedcore.history import History
from fedcore.repro.config.claims import written_out
from fedcore.repro.plan.plan import load_plan
from fedcore.repro.verdicts import records, verdict_pages, verdicts
from fedcore.repro.verdicts.verdicts import Change, Reading
from refused import refused

ROOT = Path(__file__).parents[1]
MF = "papers/mf/verdicts.tsv"


@pytest.fixture(scope="module")
def certificate(tool):
    return tool("verdicts")


@pytest.fixture(scope="module")
def told(tool):
    """What README says of the verdicts."""
    return tool("readme_verdicts")


def test_pages_are_those_of_the_kept_verdicts(certificate, told):
    for page, text in (certificate.pages(ROOT) | told.inserted(ROOT)).items():
        assert (ROOT / page).read_text(encoding="utf-8") == text, "tools/verdicts.py --pages-only"


@pytest.mark.parametrize("table", verdict_pages.kept_tables(ROOT / "papers"), ids=str)
def test_the_parts_of_kept_readings_have_the_words_of_these(table):
    ran = [one for verdict in verdict_pages.read(table) for one in verdict.readings if one.state]
    for reading in ran:
        states = {part.state for part in reading.parts.values()}
        word = min(states, key=["fails", "undecided", "holds"].index)
        assert (word, word == "undecided") == (reading.state, bool(reading.lack))
        for part in reading.parts.values():
            # A failing reading says of no other part what it lacks; one of today has it as data.
            open_ = part.state == "undecided"
            assert open_ >= bool(part.lack) and (not open_ or part.lack or word == "fails")
            if part.share:
                assert f"{part.share[0]} of {part.share[1]}" in reading.measured


CODE = Change("code", "the signs are those of the code", "authors' code")
AS_CODE = (Reading(replaces=(CODE,), state="fails", measured="6", runs=6),)
OWN = (Reading(state="holds", measured="6", runs=6),)


def made(name, word, **more):
    plain = dict(
        paper="mf", section="items", source="Table 1", kind="row", title=f"rounds of {name}",
        printed="6", headline="", measured="6", why="", because="", cause="", figure="", remark="",
        readings=OWN,
    )  # fmt: skip
    return verdicts.Verdict(id=name, word=word, **(plain | more))


GONE = {"readings": (), "measured": "", "why": "No data."}
FOUND = [
    made("a", "holds", headline="the claim"),
    made("b", "fails", kind="sentence", source="Section 2"),
    made("c", "not run", **GONE),
    made("d", "not run", **GONE),
    made("f", "holds", section="software", kind="check", source="audit"),
]


@pytest.fixture
def results(tmp_path):
    """Results of a run of two papers, one of them without items, as the workflow leaves them."""
    folder = tmp_path / "results"
    verdict_pages.write(FOUND, folder / "verdicts" / "mf.tsv")
    verdict_pages.write([], folder / "verdicts" / "none.tsv")
    for paper in ("mf", "none"):
        cells = {f"{paper}/{e}/ssi/{n}": {"experiment": e, "problem": n}
                 for e, n in (("fig1", "w8a"), ("fig1", "mnist"), ("fig2", "w8a"))}  # fmt: skip
        plan = {"title": "A title", "citation": "Somebody, 2024", "cells": cells}
        plan |= {"missing": {"celeba": "CelebA's images are needed"}}
        (folder / "plans").mkdir(exist_ok=True)
        (folder / "plans" / f"{paper}.json").write_text(json.dumps(plan))
        for number, (cell, settings) in enumerate(cells.items(), start=1):
            problem = {"name": settings["problem"], "status": "official", "note": "A note.",
                       "n_samples": 10, "n_features": 4, "n_clients": 2}  # fmt: skip
            about = {"problem": problem, "versions": {"numpy": "2.4", "python": "3.11.7"},
                     "commit": "abc1234", "code": "ab" if number < 3 else "cd"}  # fmt: skip
            history = History({"iteration": np.zeros((1, 1), int)}, about=about)
            path = folder / "histories" / f"{cell}.h5"
            path.parent.mkdir(parents=True, exist_ok=True)
            history.save(path)
            path = folder / "benchmarks" / f"{cell}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            memory = "-" if number == 1 else f"{number}.5"
            path.write_text(f"s\tcpu_time\tmax_rss\n{number}.25\t{number}\t{memory}\n")
        path.unlink()  # as of a history that was restored without its time
    return folder


PAPERS = {"mf": dict.fromkeys("abcd", "a rule"), "none": {}}
CODES = {
    f"{paper}/{cell}": "cd"
    for paper in ("mf", "none")
    for cell in ("fig1/ssi/w8a", "fig1/ssi/mnist", "fig2/ssi/w8a")
}


def test_a_cell_is_held_against_the_code_that_would_make_it(certificate):
    codes, plan = certificate.codes(), load_plan(read_yaml(ROOT / "config/config.yaml"))
    cell = plan.cells_of("dppower")[0]
    assert codes[cell.path] == cell.code
    assert len(codes) == len(plan.cells)


def test_a_run_becomes_a_certificate(certificate, results, tmp_path):
    kept = tmp_path / "kept"
    certificate.collect(results, kept, PAPERS, CODES)
    assert certificate.read(kept)[0] == {"mf": FOUND, "none": []}
    assert (kept / MF).read_bytes() == (results / "verdicts/mf.tsv").read_bytes()
    notes = json.loads((kept / "kept/run.json").read_text())
    assert set(notes["mf"]["machine"]) == {"CPU", "BLAS", "system"}
    assert notes["mf"]["times"] == {
        "fig1": {
            "cells": 2,
            "by other code": 2,
            "untimed": 0,
            "CPU seconds": 3.0,
            "seconds": 3.5,
            "MB": 3,
        },
        "fig2": {
            "cells": 1,
            "by other code": 0,
            "untimed": 1,
            "CPU seconds": 0.0,
            "seconds": 0.0,
            "MB": 0,
        },
    }


def test_papers_of_earlier_runs_stay_and_those_that_are_gone_are_dropped(
    certificate, results, tmp_path
):
    kept = tmp_path / "kept"
    certificate.collect(results, kept, PAPERS, CODES)
    (results / "verdicts" / "none.tsv").unlink()
    verdict_pages.write(FOUND[:1], results / "verdicts" / "mf.tsv")
    certificate.collect(results, kept, PAPERS, CODES)
    assert certificate.read(kept)[0] == {"mf": FOUND[:1], "none": []}
    certificate.collect(results, kept, {"mf": {}}, CODES)
    assert list(kept.glob("papers/*/*")) == [kept / MF]
    pages = ["docs/verdicts.md", "papers/mf/README.md", "docs/verdicts/mf.md"]
    assert list(certificate.pages(kept)) == pages


@pytest.fixture
def kept(certificate, results, tmp_path):
    """A function that collects a run with these verdicts, and returns those that are then kept."""

    def collect(*found, papers=PAPERS, whole=False):
        verdict_pages.write(found, results / "verdicts" / "mf.tsv")
        for path in (results / "plans").iterdir():
            plan = json.loads(path.read_text())
            path.write_text(json.dumps(plan | {"missing": {} if whole else {"celeba": "needed"}}))
        certificate.collect(results, tmp_path / "kept", papers, CODES)
        return verdict_pages.read(tmp_path / "kept" / MF)

    return collect


def left_out(verdict):
    return replace(verdict, word="not run", why="left out", readings=(), measured="")


def test_items_that_a_run_leaves_out_keep_their_verdicts(kept, tmp_path):
    """With the runs that judged them, and only while they have a check."""
    first = [made(name, "holds") for name in "abc"]
    gone = [left_out(v) for v in first]
    kept(*first)
    notes = tmp_path / "kept/kept/run.json"
    for now in ((*gone[:2], replace(first[2], measured="7")), (gone[0], first[1], gone[2])):
        run = json.loads(notes.read_text())
        run["mf"]["commit"] += ", earlier"
        notes.write_text(json.dumps(run))
        assert [v.measured for v in kept(*now)] == ["6", "6", "7"]
    earlier = json.loads(notes.read_text())["mf"]["earlier"]
    assert [part["items"] for part in earlier] == [["c"], ["a"]]
    found = kept(*now, papers=PAPERS | {"mf": {"a": "a rule"}})
    assert [v.word for v in found] == ["holds", "holds", "not run"]
    found = kept(*now, papers=PAPERS | {"mf": {"a": "a rule"}}, whole=True)
    assert [v.word for v in found] == ["not run", "holds", "not run"]
    assert json.loads(notes.read_text())["mf"]["earlier"] == []


def test_parts_that_one_commit_made_are_one_run(certificate, results, kept, tmp_path):
    """The experiments that a part leaves out keep their times, and are not missing."""
    first = [made(name, "holds") for name in "ab"]
    kept(*first, whole=True)
    notes = tmp_path / "kept/kept/run.json"
    whole = json.loads(notes.read_text())["mf"]
    plan = json.loads((results / "plans/mf.json").read_text())
    cells = {n: s for n, s in plan["cells"].items() if s["experiment"] == "fig2"}
    assert 0 < len(cells) < len(plan["cells"])
    part = {"cells": cells, "missing": {"fig1": "left out"}}
    (results / "plans/mf.json").write_text(json.dumps(plan | part))
    verdict_pages.write(
        [replace(first[0], measured="7"), left_out(first[1])], results / "verdicts/mf.tsv"
    )
    certificate.collect(results, tmp_path / "kept", PAPERS, CODES)
    now = json.loads(notes.read_text())["mf"]
    assert now["earlier"] == [] and now["missing"] == {} and now["times"] == whole["times"]
    assert [v.measured for v in verdict_pages.read(tmp_path / "kept" / MF)] == ["7", "6"]


def of_runs(word, n, **more):
    return made("a", word, readings=(Reading(state=word, measured="6", runs=n),), **more)


OTHERWISE = made("a", "not run", measured="", readings=AS_CODE)
OTHER_RULE = {"papers": PAPERS | {"mf": {"a": "another rule"}}}
PARTS = [  # of an item: what was kept, what a part of a run finds, which is then kept, and options
    (OTHERWISE, left_out(OTHERWISE), 0, {}),
    (left_out(OTHERWISE), OTHERWISE, 1, {}),
    (of_runs("holds", 6), of_runs("fails", 4), 0, {}),  # as problems are left out
    (of_runs("holds", 6), of_runs("fails", 6), 1, {}),
    (of_runs("holds", 6), of_runs("fails", 4), 1, {"whole": True}),
    (made("a", "holds"), left_out(made("a", "holds")), 0, OTHER_RULE),  # and is marked
    (of_runs("holds", 6), of_runs("fails", 4), 1, OTHER_RULE),
]


@pytest.mark.parametrize(("before", "now", "then", "options"), PARTS)
def test_what_a_part_of_a_run_finds_replaces_what_it_has_judged_in_full(
    kept, before, now, then, options
):
    kept(before)
    assert kept(now, **options) == [(before, now)[then]]


def test_an_earlier_word_stays_with_the_test_that_found_it(kept, tmp_path):
    """So that the pages mark it until it is judged again."""
    rules = []
    for now, rule in ((made("a", "holds"), "a rule"), (left_out(made("a", "holds")), "another")):
        kept(now, papers=PAPERS | {"mf": {"a": rule}})
        notes = json.loads((tmp_path / "kept/kept/run.json").read_text())
        rules.append(notes["mf"]["rules"])
    assert rules == [{"a": "a rule"}] * 2


def claims_of(title, code, limit):
    """Return a claims file of two items: one to the letter, and one as the code of the authors."""
    change = {"what": code, "ground": "authors' code", "because": "b", "passages": ["p"]}
    item = {"title": title, "source": "Table 1", "kind": "number", "printed": "6", "because": "b"}
    plain = {"select": {"table": "t", "column": "rounds"}, "test": {"exact": {"at_most": 6}}}
    limited = {"select": plain["select"], "test": {"exact": {"at_most": limit}}}
    items = [item | plain | {"id": "a", "replaces": ["code"]}, item | limited | {"id": "b"}]
    return written_out({"changes": {"code": change}, "items": items}, "mf.yaml")


def test_what_is_kept_takes_the_words_of_today_where_its_test_is_that_of_today(
    certificate, results, tmp_path
):
    before = claims_of("few rounds", "the signs are those of the code", 6)
    found = [made("a", "not run", measured="", readings=AS_CODE, why="no"), made("b", "holds")]
    verdict_pages.write(found, results / "verdicts" / "mf.tsv")
    papers = {"mf": records.fingerprints(before), "none": {}}
    certificate.collect(results, tmp_path / "kept", papers, CODES)
    today = {
        "mf": claims_of("hardly a round", "signs are positive", 7),
        "none": written_out({"items": []}, ""),
    }
    certificate.retell(tmp_path / "kept", today)
    first, second = verdict_pages.read(tmp_path / "kept" / MF)
    assert (first.word, first.title) == ("not run", "hardly a round")
    assert "signs are positive" in first.why and first.otherwise.how == "signs are positive"
    assert replace(first.otherwise, replaces=(CODE,)) == AS_CODE[0]
    assert second.remark and replace(second, remark="") == found[1]  # marked, and not retold


def test_a_run_without_verdicts_or_a_damaged_table_leaves_what_is_kept(
    certificate, results, tmp_path
):
    kept = tmp_path / "kept"
    refused(lambda: certificate.collect(tmp_path, kept, PAPERS, CODES), DataError)
    certificate.collect(results, kept, PAPERS, CODES)
    before = (kept / MF).read_bytes()
    (results / "verdicts" / "mf.tsv").write_text("a\n1\n")
    refused(lambda: certificate.collect(results, kept, PAPERS, CODES), DataError)
    assert (kept / MF).read_bytes() == before
