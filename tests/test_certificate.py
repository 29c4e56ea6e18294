"""docs/verdicts.md, its pages and README's table are what the kept tables of verdicts say."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fedcore.config import claims
from fedcore.config.strict_yaml import read_yaml
from fedcore.errors import DataError
from fedcore.experiments.plan import load_plan
from fedcore.history import History
from fedcore.reports import verdict_pages, verdicts

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def certificate(docs_script):
    return docs_script("verdicts")


@pytest.fixture(scope="module")
def told(docs_script):
    """What README says of the verdicts."""
    return docs_script("readme_verdicts")


def test_the_pages_agree_with_the_kept_tables(certificate):
    found = {
        path.relative_to(ROOT / "docs").as_posix(): path.read_text(encoding="utf-8")
        for path in [ROOT / "docs/verdicts.md", *(ROOT / "docs/verdicts").glob("*.md")]
    }
    assert found == certificate.pages(certificate.KEPT), "run `make verdicts`"


def test_what_is_written_into_other_pages_agrees_with_the_kept_tables(certificate, told):
    made = told.inserted(certificate.KEPT)
    assert list(made) == ["README.md", "docs/privacy.md"]
    for page, text in made.items():
        assert (ROOT / page).read_text(encoding="utf-8") == text, "run `make verdicts`"
    readme, privacy = made.values()
    assert readme.index("## What came out") < readme.index(told.START)
    assert privacy.index("## Audits") < privacy.index(told.START)


def test_every_kept_table_is_of_a_paper_and_has_notes(certificate):
    kept, run = certificate.read(certificate.KEPT)
    tables = {path.stem for path in certificate.KEPT.glob("*.tsv")}
    papers = {path.stem for path in (ROOT / "config/papers").glob("*.yaml")}
    assert tables == kept.keys() == run.keys() <= papers


def test_what_holds_with_a_departure_may_not_have_been_run_as_printed(certificate):
    """Readings that hold beside a printed one without rows: the meaning of the verdict says so."""
    kept, _ = certificate.read(certificate.KEPT)
    held = (v for items in kept.values() for v in items if v.verdict == "holds with a departure")
    if any(re.search("as printed: (not run, )?no row in ", v.reason) for v in held):
        assert "was not run as it stands" in verdicts.VERDICTS["holds with a departure"]


def unturned(found):
    """Return ids of decided items whose kept counterfactual did not turn them, or is not there."""
    decided = {"reproduced", "holds with a departure", "deviates", "contradicts itself"}
    decided |= {"passes", "fails"}
    return [v.id for v in found if v.verdict in decided and not (v.turned and v.counterfactual)]


def test_every_verdict_that_is_kept_was_turned_by_its_counterfactual(certificate):
    kept, _ = certificate.read(certificate.KEPT)
    found = [verdict for items in kept.values() for verdict in items]
    assert unturned(found) == []
    one = next(v for v in found if v.turned)
    for fault in ({"turned": False}, {"turned": None}, {"counterfactual": ""}):
        assert unturned([replace(one, **fault)]) == [one.id]


def powerless(found):
    """Return ids of items that agree, and would agree with a counterfactual, too."""
    agree = {"reproduced", "holds with a departure", "contradicts itself"}
    return [
        v.id for v in found if v.verdict in agree and re.search(": holds(;|$)", v.counterfactual)
    ]


def test_no_verdict_that_is_kept_would_hold_with_a_shifted_number(certificate):
    kept, _ = certificate.read(certificate.KEPT)
    found = [verdict for items in kept.values() for verdict in items]
    assert powerless(found) == []
    one = next(v for v in found if v.verdict == "reproduced")
    both = "506 printed: fails; 168 printed: holds"
    assert powerless([replace(one, counterfactual=both)]) == [one.id]


def test_every_finding_is_of_an_item_and_types_no_decimals(told):
    """What was measured stands in a finding by the name of its item, not as a number."""
    findings = read_yaml(told.FINDINGS)
    for item, finding in findings.items():
        says, others = finding["says"], finding.get("rests_on", {})
        assert set(finding) <= {"verdict", "rests_on", "says"}
        for name in (item, *others, *re.findall(r"\{([^{}]+/[^{}]+)\}", says)):
            paper, known = name.split("/")
            read = claims.read(ROOT / f"config/claims/{paper}.yaml")
            assert known in {i["id"] for i in (*read["claims"], *read["software"])}, name
        assert not re.search(r"\d\.\d", says), f"{item}: name the item that was measured"


def test_every_finding_was_written_for_the_verdicts_that_are_kept(certificate, told):
    kept, _ = certificate.read(certificate.KEPT)
    found = [verdict for items in kept.values() for verdict in items]
    findings = read_yaml(told.FINDINGS)
    assert told.stale(found, findings) == []
    # Another verdict on any of the items that a finding rests on is noticed.
    for item, finding in findings.items():
        for name in (item, *finding.get("rests_on", {})):
            other = [
                replace(v, verdict="undecided" if v.verdict != "undecided" else "deviates")
                if f"{v.paper}/{v.id}" == name
                else v
                for v in found
            ]
            assert any(
                line.startswith(f"{item}: {name} is") for line in told.stale(other, findings)
            )


def made(name, verdict, **more):
    plain = dict(
        paper="mf", section="claims", source="Table 1", kind="cell", quantity=f"rounds of {name}",
        printed="6", protocol="as printed", accepted="5 to 7", measured="6", place="1 of 3 below",
        low=5.0, high=7.0, count=3, missing=0, reason="", counterfactual="9 printed: fails",
        turned=True,
    )  # fmt: skip
    return verdicts.Verdict(id=name, verdict=verdict, **(plain | more))


GONE = {"protocol": "", "measured": "", "count": 0, "turned": None, "counterfactual": ""}
FOUND = [
    made("a", "reproduced"),
    made("b", "deviates", kind="claim", source="Section 2", protocol="as the code (authors' code)"),
    made("c", "not run", reason="no data: CelebA", **GONE),
    made("d", "not run", reason="no data: CelebA", **GONE),
    made("e", "not comparable", reason="not comparable: three sets for four", **GONE),
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
    assert verdict_pages.read_all(kept) == FOUND
    assert sorted(path.name for path in kept.iterdir()) == ["mf.tsv", "none.tsv", "run.json"]
    assert (kept / "mf.tsv").read_bytes() == (results / "verdicts/mf.tsv").read_bytes()
    notes = json.loads((kept / "run.json").read_text())
    assert set(notes["mf"]["machine"]) == {"CPU", "BLAS", "system"}
    assert notes["mf"]["times"] == {
        "fig1": {"cells": 2, "by other code": 2, "untimed": 0, "seconds": 3.5, "MB": 3},
        "fig2": {"cells": 1, "by other code": 0, "untimed": 1, "seconds": 0.0, "MB": 0},
    }
    pages = certificate.pages(kept)
    assert list(pages) == ["verdicts.md", "verdicts/mf.md", "verdicts/none.md"]
    index = pages["verdicts.md"]
    row = "| [mf](verdicts/mf.md) | 5 | 1 | 1 | 1 | 2 |\n"
    assert "| paper | printed items | reproduced | deviates | not comparable | not run |\n" in index
    assert row in index
    assert "Checks of this software, which say nothing of the papers: 1 passes.\n" in index
    page = pages["verdicts/mf.md"]
    for text in (
        "# `mf`: A title\n\nSomebody, 2024. ",
        "| cell | 4 | 1 | 0 | 1 | 2 |\n| claim | 1 | 0 | 1 | 0 | 0 |\n",
        "| not run | no data: CelebA | 2 |\n| not comparable | three sets",
        "| as printed | none | 1 |\n| D1 | as the code (authors' code) | 1 |\n",
        "| w8a | official | 10 | 4 | 2 | A note. |\n",
        "- celeba: CelebA's images are needed\n",
        "- numpy: 2.4\n- python: 3.11.7\n- CPU: ",
        "| fig1 | 2 | 2 | 0 | 3.5 | 3 |\n| fig2 | 1 | 0 | 1 | 0 | 0 |\n"
        "| total | 3 | 2 | 1 | 3.5 | 3 |\n",
        "### Table 1\n",
        "| rounds of a | 6 | 6 [5, 7] | 3 | 5 to 7 | 1 of 3 below | as printed | reproduced |",
        "### Checks of this software\n",
    ):
        assert text in page, text
    for text in pages.values():
        assert re.search(r"\n\n\n", text) is None
        lines = [line for line in text.splitlines() if not line.startswith(("|", "-"))]
        assert max(map(len, lines)) <= 100


def test_a_page_says_what_an_accelerator_has_made_and_names_what_is_left_out_for_one_reason_once(
    certificate, results, tmp_path
):
    kept, path = tmp_path / "kept", results / "histories/mf/fig2/ssi/w8a.h5"
    history = History.load(path)
    history.about["device"] = "cuda"
    history.save(path)
    plan = results / "plans/mf.json"
    missing = {"celeba": "no images", "fig3": "left out", "fig4": "left out"}
    plan.write_text(json.dumps(json.loads(plan.read_text()) | {"missing": missing}))
    certificate.collect(results, kept, PAPERS, CODES)
    pages = certificate.pages(kept)
    assert "\n- device: a core (2 cells), cuda (1 cell)\n" in pages["verdicts/mf.md"]
    assert "\n- celeba: no images\n\n- fig3, fig4: left out\n" in pages["verdicts/mf.md"]
    assert "- device" not in pages["verdicts/none.md"]


def test_readme_gets_a_row_per_paper_the_meanings_and_the_findings(
    certificate, results, tmp_path, told
):
    certificate.collect(results, tmp_path / "kept", PAPERS, CODES)
    findings = tmp_path / "findings.yaml"
    findings.write_text(
        'mf/b: {verdict: deviates, says: "Not so: a needs {mf/a} rounds."}\n'
        "else/c: {verdict: deviates, says: Not kept.}\n"
    )
    between = told.section(tmp_path / "kept", findings)
    assert "| [`mf`](docs/verdicts/mf.md): Somebody, 2024 | 5 | 1 | 1 | 1 | 2 |\n" in between
    words = " ".join(between.split())
    for name in ("reproduced", "deviates", "not comparable", "not run"):
        assert f"*{name.capitalize()}*: {verdicts.VERDICTS[name]}" in words
    row = "| `mf` | rounds of b: 6 (Section 2) | 6 | deviates | Not so: a needs 6 rounds. |\n"
    assert row in between and "Not kept" not in between
    text = f"head\n{told.START}\nold\n{told.END}\ntail\n"
    new = told.between_comments(text, between, "README.md")
    assert new.startswith("head\n") and new.endswith("\ntail\n") and "old" not in new
    assert told.between_comments(new, between, "README.md") == new
    with pytest.raises(DataError, match="once each"):
        told.between_comments("head\n", between, "README.md")


@pytest.mark.parametrize("item", ["mf/c", "mf/unknown"])
@pytest.mark.parametrize(
    "text",
    [
        "{item}: {{verdict: deviates, says: text}}",
        "mf/a: {{verdict: reproduced, says: '{{{item}}} rounds'}}",
    ],
)
def test_a_finding_needs_a_measured_item(certificate, results, tmp_path, item, text, told):
    certificate.collect(results, tmp_path / "kept", PAPERS, CODES)
    (tmp_path / "findings.yaml").write_text(text.format(item=item))
    with pytest.raises(DataError, match=f"measured of {item}"):
        told.section(tmp_path / "kept", tmp_path / "findings.yaml")


def test_the_audits_of_the_last_runs_are_listed(certificate, results, tmp_path, told):
    audit = made("audit-x", "passes", section="software", kind="check", source="Definition 1")
    verdict_pages.write([*FOUND, audit], results / "verdicts" / "mf.tsv")
    certificate.collect(results, tmp_path / "kept", PAPERS, CODES)
    table = told.audits(tmp_path / "kept")
    assert "| rounds of audit-x | 6 | 9 printed: fails | passes | 2" in table
    assert table.count("\n") == 3  # the check that is no audit is not there


def test_papers_of_earlier_runs_stay_and_those_that_are_gone_are_dropped(
    certificate, results, tmp_path
):
    kept = tmp_path / "kept"
    certificate.collect(results, kept, PAPERS, CODES)
    (results / "verdicts" / "none.tsv").unlink()
    verdict_pages.write(FOUND[:1], results / "verdicts" / "mf.tsv")
    certificate.collect(results, kept, PAPERS, CODES)
    assert [path.name for path in sorted(kept.glob("*.tsv"))] == ["mf.tsv", "none.tsv"]
    assert verdict_pages.read_all(kept) == FOUND[:1]
    certificate.collect(results, kept, {"mf": {}}, CODES)
    assert [path.name for path in kept.glob("*.tsv")] == ["mf.tsv"]
    assert list(certificate.pages(kept)) == ["verdicts.md", "verdicts/mf.md"]


def test_items_that_a_run_leaves_out_keep_their_verdicts(certificate, results, tmp_path):
    """With the runs that judged them, and only while they have a check."""
    kept, file = tmp_path / "kept", results / "verdicts" / "mf.tsv"
    first = [made(name, "reproduced") for name in "abc"]
    gone = [replace(v, verdict="not run", reason="left out", measured="") for v in first]
    verdict_pages.write(first, file)
    certificate.collect(results, kept, PAPERS, CODES)
    verdict_pages.write([gone[0], gone[1], replace(first[2], measured="7")], file)
    certificate.collect(results, kept, PAPERS, CODES)
    assert [v.measured for v in verdict_pages.read(kept / "mf.tsv")] == ["6", "6", "7"]
    verdict_pages.write([gone[0], first[1], gone[2]], file)
    certificate.collect(results, kept, PAPERS, CODES)
    assert [v.measured for v in verdict_pages.read(kept / "mf.tsv")] == ["6", "6", "7"]
    notes = json.loads((kept / "run.json").read_text())["mf"]
    assert [part["items"] for part in notes["earlier"]] == [["c"], ["a"]]
    page = certificate.pages(kept)["verdicts/mf.md"]
    assert "The last run left this item out: `c`." in " ".join(page.split())
    listed = certificate.pages(kept)["verdicts.md"].split("## The runs")[1]
    assert re.findall(r"^\| (mf.*?) \|", listed, re.MULTILINE) == [
        "mf",
        *["mf, 1 item of before"] * 2,
    ]
    certificate.collect(results, kept, PAPERS | {"mf": {"a": "a rule"}}, CODES)
    found = verdict_pages.read(kept / "mf.tsv")
    assert [v.verdict for v in found] == ["reproduced", "reproduced", "not run"]
    for path in (results / "plans").iterdir():  # a run of the whole paper says what it says
        path.write_text(json.dumps(json.loads(path.read_text()) | {"missing": {}}))
    certificate.collect(results, kept, PAPERS, CODES)
    found = verdict_pages.read(kept / "mf.tsv")
    assert [v.verdict for v in found] == ["not run", "reproduced", "not run"]
    assert json.loads((kept / "run.json").read_text())["mf"]["earlier"] == []


def test_readings_that_a_run_leaves_out_stay(certificate, results, tmp_path):
    kept, file = tmp_path / "kept", results / "verdicts" / "mf.tsv"
    item = replace(made("a", "not run"), measured="")
    one, other = (f"no row in t.tsv; another way: {x}" for x in ("70", "71"))
    for reason, stays in [(one, one), ("no row in t.tsv", one), (other, other), ("gone", "gone")]:
        verdict_pages.write([replace(item, reason=reason)], file)
        certificate.collect(results, kept, PAPERS, CODES)
        (found,) = verdict_pages.read(kept / "mf.tsv")
        assert found.reason == stays


def test_a_run_without_verdicts_or_a_damaged_table_leaves_what_is_kept(
    certificate, results, tmp_path
):
    kept = tmp_path / "kept"
    with pytest.raises(DataError, match="make reproduce"):
        certificate.collect(tmp_path, kept, PAPERS, CODES)
    certificate.collect(results, kept, PAPERS, CODES)
    before = (kept / "mf.tsv").read_bytes()
    (results / "verdicts" / "mf.tsv").write_text("a\n1\n")
    with pytest.raises(DataError):
        certificate.collect(results, kept, PAPERS, CODES)
    assert (kept / "mf.tsv").read_bytes() == before


def test_nothing_kept_is_said(certificate, tmp_path, told):
    assert list(certificate.pages(tmp_path)) == ["verdicts.md"]
    assert "No verdicts are kept" in certificate.pages(tmp_path)["verdicts.md"]
    between = told.section(tmp_path, told.FINDINGS)
    assert "No verdicts are kept" in between
    rows = told.inventory()
    claimed = {path.stem for path in (ROOT / "config/claims").glob("*.yaml")}
    assert {row["paper"] for row in rows} == claimed
    assert re.findall(r"^\| `(\w+)` \|", between, re.MULTILINE) == [row["paper"] for row in rows]
    assert f"| total | {sum(row['printed items'] for row in rows)} |" in between


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
    now[2] = replace(now[2], protocol="as the code (authors' code)")
    verdict_pages.write(now, file)
    certificate.collect(results, kept, PAPERS, CODES)
    found = verdict_pages.read(kept / "mf.tsv")
    assert [(v.verdict, v.count) for v in found] == [
        ("reproduced", 6), ("deviates", 6), ("deviates", 4),
    ]  # fmt: skip
    for path in (results / "plans").iterdir():  # a run of the whole paper says what it says
        path.write_text(json.dumps(json.loads(path.read_text()) | {"missing": {}}))
    certificate.collect(results, kept, PAPERS, CODES)
    assert verdict_pages.read(kept / "mf.tsv") == now


def test_an_item_whose_counterfactual_a_run_leaves_out_keeps_its_verdict(
    certificate, results, tmp_path
):
    kept, file = tmp_path / "kept", results / "verdicts" / "mf.tsv"
    verdict_pages.write([made(name, "reproduced") for name in "ab"], file)
    certificate.collect(results, kept, PAPERS, CODES)
    reasons = {"a": "its counterfactual could not be run: one draw: no row", "b": "a toss"}
    now = [made(name, "undecided", reason=reason) for name, reason in reasons.items()]
    verdict_pages.write(now, file)
    certificate.collect(results, kept, PAPERS, CODES)
    found = verdict_pages.read(kept / "mf.tsv")
    assert [v.verdict for v in found] == ["reproduced", "undecided"]


def test_a_verdict_by_another_rule_is_not_kept(certificate, results, tmp_path):
    kept, file = tmp_path / "kept", results / "verdicts" / "mf.tsv"
    first = [made(name, "reproduced") for name in "ab"]
    verdict_pages.write(first, file)
    certificate.collect(results, kept, PAPERS, CODES)
    verdict_pages.write([replace(v, verdict="not run", measured="") for v in first], file)
    rules = PAPERS["mf"] | {"b": "another rule"}
    certificate.collect(results, kept, PAPERS | {"mf": rules}, CODES)
    found = verdict_pages.read(kept / "mf.tsv")
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


def test_the_data_and_the_date_of_items_that_stay_are_those_of_their_run(
    certificate, results, tmp_path, told
):
    """Also where an experiment, and no problem by name, is left out."""
    kept, file = tmp_path / "kept", results / "verdicts" / "mf.tsv"
    plans = results / "plans" / "mf.json"
    papers = PAPERS | {"mf": dict.fromkeys(("audit-x", "audit-y"), "a rule")}
    first = [made(name, "passes", section="software") for name in ("audit-x", "audit-y")]
    verdict_pages.write(first, file)
    os.utime(file, (0, 0))
    certificate.collect(results, kept, papers, CODES)
    plan = json.loads(plans.read_text())
    plan["cells"] = {cell: v for cell, v in plan["cells"].items() if v["problem"] == "w8a"}
    plans.write_text(json.dumps(plan | {"missing": {"fig2": "left out"}}))
    verdict_pages.write([first[0], replace(first[1], verdict="not run", measured="")], file)
    os.utime(file, (86400, 86400))
    certificate.collect(results, kept, papers, CODES)
    assert "| mnist |" in certificate.pages(kept)["verdicts/mf.md"]
    dates = re.findall(r"(audit-[xy]).* (1970-01-\d\d) ", told.audits(kept))
    assert dates == [("audit-x", "1970-01-02"), ("audit-y", "1970-01-01")]
    verdict_pages.write(first, file)  # nothing stays of the earlier run
    certificate.collect(results, kept, papers, CODES)
    assert "| mnist |" not in certificate.pages(kept)["verdicts/mf.md"]
