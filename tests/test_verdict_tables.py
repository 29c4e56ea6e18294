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
            path.write_text(f"s\th:m:s\tmax_rss\n{number}.25\t0:00:01\t{memory}\n")
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
        "fig1": {"cells": 2, "by other code": 2, "untimed": 0, "seconds": 3.5, "MB": 3},
        "fig2": {"cells": 1, "by other code": 0, "untimed": 1, "seconds": 0.0, "MB": 0},
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


def test_items_that_a_run_leaves_out_keep_their_verdicts(certificate, results, tmp_path):
    """With the runs that judged them, and only while they have a check."""
    kept, file = tmp_path / "kept", results / "verdicts" / "mf.tsv"
    first = [made(name, "reproduced") for name in "abc"]
    gone = [
        replace(v, verdict="not run", because="left out", readings=(), measured="") for v in first
    ]
    verdict_pages.write(first, file)
    certificate.collect(results, kept, PAPERS, CODES)
    verdict_pages.write([gone[0], gone[1], replace(first[2], measured="7")], file)
    certificate.collect(results, kept, PAPERS, CODES)
    assert [v.measured for v in verdict_pages.read(kept / MF)] == ["6", "6", "7"]
    verdict_pages.write([gone[0], first[1], gone[2]], file)
    certificate.collect(results, kept, PAPERS, CODES)
    assert [v.measured for v in verdict_pages.read(kept / MF)] == ["6", "6", "7"]
    notes = json.loads((kept / "kept/run.json").read_text())["mf"]
    assert [part["items"] for part in notes["earlier"]] == [["c"], ["a"]]
    certificate.collect(results, kept, PAPERS | {"mf": {"a": "a rule"}}, CODES)
    found = verdict_pages.read(kept / MF)
    assert [v.verdict for v in found] == ["reproduced", "reproduced", "not run"]
    for path in (results / "plans").iterdir():  # a run of the whole paper says what it says
        path.write_text(json.dumps(json.loads(path.read_text()) | {"missing": {}}))
    certificate.collect(results, kept, PAPERS, CODES)
    found = verdict_pages.read(kept / MF)
    assert [v.verdict for v in found] == ["not run", "reproduced", "not run"]
    assert json.loads((kept / "kept/run.json").read_text())["mf"]["earlier"] == []


def test_readings_that_a_run_leaves_out_stay(certificate, results, tmp_path):
    kept, file = tmp_path / "kept", results / "verdicts" / "mf.tsv"
    item = replace(made("a", "not run"), measured="")
    gone, no_table = Reading(obstacle="no row"), Reading(obstacle="no table")
    one, other = ((gone, Reading(state="fails", measured=x)) for x in ("70", "71"))
    for now, stays in [(one, one), ((gone,), one), (other, other), ((no_table,), (no_table,))]:
        verdict_pages.write([replace(item, readings=now)], file)
        certificate.collect(results, kept, PAPERS, CODES)
        (found,) = verdict_pages.read(kept / MF)
        assert found.readings == stays


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


def test_an_item_that_a_part_of_a_run_judges_on_fewer_runs_keeps_its_verdict(
    certificate, results, tmp_path
):
    """As one for every problem, where problems are left out; another reading has its own number."""
    kept, file = tmp_path / "kept", results / "verdicts" / "mf.tsv"
    verdict_pages.write([made(name, "reproduced", count=6) for name in "abc"], file)
    certificate.collect(results, kept, PAPERS, CODES)
    now = [
        made(name, "deviates", count=count) for name, count in zip("abc", (4, 6, 4), strict=True)
    ]
    now[2] = replace(now[2], readings=AS_CODE)
    verdict_pages.write(now, file)
    certificate.collect(results, kept, PAPERS, CODES)
    found = verdict_pages.read(kept / MF)
    assert [(v.verdict, v.count) for v in found] == [
        ("reproduced", 6), ("deviates", 6), ("deviates", 4),
    ]  # fmt: skip
    for path in (results / "plans").iterdir():  # a run of the whole paper says what it says
        path.write_text(json.dumps(json.loads(path.read_text()) | {"missing": {}}))
    certificate.collect(results, kept, PAPERS, CODES)
    assert verdict_pages.read(kept / MF) == now


def test_an_item_whose_counterfactual_a_run_leaves_out_keeps_its_verdict(
    certificate, results, tmp_path
):
    kept, file = tmp_path / "kept", results / "verdicts" / "mf.tsv"
    verdict_pages.write([made(name, "reproduced") for name in "ab"], file)
    certificate.collect(results, kept, PAPERS, CODES)
    now = [made(name, "undecided", readings=(Reading(no_rival=name == "a"),)) for name in "ab"]
    verdict_pages.write(now, file)
    certificate.collect(results, kept, PAPERS, CODES)
    found = verdict_pages.read(kept / MF)
    assert [v.verdict for v in found] == ["reproduced", "undecided"]


def test_a_verdict_by_another_rule_is_not_kept(certificate, results, tmp_path):
    kept, file = tmp_path / "kept", results / "verdicts" / "mf.tsv"
    first = [made(name, "reproduced") for name in "ab"]
    verdict_pages.write(first, file)
    certificate.collect(results, kept, PAPERS, CODES)
    verdict_pages.write([replace(v, verdict="not run", measured="") for v in first], file)
    rules = PAPERS["mf"] | {"b": "another rule"}
    certificate.collect(results, kept, PAPERS | {"mf": rules}, CODES)
    found = verdict_pages.read(kept / MF)
    assert [v.verdict for v in found] == ["reproduced", "not run"]


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
