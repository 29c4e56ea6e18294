"""Properties of the files themselves: sizes, schemas, notebooks, and the two plans."""

from __future__ import annotations

import importlib
import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from fedcore import algorithms
from fedcore.files.strict_yaml import read_yaml
from fedcore.repro.config.short_forms import merge
from fedcore.repro.plan.plan import load_plan
from processes import python

ROOT = Path(__file__).parents[2]
PAPERS = sorted(file.parent.name for file in ROOT.glob("papers/*/claims.yaml"))


@pytest.fixture(scope="module")
def plans():
    """The full and the quick plan, both on stand-ins, so that no data set is missing."""
    full = merge(read_yaml(ROOT / "config/config.yaml"), {"surrogates": True})
    quick = merge(full, read_yaml(ROOT / "config/quick.yaml"))
    return tuple(load_plan(config, ROOT) for config in (full, quick))


def test_every_paper_is_run_by_default_and_has_its_files(plans):
    for plan in plans:
        assert list(plan.papers) == [*PAPERS, "arena"] and plan.judged == PAPERS
    for paper in PAPERS:
        assert (ROOT / f"notebooks/{paper}.ipynb").is_file()
        report = importlib.import_module(f"{paper}.tables")
        named = read_yaml(ROOT / f"papers/{paper}/experiments.yaml")["tables"]
        assert set(report.TABLES) == set(named)


@pytest.mark.parametrize("paper", PAPERS)
def test_the_quick_run_is_a_part_of_the_full_one(plans, paper):
    cells, small = ({cell.path: cell for cell in plan.all_cells[paper]} for plan in plans)
    assert small.keys() <= cells.keys()
    for path, cell in small.items():
        assert cell.metrics == cells[path].metrics
        assert cell.repeats <= cells[path].repeats
    used = {name for cell in cells.values() for name in cell.problems}
    assert used == set(plans[0].papers[paper]["problems"])


def shown_by(plan, paper):
    """Printed figures and tables that the cells of a plan reproduce."""
    settings = plan.papers[paper]["experiments"]
    run = {cell.experiment for cell in plan.cells_of(paper)}
    said = [settings[name].get("reproduces", "") for name in run]
    return {place for text in said for place in re.findall(r"(?:Figure|Table)s? (?:S\d|\d)", text)}


def test_the_quick_run_shows_each_method_and_each_printed_figure_and_table(plans):
    full, quick = plans
    methods = [{cell.algorithm for cell in plan.cells.values()} for plan in plans]
    assert methods[0] == methods[1]
    for paper in PAPERS:
        assert shown_by(full, paper) == shown_by(quick, paper), paper
    # Where PyTorch is installed, the plan has the cells of networks, too.
    tasks = [algorithms.get(cell.algorithm).task for cell in quick.cells.values()]
    assert sum("torch" not in task.packages for task in tasks) < 220


def listed(environment):
    made = yaml.safe_load((ROOT / f"workflow/envs/{environment}.yaml").read_text())["dependencies"]
    pip = made[-1]["pip"] if isinstance(made[-1], dict) else []
    names = [one for one in made if isinstance(one, str)]
    return {re.match(r"[\w-]+", text)[0].lower() for text in [*names, *pip]}


def test_the_environment_has_what_jobs_import():
    """Under conda-forge's names, without what the project's extra `workflow` has for Snakemake."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*known["dependencies"], *known["optional-dependencies"]["workflow"]]
    names = {re.match(r"[\w-]+", text)[0] for text in needed}
    names = {name.replace("matplotlib", "matplotlib-base") for name in names}
    assert listed("fedcore") >= {n for n in names if not n.startswith(("snakemake", "fedcore"))}


def test_cells_of_networks_import_what_their_environment_has():
    """Whatever the other environment has more cannot be imported here."""
    pytest.importorskip("torch")
    absent = listed("fedcore") - listed("networks")
    modules = {"matplotlib-base": "matplotlib", "pillow": "PIL", "pyyaml": "yaml"}
    modules |= {"scikit-learn": "sklearn", "markdown-it-py": "markdown_it"}
    blocked = [modules.get(name, name.replace("-", "_")) for name in absent]
    code = (
        f"import sys\nsys.modules.update(dict.fromkeys({blocked}))\n"
        "from fedcore import algorithms\n"
        "import fedcore.repro.commands.jobs, fedcore.deep.newcomers, fedcore.experiments.repeats\n"
        "print(sum(bool(algorithms.get(name).task.packages) for name in algorithms.names()))"
    )
    assert int(python("-c", code, cwd=ROOT).stdout) > 5


@pytest.mark.parametrize("size", [0, 1], ids=["full", "quick"])
@pytest.mark.parametrize("paper", PAPERS)
def test_labels_tell_the_problems_of_an_experiment_apart(plans, paper, size):
    plan = plans[size]
    problems = plan.papers[paper]["problems"]
    for experiment in plan.papers[paper]["experiments"]:
        compared = {c.problem for c in plan.cells_of(paper) if c.experiment == experiment}
        labels = [problems[name].get("label", name) for name in compared]
        assert len(set(labels)) == len(compared), (experiment, sorted(labels))


def every_item(plans, paper):
    read = plans[0].claims_of(paper)
    return [*read["items"], *read["software"]]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_printed_item_can_be_judged(plans, paper):
    settings = plans[0].papers[paper]
    data = {name for name, problem in settings["problems"].items() if "dataset" in problem}
    for item in every_item(plans, paper):
        needed = {name for group in item["needs"] for name in group}
        for reading in item["readings"]:
            for select in (cell["select"] for cell in reading["cells"].values()):
                assert select["table"] in settings["tables"], item["id"]
                named = select["where"].get("problem", [])
                names = set(named if isinstance(named, list) else [named])
                assert names <= settings["problems"].keys(), item["id"]
                # An item about data that may be missing names them, so it is `not run`. A reading
                # on such data, and a point of several, says by itself that it was not run.
                own = reading is item["readings"][0] and "problem" not in select["points"]
                assert not own or names & data <= needed, item["id"]


@pytest.mark.parametrize("paper", PAPERS)
def test_what_a_notebook_cites_is_an_item_or_a_check(plans, paper):
    cells = json.loads((ROOT / f"notebooks/{paper}.ipynb").read_text())["cells"]
    words = "".join(line for cell in cells for line in cell["source"])
    cited = re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", words)
    items = {item["id"] for item in every_item(plans, paper)}
    if items:  # a paper whose claims are not written yet cites nothing that could be wrong
        assert set(cited) <= items
