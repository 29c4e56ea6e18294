"""Tiny results of a paper, made by the road that the workflow takes."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from fedcore.experiments.cell import Cell
from fedcore.experiments.repeats import run_cell
from fedcore.problems import storage
from fedcore.problems.problem import Problem
from fedcore.repro.tables.results import Results


def without(results, *names):
    """Return results of the same histories, where these experiments and problems were left out."""
    cells = {
        path: cell
        for path, cell in results.plan["cells"].items()
        if not {cell["experiment"], cell["problem"]} & set(names)
    }
    file = results.tables.parents[1] / "plans" / "without.json"
    file.write_text(json.dumps(results.plan | {"cells": cells}))
    return Results(file)


class Folder:
    """A folder of a paper's results, to which cells are added; `results` writes the plan.

    `results` takes names of experiments that have no cell.
    """

    def __init__(self, root, paper, params, metrics):
        self.root, self.paper, self.params, self.metrics = root, paper, params, metrics
        self.cells, self.problems = {}, {}

    def add_problem(self, name, clients, **about):
        self.problems[name] = {"label": name.upper()}
        storage.save(Problem(name, clients, **about), self.root / f"{name}.h5")

    def add(
        self, experiment, algorithm, problem, variant="default", *, history=None, privacy=None,
        **options,
    ):  # fmt: skip
        params = {**self.params, **options.pop("params", {})}
        cell = Cell(**{
            "paper": self.paper, "experiment": experiment, "algorithm": algorithm,
            "name": f"{problem}-{variant}", "problem": problem, "params": params, "repeats": 2,
            "metrics": self.metrics,
            "iterates": "last", "seed": 0, **options,
        })  # fmt: skip
        self.cells[cell.path] = cell
        file = self.root / "histories" / f"{cell.path}.h5"
        if history is None:
            return run_cell(cell, self.root / f"{problem}.h5", file)
        about = {"name": problem, "status": "synthetic"} | history.about.get("problem", {})
        where = {name: value for name, value in history.about.items() if name == "device"}
        history.about = {"algorithm": algorithm, "params": params, "problem": about} | where
        history.about |= {"code": "", "seed": {"master": cell.seed}}
        measured = [name for name in cell.metrics if name in history.columns]
        self.cells[cell.path] = replace(cell, repeats=history.repeats, metrics=measured)
        history.about |= {"privacy": privacy} if privacy else {}
        history.save(file)
        return history

    def results(self, *empty):
        names = (*empty, *(cell.experiment for cell in self.cells.values()))
        plan = {"paper": self.paper, "problems": self.problems}
        plan["cells"] = {path: asdict(cell) for path, cell in self.cells.items()}
        plan |= {"experiments": {name: {} for name in names}}
        plan |= {"entry": self.paper}
        (self.root / "plans").mkdir(exist_ok=True)
        file = self.root / "plans" / f"{self.paper}.json"
        file.write_text(json.dumps(plan))
        return Results(file)
