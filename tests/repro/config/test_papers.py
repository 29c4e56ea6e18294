"""Papers by name and by path: which files they are, and what is refused."""

from __future__ import annotations

import functools
import importlib
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
    root.mkdir()
    monkeypatch.chdir(root)
    write(root / "papers/own")
    write(tmp_path / "elsewhere/hospital")
    return root


def planned(config):
    return load_plan(config, Path.cwd())


# Rules of the workflow, words of Python and what is no module.
NO_NAMES = ("smith-2024", "2024smith", "class", "verdicts", "report", "run_local")


def write(folder, **changes):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "experiments.yaml").write_text(yaml.safe_dump(HOSPITAL | changes), encoding="utf-8")


def test_a_path_and_a_name_go_the_same_road(checkout):
    plan = planned({"papers": ["own", "../elsewhere/hospital"]})
    assert list(plan.papers) == ["own", "hospital"]
    assert [cell.paper for cell in plan.cells.values()] == ["own", "hospital"]
    own, outside = plan.files.values()
    assert (own.folder, outside.folder) == (checkout / "papers/own", Path("../elsewhere/hospital"))
    assert own.notebook == checkout / "notebooks/own.ipynb"
    assert outside.notebook == Path("../elsewhere/hospital/figures.ipynb")
    assert (own.entry, outside.entry) == ("own", "../elsewhere/hospital")
    # Neither has a module for its tables, and so both have the usual one.
    for paper in plan.papers:
        described = plan.describe(paper)
        assert plan.files[paper].tables == "fedcore.repro.tables.report"
        assert list(described["tables"]) == ["ends"] and described["figures"] == {}
        assert not described["judged"]
    # The text of the entry is no seed: the same paper has the same cells from any place.
    again = planned({"papers": [str(checkout.parent / "elsewhere/hospital")]})
    assert again.cells == {p: c for p, c in plan.cells.items() if c.paper == "hospital"}


def test_without_a_list_there_are_the_checkouts_own(checkout):
    assert list(planned({}).papers) == ["own"]


def test_overrides_name_it_by_its_name(checkout):
    entry = "../elsewhere/hospital"
    changes = {"hospital": {"experiments": {"first": {"repeats": 7}}}}
    plan = planned({"papers": [entry], "overrides": changes})
    assert [cell.repeats for cell in plan.cells.values()] == [7]
    out = planned({"papers": [entry], "overrides": {"hospital": {"cells": {"first/*": False}}}})
    assert not out.cells and list(out.missing_of("hospital")) == ["first"]


def test_claims_beside_it_are_read_and_their_file_is_named(checkout):
    claims = checkout.parent / "elsewhere/hospital/claims.yaml"
    claims.write_text("items: []\ntables: {}\n", encoding="utf-8")
    entry = "../elsewhere/hospital"
    assert planned({"papers": [entry]}).judged == ["hospital"]
    claims.write_text("items: []\ntabels: {}\n", encoding="utf-8")
    name = "../elsewhere/hospital/claims.yaml"
    plan = planned({"papers": [entry]})
    refused(lambda: plan.claims_of("hospital"), ConfigError, name, "'tabels'")


@pytest.mark.parametrize(
    ("entry", "name"),
    [
        ("../nowhere/x", "../nowhere/x/experiments.yaml"),
        ("../elsewhere/own", "papers/own"),
        ("../br{a}ce/x", "br{a}ce"),
        ("../elsewhere/all", "'all'"),
        ("../elsewhere/a-b", "'a-b'"),
        ("../elsewhere/bad", "'tittle'"),
        ("../elsewhere/bare", "'citation'"),
        ("../elsewhere/list", "mapping"),
        ("hospital.yaml", "hospital.yaml"),
        ("hopsital", "'hopsital'"),
        *((name, f"'{name}'") for name in NO_NAMES),
    ],
)
def test_what_is_no_paper_is_refused(checkout, entry, name):
    elsewhere = checkout.parent / "elsewhere"
    for paper in ("own", "../br{a}ce/x", "all", "a-b"):
        write(elsewhere / paper)
    write(elsewhere / "bad", tittle="x")
    for wrong, text in {
        "bare": "title: x\nproblems: {}\nexperiments: {}\n",
        "list": "[]\n",
    }.items():
        (elsewhere / wrong).mkdir()
        (elsewhere / wrong / "experiments.yaml").write_text(text)
    refused(lambda: planned({"papers": [entry]}), ConfigError, name)


WRITTEN = ("raw", "clients", "results")


@pytest.mark.parametrize("key", ["clients", "results"])
@pytest.mark.parametrize(
    "folder", [".", "../checkout", "notebooks", "papers/own", "kept/x", "link"]
)
def test_results_over_the_checkout_s_own_files_are_refused(checkout, key, folder):
    (checkout / "link").symlink_to("notebooks")
    refused(lambda: planned({"paths": {key: folder}}), ConfigError, f"paths.{key}", folder)


def test_results_lie_anywhere_else(checkout, monkeypatch):
    monkeypatch.setenv("HOME", str(checkout.parent))
    for folder in ("..", "new", "data/results", "../elsewhere/hospital/results", "~/results"):
        plan = planned({"paths": dict.fromkeys(WRITTEN, folder)})
        assert {*plan.config["paths"].values()} == {folder.replace("~", str(checkout.parent))}


def test_two_of_one_name_are_refused(checkout):
    entries = ["../elsewhere/hospital", "../other/hospital"]
    write(checkout.parent / "other/hospital")
    refused(lambda: planned({"papers": entries}), ConfigError, *entries)


def test_the_path_of_an_own_paper_is_that_paper(checkout):
    plan = planned({"papers": ["papers/own"]})
    assert plan.files["own"].entry == "own"


def test_figures_and_tables_that_nothing_makes_name_the_missing_file(checkout):
    folder = checkout.parent / "elsewhere/hospital"

    def needed(**changes):
        write(folder, **changes)
        plan = planned({"papers": [str(folder)]})
        papers.require_drawable(plan.files["hospital"], plan.papers["hospital"])

    needed()
    needed(tables={"ends": "My words for it"})
    for wrong, name in (({"figures": {"front": "A front"}}, f"{folder}/figures.ipynb"),
                        ({"tables": {"mine": "My own"}}, f"{folder}/tables.py")):  # fmt: skip
        refused(functools.partial(needed, **wrong), ConfigError, name)
    (folder / "tables.py").write_text("TABLES = {}\n")
    (folder / "figures.ipynb").write_text("{}")
    needed(figures={"front": "A front"}, tables={"mine": "My own"})


def test_its_modules_are_imported_unless_another_has_its_name(checkout, monkeypatch):
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("ward_tables", "statistics", "json"):
        write(checkout.parent / f"elsewhere/{name}")
        (checkout.parent / f"elsewhere/{name}/tables.py").write_text("TABLES = {}\n")
    names = ("ward_tables", "statistics", "json")
    found = papers.chosen([f"../elsewhere/{name}" for name in names], {})
    found["ward_tables"].make_importable()
    assert found["ward_tables"].tables == "ward_tables.tables"
    assert importlib.import_module("ward_tables.tables").TABLES == {}
    for name in names[1:]:  # a module and a package of Python's own
        refused(found[name].make_importable, ConfigError, f"{name}/tables.py")
    assert sys.path[-1] == str(checkout / "../elsewhere")


def test_a_plan_says_where_its_files_are(checkout):
    plan = planned({"papers": ["own", "../elsewhere/hospital"]})
    for paper, files in plan.files.items():
        entry = json.loads(json.dumps(plan.describe(paper)))["entry"]
        assert papers.at(entry, checkout) == files
