"""Papers by name and by path: which files they are, and what is refused."""

from __future__ import annotations

import functools
import json
import sys
from pathlib import Path

import pytest
import yaml

from fedcore.errors import ConfigError
from fedcore.repro.config import papers
from fedcore.repro.plan.plan import load_plan
from refused import refused

HOSPITAL = {
    "title": "A hospital",
    "citation": "Nobody",
    "problems": {
        "drawn": {
            "generator": "low_rank",
            "params": {"n_clients": 3, "samples": 8, "n_features": 6, "rank": 2},
            "defaults": {"n_components": 2},
        }
    },
    "experiments": {
        "first": {
            "reproduces": "nothing",
            "problems": ["drawn"],
            "repeats": 2,
            "metrics": ["objective"],
            "runs": [{"algorithm": "one_shot"}],
        }
    },
}


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A checkout with one paper, and beside it a folder with another; Python runs in the first."""
    root = tmp_path / "checkout"
    (root / "config/papers").mkdir(parents=True)
    monkeypatch.chdir(root)
    write(root / "config/papers/own.yaml")
    write(tmp_path / "elsewhere/hospital.yaml")
    return root


def write(path, **changes):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(HOSPITAL | changes), encoding="utf-8")


def test_a_path_and_a_name_go_the_same_road(checkout):
    plan = load_plan({"papers": ["own", "../elsewhere/hospital.yaml"]})
    assert list(plan.papers) == ["own", "hospital"]
    assert [cell.paper for cell in plan.cells.values()] == ["own", "hospital"]
    own, outside = plan.files.values()
    assert (own.paper, outside.paper) == (
        Path("config/papers/own.yaml"), Path("../elsewhere/hospital.yaml")
    )  # fmt: skip
    assert (own.claims, outside.claims) == (
        Path("config/claims/own.yaml"), Path("../elsewhere/hospital.claims.yaml")
    )  # fmt: skip
    assert (own.notebook, outside.notebook) == (
        Path("notebooks/own.ipynb"), Path("../elsewhere/hospital.ipynb")
    )  # fmt: skip
    assert (own.module, outside.module) == ("fedcore.reports.papers.own", "hospital")
    assert (own.outside, outside.outside) == (False, True)
    # Neither has a module for its tables, and so both have the usual one.
    for paper in plan.papers:
        described = plan.describe(paper)
        assert described["files"]["tables"] == "fedcore.repro.tables.default_tables"
        assert list(described["tables"]) == ["ends"] and described["figures"] == {}
        assert not described["judged"]
    # The text of the entry is no seed: the same paper has the same cells from any place.
    again = load_plan({"papers": [str(checkout.parent / "elsewhere/hospital.yaml")]})
    assert again.cells == {p: c for p, c in plan.cells.items() if c.paper == "hospital"}


def test_without_a_list_there_are_the_checkouts_own(checkout):
    assert list(load_plan({}).papers) == ["own"]


def test_overrides_and_leave_out_name_it_by_its_name(checkout):
    entry = "../elsewhere/hospital.yaml"
    changes = {"hospital": {"experiments": {"first": {"repeats": 7}}}}
    plan = load_plan({"papers": [entry], "overrides": changes})
    assert [cell.repeats for cell in plan.cells.values()] == [7]
    out = load_plan({"papers": [entry], "leave_out": {"hospital": ["first"]}})
    assert not out.cells and list(out.left_out_of("hospital")) == ["first"]


def test_claims_beside_it_are_read_and_their_file_is_named(checkout):
    claims = checkout.parent / "elsewhere/hospital.claims.yaml"
    claims.write_text("claims: []\ntables: {}\n", encoding="utf-8")
    entry = "../elsewhere/hospital.yaml"
    assert load_plan({"papers": [entry]}).judged == ["hospital"]
    claims.write_text("claims: []\ntabels: {}\n", encoding="utf-8")
    name = "../elsewhere/hospital.claims.yaml"
    refused(lambda: load_plan({"papers": [entry]}), ConfigError, name, "'tabels'")


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ("../nowhere/x.yaml", "../nowhere/x.yaml"),
        ("../elsewhere/own.yaml", "config/papers/own"),
        ("../br{a}ce/x.yaml", "br{a}ce"),
        ("../elsewhere/all.yaml", "'all'"),
        ("../elsewhere/a-b.yaml", "'a-b'"),
        ("../elsewhere/bad.yaml", "'tittle'"),
        ("../elsewhere/bare.yaml", "'citation'"),
        ("../elsewhere/list.yaml", "mapping"),
        ("../elsewhere/hospital.yml", "hospital.yml"),
        ("hopsital", "'hopsital'"),
    ],
)
def test_what_is_no_paper_is_refused(checkout, entry, name):
    elsewhere = checkout.parent / "elsewhere"
    for paper in ("own", "../br{a}ce/x", "all", "a-b"):
        write(elsewhere / f"{paper}.yaml")
    write(elsewhere / "bad.yaml", tittle="x")
    (elsewhere / "bare.yaml").write_text("title: x\nproblems: {}\nexperiments: {}\n")
    (elsewhere / "list.yaml").write_text("[]\n")
    refused(lambda: load_plan({"papers": [entry]}), ConfigError, name)


def test_two_of_one_name_are_refused(checkout):
    entries = ["../elsewhere/hospital.yaml", "../other/hospital.yaml"]
    write(checkout.parent / "other/hospital.yaml")
    refused(lambda: load_plan({"papers": entries}), ConfigError, *entries)


def test_the_path_of_an_own_paper_is_that_paper(checkout):
    plan = load_plan({"papers": ["config/papers/own.yaml"]})
    assert not plan.files["own"].outside and plan.files["own"].entry == "own"


def test_figures_and_tables_that_nothing_makes_name_the_missing_file(checkout):
    file = checkout.parent / "elsewhere/hospital.yaml"

    def needed(**changes):
        write(file, **changes)
        plan = load_plan({"papers": [str(file)]})
        papers.require_drawable(plan.files["hospital"], plan.papers["hospital"])

    needed()
    needed(tables={"ends": "My words for it"})
    for wrong, end in (({"figures": {"front": "A front"}}, ".ipynb"),
                       ({"tables": {"mine": "My own"}}, ".py")):  # fmt: skip
        name = f"{file.parent}/hospital{end}"
        refused(functools.partial(needed, **wrong), ConfigError, name)
    file.with_suffix(".py").write_text("TABLES = {}\n")
    file.with_suffix(".ipynb").write_text("{}")
    needed(figures={"front": "A front"}, tables={"mine": "My own"})


def test_a_module_beside_it_is_imported_unless_another_has_its_name(checkout, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("ward_tables", "statistics"):
        write(checkout.parent / f"elsewhere/{name}.yaml")
        (checkout.parent / f"elsewhere/{name}.py").write_text("TABLES = {}\n")
    found = papers.chosen(["../elsewhere/ward_tables.yaml", "../elsewhere/statistics.yaml"], {})
    papers.make_importable(found["ward_tables"].report, "ward_tables")
    assert found["ward_tables"].tables == "ward_tables"
    call = functools.partial(papers.make_importable, found["statistics"].report, "statistics")
    refused(call, ConfigError, "statistics.py")
    assert sys.path[-1] == str(checkout / "../elsewhere")


def test_a_plan_says_where_the_claims_are(checkout, tmp_path):
    plan = load_plan({"papers": ["../elsewhere/hospital.yaml"]})
    text = json.loads(json.dumps(plan.describe("hospital")))
    claims = papers.claims_of("hospital", text)
    assert claims == Path("../elsewhere/hospital.claims.yaml")
    assert papers.claims_of("own", None) == Path("config/claims/own.yaml")
    assert papers.entry_of(tmp_path, "hospital") is None
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans/hospital.json").write_text(json.dumps(text))
    assert papers.entry_of(tmp_path, "hospital") == "../elsewhere/hospital.yaml"
