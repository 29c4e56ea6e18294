"""Properties of the files themselves: sizes, schemas, notebooks, and the two plans."""

from __future__ import annotations

import ast
import importlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from fedcore import algorithms
from fedcore.config.short_forms import merge
from fedcore.config.strict_yaml import read_yaml
from fedcore.experiments.plan import load_plan
from fedcore.reports.site.links import places

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
SCHEMAS = sorted((ROOT / "workflow/schemas").glob("*.yaml"))
PAPERS = sorted(file.stem for file in (ROOT / "config/papers").glob("*.yaml"))


def named(paths):
    return pytest.mark.parametrize("path", paths, ids=lambda path: path.name)


def test_snakemake_lint(fresh):
    run = fresh.snakemake("--lint")
    assert run.status == 0
    assert run.text.rstrip().endswith("Congratulations, your workflow is in a good condition!")


def test_snakefmt():
    command = [sys.executable, "-m", "snakefmt", "--check", "Snakefile", "workflow"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@named(NOTEBOOKS)
def test_notebooks_are_stored_clean_and_define_nothing(path):
    cells = json.loads(path.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert [cell for cell in code if "parameters" in cell["metadata"].get("tags", ())]
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda
    for cell in code:
        tree = ast.parse("".join(cell["source"]))
        assert not [node for node in ast.walk(tree) if isinstance(node, kinds)]


# Objects whose keys are checked elsewhere: by an algorithm's Params, a generator's signature, a
# loader, a partitioner or the paper's schema, or once short forms are expanded.
OPEN = {
    "arena: data.*",
    "arena: leakage.problem",
    "arena: methods.*.params",
    "arena: partitions.*.partition",
    "config: overrides.*",
    "config: overrides.*.cells.*.params",
    "paper: $defs.params",
    "paper: $defs.variant",
    "paper: $defs.changes",
    "paper: $defs.problem.params",
    "paper: $defs.problem.options",
    "paper: $defs.problem.partition",
}


def keys(node, at):
    """Yield (place, schema, whether a user writes this key) for a schema and all its parts."""
    yield at, node, False
    for group in ("properties", "patternProperties", "$defs"):
        for name, inner in node.get(group, {}).items():
            place = f"{at}{'' if at.endswith(' ') else '.'}"
            place += f"$defs.{name}" if group == "$defs" else name
            yield place, inner, group == "properties"
            yield from list(keys(inner, place))[1:]
    for group, mark in (("items", "[]"), ("additionalProperties", ".*")):
        if isinstance(node.get(group), dict):
            yield from keys(node[group], at + mark)


@named(SCHEMAS)
def test_schemas_describe_and_close_everything(path):
    name = path.name.split(".")[0]
    schema = yaml.safe_load(path.read_text())
    definitions = schema.get("$defs", {})
    undescribed, unclosed = [], []
    for place, node, key in keys(schema, f"{name}: "):
        place = place.replace(": .", ": ")
        target = definitions[node["$ref"].rpartition("/")[2]] if "$ref" in node else node
        if key and not (node.get("description") or target.get("description")):
            undescribed.append(place)
        objects = target.get("type") == "object" or "properties" in target
        if objects and "$ref" not in node and "additionalProperties" not in target:
            unclosed.append(place)
        assert target.get("additionalProperties") is not True, place
    assert undescribed == []
    assert set(unclosed) == {place for place in OPEN if place.startswith(f"{name}: ")}


@pytest.fixture(scope="module")
def plans():
    """The full and the quick plan, both on stand-ins, so that no data set is missing."""
    full = merge(read_yaml(ROOT / "config/config.yaml"), {"surrogates": True})
    quick = merge(full, read_yaml(ROOT / "config/quick.yaml"))
    return tuple(load_plan(config, ROOT / "config/papers") for config in (full, quick))


def test_every_paper_is_run_by_default_and_has_its_files():
    for name in ("config", "quick"):
        config = merge(read_yaml(ROOT / f"config/{name}.yaml"), {"surrogates": True})
        plan = load_plan(config, ROOT / "config/papers")
        assert list(plan.papers) == [*PAPERS, "arena"] and plan.judged == PAPERS
    for paper in PAPERS:
        assert (ROOT / f"notebooks/{paper}.ipynb").is_file()
        report = importlib.import_module(f"fedcore.reports.papers.{paper}")
        named = read_yaml(ROOT / f"config/papers/{paper}.yaml")["tables"]
        assert set(report.TABLES) == set(named)


@pytest.mark.parametrize("paper", PAPERS)
def test_the_quick_run_is_a_part_of_the_full_one(plans, paper):
    cells, small = ({cell.path: cell for cell in plan.all_cells_of(paper)} for plan in plans)
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
    return set().union(*(places(settings[name].get("reproduces", "")) for name in run))


def test_the_quick_run_shows_each_method_and_each_printed_figure_and_table(plans):
    full, quick = plans
    methods = [{cell.algorithm for cell in plan.cells.values()} for plan in plans]
    assert methods[0] == methods[1]
    for paper in PAPERS:
        assert shown_by(full, paper) == shown_by(quick, paper), paper
    # Where PyTorch is installed, the plan has the cells of networks, too.
    tasks = [algorithms.get(cell.algorithm).task for cell in quick.cells.values()]
    assert sum("torch" not in task.packages for task in tasks) < 200


def test_every_environment_has_what_jobs_import():
    """Under conda-forge's names, without what the project's extra `workflow` has for Snakemake."""
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = [*known["dependencies"], *known["optional-dependencies"]["workflow"]]
    names = {re.match(r"[\w-]+", text)[0] for text in needed}
    names = {name.replace("matplotlib", "matplotlib-base") for name in names}
    names = {name for name in names if not name.startswith(("snakemake", "fedcore"))}
    for file, more in (("fedcore", set()), ("networks", {"pytorch"})):
        made = yaml.safe_load((ROOT / f"workflow/envs/{file}.yaml").read_text())["dependencies"]
        listed = [*(one for one in made if isinstance(one, str)), *made[-1]["pip"]]
        assert {re.match(r"[\w-]+", text)[0].lower() for text in listed} >= names | more


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
    return [*read["claims"], *read["software"]]


@pytest.mark.parametrize("paper", PAPERS)
def test_every_printed_item_can_be_judged(plans, paper):
    settings = plans[0].papers[paper]
    data = {name for name, problem in settings["problems"].items() if "dataset" in problem}
    for item in every_item(plans, paper):
        parts = (item, *item["readings"], item.get("counterfactual", {}))
        for select in (part["select"] for part in parts if "select" in part):
            assert select.get("table", item["select"]["table"]) in settings["tables"], item["id"]
            named = select.get("where", {}).get("problem", [])
            names = set(named if isinstance(named, list) else [named])
            assert names <= settings["problems"].keys(), item["id"]
            # An item about data that may be missing names them, so it is `not run`. A reading on
            # such data says by itself that it was not run.
            if select is item.get("select"):
                needed = {name for group in item["needs"] for name in group}
                assert names & data <= needed, item["id"]


@pytest.mark.parametrize("paper", PAPERS)
def test_what_a_notebook_cites_is_an_item_or_a_check(plans, paper):
    cells = json.loads((ROOT / f"notebooks/{paper}.ipynb").read_text())["cells"]
    words = "".join(line for cell in cells for line in cell["source"])
    cited = re.findall(r"`([a-z0-9]+(?:-[a-z0-9]+)+)`", words)
    items = {item["id"] for item in every_item(plans, paper)}
    if items:  # a paper whose claims are not written yet cites nothing that could be wrong
        assert set(cited) <= items


def test_every_claims_file_is_of_a_paper():
    assert {path.stem for path in (ROOT / "config/claims").glob("*.yaml")} <= set(PAPERS)
