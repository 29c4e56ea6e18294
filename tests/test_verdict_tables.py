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
from fedcore.repro.plan.plan import load_plan
from fedcore.repro.verdicts import verdict_pages, verdicts
from fedcore.repro.verdicts.measurements import Departure
from fedcore.repro.verdicts.verdicts import Reading

ROOT = Path(__file__).parents[1]
MF = "papers/mf/verdicts.tsv"


@pytest.fixture(scope="module")
def certificate(tool):
    return tool("verdicts")


@pytest.fixture(scope="module")
def told(tool):
    """What README says of the verdicts."""
    return tool("readme_verdicts")


def test_pages_and_findings_are_those_of_the_kept_verdicts(certificate, told):
    for page, text in (certificate.pages(ROOT) | told.inserted(ROOT)).items():
        assert (ROOT / page).read_text(encoding="utf-8") == text, "tools/verdicts.py --pages-only"
    kept, _ = certificate.read(ROOT)
    found = [verdict for items in kept.values() for verdict in items]
    assert told.stale(found, read_yaml(told.FINDINGS)) == []


def unturned(found):
    """Return ids of decided items whose kept counterfactual did not turn them, or is not there."""
    decided = {"reproduced", "holds with a departure", "deviates", "contradicts itself"}
    decided |= {"passes", "fails"}
    return [v.id for v in found if v.verdict in decided and not (v.turned and v.counterfactual)]


def test_every_verdict_that_is_kept_was_turned_by_its_counterfactual(certificate):
    kept, _ = certificate.read(ROOT)
    found = [verdict for items in kept.values() for verdict in items]
    assert unturned(found) == []
    one = next(v for v in found if v.turned)
    for fault in ({"turned": False}, {"turned": None}, {"counterfactual": ""}):
        assert unturned([replace(one, **fault)]) == [one.id]


AS_CODE = (Reading((Departure("code", "as the code", "authors' code"),)),)


def made(name, verdict, **more):
    plain = dict(
        paper="mf", section="claims", source="Table 1", kind="cell", quantity=f"rounds of {name}",
        printed="6", accepted="5 to 7", measured="6", place="1 of 3 below", low=5.0, high=7.0,
        count=3, missing=0, because="", readings=(Reading(),), counterfactual="9 printed: fails",
        turned=True,
    )  # fmt: skip
    return verdicts.Verdict(id=name, verdict=verdict, **(plain | more))


GONE = {"readings": (), "measured": "", "count": 0, "turned": None, "counterfactual": ""}
FOUND = [
    made("a", "reproduced"),
    made("b", "deviates", kind="claim", source="Section 2", readings=AS_CODE),
    made("c", "not run", because="no data: CelebA", **GONE),
    made("d", "not run", because="no data: CelebA", **GONE),
    made("e", "not comparable", because="three sets for four", **GONE),
    made("f", "passes", section="software", kind="check", source="audit"),
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
                     "code": "ab" if number < 3 else "cd"}  # fmt: skip
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


PAPERS = {"mf": dict.fromkeys("abcde", "a rule"), "none": {}}
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
    return replace(verdict, verdict="not run", because="left out", readings=(), measured="")


def test_items_that_a_run_leaves_out_keep_their_verdicts(kept, tmp_path):
    """With the runs that judged them, and only while they have a check."""
    first = [made(name, "reproduced") for name in "abc"]
    gone = [left_out(v) for v in first]
    kept(*first)
    for now in ((*gone[:2], replace(first[2], measured="7")), (gone[0], first[1], gone[2])):
        assert [v.measured for v in kept(*now)] == ["6", "6", "7"]
    notes = tmp_path / "kept/kept/run.json"
    earlier = json.loads(notes.read_text())["mf"]["earlier"]
    assert [part["items"] for part in earlier] == [["c"], ["a"]]
    found = kept(*now, papers=PAPERS | {"mf": {"a": "a rule"}})
    assert [v.verdict for v in found] == ["reproduced", "reproduced", "not run"]
    found = kept(*now, papers=PAPERS | {"mf": {"a": "a rule"}}, whole=True)
    assert [v.verdict for v in found] == ["not run", "reproduced", "not run"]
    assert json.loads(notes.read_text())["mf"]["earlier"] == []


GONE_READING, NO_TABLE = Reading(obstacle="no row"), Reading(obstacle="no table")
ONE, OTHER = ((GONE_READING, Reading(state="fails", measured=x)) for x in ("70", "71"))
SIX = made("a", "reproduced", count=6)
FOUR = made("a", "deviates", count=4)
OTHER_RULE = {"papers": PAPERS | {"mf": {"a": "another rule"}}}
PARTS = [  # of an item: what was kept, what a part of a run finds, what is then kept, and options
    *((replace(made("a", "not run"), measured="", readings=old),
       replace(made("a", "not run"), measured="", readings=new), old if stays else new, {})
      for old, new, stays in ((ONE, (GONE_READING,), True), (ONE, OTHER, False),
                              (OTHER, (NO_TABLE,), False))),
    (SIX, FOUR, SIX, {}),  # judged on fewer runs, as problems are left out
    (SIX, replace(FOUR, count=6), replace(FOUR, count=6), {}),
    (SIX, replace(FOUR, readings=AS_CODE), replace(FOUR, readings=AS_CODE), {}),
    (SIX, FOUR, FOUR, {"whole": True}),
    *((made("a", "reproduced"), lost, made("a", "reproduced") if no_rival else lost, {})
      for no_rival in (True, False)
      for lost in (made("a", "undecided", readings=(Reading(no_rival=no_rival),)),)),
    (made("a", "reproduced"), left_out(made("a", "reproduced")), "not run", OTHER_RULE),
]  # fmt: skip


@pytest.mark.parametrize(("before", "now", "then", "options"), PARTS)
def test_what_a_part_of_a_run_finds_replaces_what_it_has_judged_in_full(
    kept, before, now, then, options
):
    kept(before)
    (found,) = kept(now, **options)
    assert then in (found, found.readings, found.verdict)


def test_a_run_without_verdicts_or_a_damaged_table_leaves_what_is_kept(
    certificate, results, tmp_path
):
    kept = tmp_path / "kept"
    with pytest.raises(DataError):
        certificate.collect(tmp_path, kept, PAPERS, CODES)
    certificate.collect(results, kept, PAPERS, CODES)
    before = (kept / MF).read_bytes()
    (results / "verdicts" / "mf.tsv").write_text("a\n1\n")
    with pytest.raises(DataError):
        certificate.collect(results, kept, PAPERS, CODES)
    assert (kept / MF).read_bytes() == before


@pytest.mark.parametrize(
    "change",
    [
        {"test": {"one_run": "7"}},
        {"spread": False},
        {"counterfactual": {"what": "one draw", "scale": 2.0}},
        {"departures": ["code"]},
        {"select": {"table": "u"}},
        {"because": "other words", "quantity": "the same in other words"},
        {"select": {"table": "t", "absent": "words"}, "because": "b"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_rule_is_whatever_can_change_a_verdict(certificate, change):
    """A counterfactual can: what holds there as well is undecided. Words cannot."""
    item = {"id": "a", "select": {"table": "t"}, "test": {"one_run": "6"}, "departures": [],
            "readings": [], "spread": True, "because": "b", "quantity": "q"}  # fmt: skip
    rule, other = (
        certificate.checked({"claims": [one], "software": []})["a"] for one in (item, item | change)
    )
    assert (rule == other) == ("because" in change)
