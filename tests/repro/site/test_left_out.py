"""Tables, notebook and verdicts of a paper are made, whatever its configuration leaves out.

All experiments are, so that this needs no results. With those of `make quickstart` and
FEDCORE_TEST_QUICK=1 in the environment, every experiment and every problem is left out by itself,
and all experiments but one, which takes a quarter of an hour.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

import papermill
import pytest

from fedcore.__main__ import main
from fedcore.reports import plotting
from fedcore.repro.config.papers import list_papers
from fedcore.repro.plan.plan import Plan, load_plan
from fedcore.repro.site import left_out, model
from fedcore.repro.verdicts import verdict_pages, verdicts

PAPERS = list(list_papers())


@functools.cache
def planned(paper: str, *names: str) -> Plan:
    """Return the plan of a paper without some of its experiments."""
    cells = {"*": {}} | {f"{name}/*": False for name in names}
    overrides = {paper: {"cells": cells}}
    config = {"papers": [paper], "overrides": overrides, "quick": True, "surrogates": True}
    return load_plan(config)


def job(*words: object) -> None:
    main(["job", *map(str, words)], standalone_mode=False)


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Make everything of a paper as the workflow does, after its cells; return the folder."""

    def make(paper: str, plan: Plan) -> Path:
        plan.config["paths"]["results"] = str(tmp_path)
        file = tmp_path / "plans" / f"{paper}.json"
        file.parent.mkdir()
        file.write_bytes(plan.made(paper)[1])
        job("tables", file)
        if paper in plan.judged:
            claims = plan.files[paper].claims
            job("verdicts", file, claims, tmp_path / "verdicts" / f"{paper}.tsv")
        executed = tmp_path / "notebooks" / f"{paper}.ipynb"
        executed.parent.mkdir()
        monkeypatch.setenv("PYTHONPATH", str(plan.files[paper].folder.parent))
        papermill.execute_notebook(
            f"notebooks/{paper}.ipynb", executed, parameters={"plan": str(file)}, progress_bar=False
        )
        return tmp_path

    return make


def said_by(notebook: Path) -> list[str]:
    """Return the lines that a notebook printed of what was not run."""
    outputs = [out for cell in json.loads(notebook.read_text())["cells"] for out in
               cell.get("outputs", ())]  # fmt: skip
    lines = "".join("".join(out.get("text", "")) for out in outputs).splitlines()
    return [line for line in lines if line.startswith("Not run: ")]


@pytest.mark.parametrize("paper", PAPERS)
def test_a_paper_of_which_nothing_is_run_is_made_and_its_figures_say_so(paper, make):
    plan = planned(paper, *planned(paper).papers[paper]["experiments"])
    folder = make(paper, plan)
    names = plan.papers[paper]["figures"]
    drawn = {n: plotting.shows_nothing(folder / "figures" / paper / f"{n}.png") for n in names}
    assert drawn == dict.fromkeys(names, True)
    shown = model.Paper(folder, paper, Path())
    assert shown.figures == [] and shown.empty_figures == list(names.values())
    missing = json.loads((folder / "plans" / f"{paper}.json").read_text())["missing"]
    assert said_by(folder / "notebooks" / f"{paper}.ipynb") == left_out.sentences(missing)
    if paper in plan.judged:
        # What needs no run, such as a formula, has a table in any case.
        found = verdict_pages.read(folder / "verdicts" / f"{paper}.tsv")
        assert {"did not run"} <= {verdict.word for verdict in found}


@pytest.mark.parametrize("paper", PAPERS)
def test_an_item_of_which_the_other_side_was_left_out_was_not_run(paper, tmp_path):
    """Items name the experiment with the other side of their comparison; its own rows are there."""
    plan = planned(paper)
    found = plan.claims_of(paper) if paper in plan.judged else {"items": []}
    for item in found["items"]:
        for group in item["needs"]:
            if set(group) <= plan.papers[paper]["experiments"].keys():
                made = found | {"items": [item], "software": []}
                given = {"not_run": planned(paper, *group).missing_of(paper), "stand_ins": False}
                (verdict,) = verdicts.judge(paper, made, tmp_path, **given)
                assert verdict.word == "not run" and group[0] in verdict.why
