"""Derive from the configuration files which problems to make and which cells to run.

``config.yaml`` names the papers to run, and ``papers/<paper>/experiments.yaml`` describes the
experiments of one paper. A cell is an algorithm with fixed parameters on one problem. Schemas
refuse unknown keys before any job runs.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from fedcore import algorithms, metrics
from fedcore.datasets import fetching, registry
from fedcore.errors import ConfigError, require_known
from fedcore.experiments import build
from fedcore.experiments.cell import REFERENCES, Cell
from fedcore.experiments.combinations import combinations
from fedcore.experiments.fingerprint import digests, fingerprint, imported_by
from fedcore.files import atomic
from fedcore.files.schemas import check
from fedcore.files.strict_yaml import read_yaml
from fedcore.privacy.noise import WEAKENED
from fedcore.recorder import COLUMNS, released_columns, require_columns
from fedcore.repro.config import claims
from fedcore.repro.config import papers as paper_files
from fedcore.repro.config.papers import PaperFiles
from fedcore.repro.config.short_forms import merge, require_written_out, written_out
from fedcore.stop_rules import StopRules, require_released
from fedcore.words import counted

MADE = ".snakemake/fedcore-plans"  # where the start of a run writes plans
CELLS = "cells"  # the key of a paper's overrides that says which cells are made
# What a cell takes from its experiment as it is, and from its run, which has precedence.
OF_EXPERIMENT = {"repeats", "metrics", "stop", "audit", "share_products", "measured"}
OF_EXPERIMENT |= {"newcomers", "client_iterates"}
OF_RUN = {"repeats", "stop", "tune", "cut", "mem_mb"}
# Columns that name the runs in tables; `reports.results.Run.rows` gives them beside the tags.
NAMED = {"experiment", "problem", "status", "algorithm", "variant", "repeat"}


@dataclass
class Plan:
    """The problems and cells of a run; a cell is an algorithm with fixed parameters on one problem.

    Attributes
    ----------
    config : dict
        The checked ``config.yaml``, with defaults filled in.
    papers : dict of str to dict
        The checked ``experiments.yaml`` of each paper, with ``overrides`` applied.
    unavailable : dict of str to str
        Reason why a problem is not run, such as missing data or a missing package, keyed by
        ``<paper>/<problem>``.
    files : dict of str to PaperFiles
        Paths of the files of each paper.
    all_cells : dict of str to list of Cell
        All cells of each paper, including cells that cannot run.
    """

    config: dict[str, Any]
    papers: dict[str, dict[str, Any]]
    unavailable: dict[str, str] = field(default_factory=dict)
    files: dict[str, PaperFiles] = field(default_factory=dict)
    all_cells: dict[str, list[Cell]] = field(default_factory=dict, repr=False)
    _claims: dict[str, dict[str, Any]] = field(default_factory=dict, repr=False)

    @cached_property
    def problems(self) -> dict[str, dict[str, Any]]:
        """Specification of every problem, keyed by ``<paper>/<problem>``."""
        return {
            f"{paper}/{name}": spec
            for paper, settings in self.papers.items()
            for name, spec in settings["problems"].items()
        }

    @cached_property
    def cells(self) -> dict[str, Cell]:
        """All cells that can run, keyed by their paths."""
        recipe = cache(self.recipe)  # many cells share a problem
        cells: dict[str, Cell] = {}
        for cell in chain.from_iterable(self.all_cells.values()):
            if cell.path in cells:
                raise ConfigError(
                    f"{self.files[cell.paper].paper}: two cells are called {cell.path}"
                )
            names = [f"{cell.paper}/{name}" for name in cell.problems]
            if self.unavailable.keys().isdisjoint(names):
                code = fingerprint(*digests(*cell.modules))
                cells[cell.path] = replace(cell, recipes=[*map(recipe, names)], code=code)
        return cells

    def cell(self, path: str) -> Cell:
        """Return the cell at `path`; raise `ConfigError` if this cell cannot run."""
        if path in self.cells:
            return self.cells[path]
        cells = {cell.path: cell for cell in chain.from_iterable(self.all_cells.values())}
        require_known(path, cells, "there is no cell")
        names = (f"{cells[path].paper}/{name}" for name in cells[path].problems)
        reason = next(self.unavailable[name] for name in names if name in self.unavailable)
        raise ConfigError(f"{path} is not run: {reason}")

    def problem(self, name: str) -> str:
        """Check that a problem can be made, and return its name; otherwise raise `ConfigError`."""
        require_known(name, self.problems, "there is no problem")
        if name in self.unavailable:
            raise ConfigError(f"{name} is not made: {self.unavailable[name]}")
        return name

    @property
    def judged(self) -> list[str]:
        """Names of the papers whose printed items get verdicts."""
        return [paper for paper, settings in self.papers.items() if settings["judged"]]

    def cells_of(self, paper: str) -> list[Cell]:
        """Return those cells of a paper that can run."""
        return [cell for cell in self.cells.values() if cell.paper == paper]

    def missing_of(self, paper: str) -> dict[str, str]:
        """Return why experiments and problems of a paper are not run, keyed by their names."""
        why = f"it is left out by the configuration, under overrides.{paper}.{CELLS}."
        missing = dict.fromkeys(self.papers[paper]["experiments"], why)
        for cell in self.all_cells[paper]:
            missing.pop(cell.experiment, None)
        for name in self.papers[paper]["problems"]:
            if f"{paper}/{name}" in self.unavailable:
                missing[name] = self.unavailable[f"{paper}/{name}"]
        return missing

    @property
    def not_run(self) -> dict[str, str]:
        """Reasons why problems and experiments are not run, keyed by ``<paper>/<name>``."""
        return {
            f"{paper}/{name}": reason
            for paper in self.papers
            for name, reason in self.missing_of(paper).items()
        }

    def missing_data(self, answers: Callable[[str], bool] | None) -> dict[str, str]:
        """Return why raw data of problems cannot be obtained, keyed by ``<paper>/<problem>``."""
        from fedcore import datasets

        raw, surrogate = self.config["paths"]["raw"], self.config["surrogates"]
        reasons = {
            name: datasets.missing(spec["dataset"], raw, answers=answers, surrogate=surrogate)
            for name, spec in self.problems.items()
            if "dataset" in spec
        }
        return {name: reason for name, reason in reasons.items() if reason}

    def leave_out_missing(self, answers: Callable[[str], bool] | None) -> None:
        """Leave out problems without obtainable raw data, unless client data or histories exist."""
        results, clients = (Path(self.config["paths"][key]) for key in ("results", "clients"))
        for name, reason in self.missing_data(answers).items():
            paper, problem = name.split("/")
            histories = (results / "histories" / paper).glob(f"*/*/{problem}-*.h5")
            if not (clients / f"{name}.h5").is_file() and not any(histories):
                self.unavailable.setdefault(name, reason)

    def raw_files(self, problem: str) -> list[str]:
        """Return the raw files that must exist before the data of a problem are made.

        The first file is ``fetched.json``, the record of the download. If the data set is not
        defined in fedcore, all other files in the data set's folder follow.
        """
        dataset = self.problems[problem].get("dataset")
        if not dataset or self.config["surrogates"]:
            return []
        folder = Path(self.config["paths"]["raw"], dataset)
        own = registry.find(dataset)[0] is not None
        others = [] if own else [file for file in sorted(folder.rglob("[!.]*")) if file.is_file()]
        record = folder / fetching.RECORD
        return [str(record), *(str(file) for file in others if file != record)]

    def problem_entry(self, problem: str) -> str:
        """Return the registry entry of a problem's data set, as JSON without download addresses."""
        described = build.described(self.problems[problem], surrogate=self.config["surrogates"])
        return json.dumps(described, sort_keys=True)

    def problem_digests(self, problem: str) -> tuple[tuple[str, str], ...]:
        """Return the names and digests of the modules that a problem depends on."""
        return build.digests(self.problems[problem], surrogate=self.config["surrogates"])

    def problem_code(self, problem: str) -> str:
        """Return one fingerprint of a problem's code and of its data set's registry entry."""
        return fingerprint(*self.problem_digests(problem), self.problem_entry(problem))

    def recipe(self, problem: str) -> str:
        """Return one digest of all settings and code that determine a problem's file."""
        name, code = problem.partition("/")[2], self.problem_code(problem)
        how = {"seed": self.config["seed"], "surrogate": self.config["surrogates"]}
        return build.recipe(name, self.problems[problem], code=code, **how)

    def describe(self, paper: str) -> dict[str, Any]:
        """Return the settings and cells of a paper, and why experiments or problems are not run."""
        cells = self.cells_of(paper)
        return {
            "paper": paper,
            "entry": self.files[paper].entry,
            **self.papers[paper],
            "run": {key: self.config[key] for key in ("quick", "surrogates", "seed", "paths")},
            "cells": {cell.path: asdict(cell) for cell in cells},
            "missing": self.missing_of(paper),
        }

    def check_files(self) -> None:
        """Raise an error if a needed table module or notebook is missing or cannot be read."""
        for paper, files in self.files.items():
            files.make_importable()
            paper_files.require_drawable(files, self.papers[paper])
            digests(files.tables)  # they can be read
            if files.notebook.is_file():
                imported_by(files.notebook, paper)

    def made(self, paper: str) -> tuple[str, bytes]:
        """Return path and JSON text of the plan file that a run writes first, for a paper's jobs.

        The path contains a digest of the text, so that runs with other settings write other files.
        """
        text = json.dumps(self.describe(paper), indent=1).encode()
        return f"{MADE}/{paper}-{fingerprint(text)}.json", text

    def write(self) -> None:
        """Write each paper's plan file; the method `made` gives its path and its text."""
        for paper in self.papers:
            path, text = self.made(paper)
            try:
                with atomic.replace(Path(path)) as made:
                    made.write_bytes(text)
            except OSError as error:
                raise ConfigError(
                    f"{Path(MADE).absolute()} cannot be written ({error.strerror}): make room, or "
                    "start where you may write (in a copy of the checkout, or with --directory)"
                ) from error

    def claims_of(self, paper: str) -> dict[str, Any]:
        """Return the content of a paper's claims file, after a check of the names that it uses."""
        if paper in self._claims:
            return self._claims[paper]
        path, settings = self.files[paper].claims, self.papers[paper]
        read = self._claims[paper] = claims.read(path)
        for name, item in claims.by_id(read).items():
            where = f"{path}, {name}"
            for group in item["needs"]:
                known = [*settings["problems"], *settings["experiments"]]
                _check_names(group, known, f"{where}: needs the unknown problem or experiment")
            selected = {
                cell["select"]["table"]
                for reading in item["readings"]
                for cell in reading["cells"].values()
            }
            _check_names(selected, settings["tables"], f"{where}: selects from the unknown table")
        return read


def load_plan(
    config: Mapping[str, Any],
    checkout: Path = paper_files.CHECKOUT,
    *,
    answers: Callable[[str], bool] | None = None,
) -> Plan:
    """Return the plan of a configuration, and mark problems that cannot be run as unavailable.

    Parameters
    ----------
    config : mapping
        Contents of ``config.yaml``.
    checkout : path
        Checkout whose folder ``papers`` has the papers that the configuration may call by name.
    answers : callable, optional
        Function that says whether the server of an address can be reached; see
        `datasets.missing`.
    """
    if {*"{}"} & {*str(checkout.absolute())}:
        raise ConfigError(f"{checkout.absolute()}: move it, as Snakemake takes no braces in a path")
    checked = check(config, "config", "the configuration")
    own = paper_files.list_papers(checkout)
    plan = Plan(checked, {}, files=paper_files.chosen(checked.get("papers", own), own))
    checked["paths"] = paper_files.folders(checked["paths"], checkout)
    known = list(own | plan.files)
    _check_names(checked["overrides"], known, "overrides of an unknown paper")
    for paper, files in plan.files.items():
        settings = _read_paper(files, checked["overrides"].get(paper, {}))
        plan.papers[paper], plan.all_cells[paper] = settings, _cells(settings, files, checked)
    _leave_out_without_package(plan)
    plan.leave_out_missing(answers)
    return plan


def _read_paper(files: PaperFiles, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Read a paper's ``experiments.yaml``, merge in the configuration's overrides, and check it."""
    path, changes = files.paper, {key: value for key, value in changes.items() if key != CELLS}
    settings = written_out(check(read_yaml(path), "paper", str(path)), str(path))
    for group in ("problems", "experiments"):
        if isinstance(changes.get(group), Mapping):
            where = f"the configuration, overrides.{files.name}.{group}"
            _check_names(changes[group], settings[group], f"{where}: {path} has no")
    where = f"{path} with the overrides" if changes else str(path)
    checked = check(merge(settings, changes), "paper", where)
    for group in ("problems", "experiments"):
        require_written_out(checked[group], f"{where}, {group}")
    for name, spec in checked["problems"].items():
        _check_problem(spec, f"{where}, problem {name}")
    for name, spec in checked["experiments"].items():
        twins = [part["twin"] for part in (spec, *spec["runs"]) if "twin" in part]
        unknown = f"{where}, experiment {name}: twin names the unknown problem"
        for twin in twins:
            _check_names(twin if isinstance(twin, list) else [], checked["problems"], unknown)
    if files.tables == paper_files.DEFAULT_TABLES:
        checked["tables"] = checked["tables"] or dict(paper_files.ENDS)
    return checked | {"judged": checked["judged"] and files.claims.is_file()}


def _check_names(names: Iterable[str], known: Collection[str], what: str) -> None:
    for name in names:
        require_known(name, known, what)


def _check_problem(spec: dict[str, Any], where: str) -> None:
    """Check the specification of a problem, and fill its parameters into its label."""
    try:
        build.digests(spec)
        build.check(spec)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from error
    values = {**spec.get("options", {}), **spec.get("params", {})}
    try:
        if "label" in spec:
            spec["label"] = spec["label"].format(**values)
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{where}: the label '{spec['label']}' cannot be filled in ({error!r}); "
            f"known names: {', '.join(values) or 'none'}"
        ) from None
    if "over" in spec and "draws" not in spec:
        raise ConfigError(f"{where}: 'over' needs 'draws': give the number of draws for each value")


def check_newcomers(name: str, problems: Mapping[str, Any], where: str) -> None:
    """Raise `ConfigError` if the problem `name` is unknown or has no held-out samples.

    The clients of this problem join after training, and are tested on its held-out samples.
    """
    require_known(name, problems, f"{where}: newcomers of the unknown problem")
    if "held_out" not in problems[name]:
        raise ConfigError(f"{where}: newcomers are tested on held-out samples: give {name} some")


def _cells(settings: Mapping[str, Any], files: PaperFiles, config: Mapping[str, Any]) -> list[Cell]:
    """Return the cells of a paper that the configuration selects, with the overrides applied."""
    described = list(_described(settings, files, config))
    names = [cell.short for cell in described]
    wanted = config["overrides"].get(files.name, {}).get(CELLS, {"*": {}})
    given = config["repeats"].get(files.name, {})
    unknown = [name for name in wanted if not fnmatch.filter(names, name)]
    where = "the configuration, {}: no <experiment>/<algorithm>/<cell> is"
    _check_names(unknown, names, where.format(f"overrides.{files.name}.{CELLS}"))
    _check_names(given, names, where.format(f"repeats.{files.name}"))
    cells = []
    for cell in described:
        fitting = [
            changes for name, changes in wanted.items() if fnmatch.fnmatchcase(cell.short, name)
        ]
        if fitting and fitting[-1] is not False:
            where = f"{files.paper}, experiment {cell.experiment}"
            for changes in filter(None, fitting):
                if "tune" in changes and cell.tune is None:
                    raise ConfigError(f"{where}: {cell.short} has no `tune` to change")
                before = {key: getattr(cell, key) for key in changes}
                cell = replace(cell, **merge(before, changes))  # mappings are merged
            if not config["quick"]:
                cell = replace(cell, repeats=max(cell.repeats, given.get(cell.short, 0)))
            check_cell(cell, where)
            _check_draws(cell, settings["problems"][cell.problem], where)
            cells.append(cell)
    return cells


def _described(
    settings: Mapping[str, Any], files: PaperFiles, config: Mapping[str, Any]
) -> Iterator[Cell]:
    problems = settings["problems"]
    for experiment, spec in settings["experiments"].items():
        where = f"{files.paper}, experiment {experiment}"
        if guests := spec.get("newcomers"):
            check_newcomers(guests["problem"], problems, where)
        for i, run in enumerate(spec["runs"]):
            if not run.get("problems", spec.get("problems")):
                raise ConfigError(f"{where}: runs.{i} has no problems")
            unknown = f"{where}: params_of the unknown problem"
            _check_names(run.get("params_of", {}), problems, unknown)
            if ("noise_factor" in run) != (spec.get("audit") == "canary"):
                raise ConfigError(
                    f"{where}, {run['algorithm']}: 'audit: canary' and 'noise_factor' go together: "
                    "an audit proves nothing unless it detects a cell with less noise"
                )
            shared = {
                "paper": files.name,
                "experiment": experiment,
                "algorithm": run["algorithm"],
                "seed": config["seed"],
                "iterates": spec.get("iterates", config["iterates"]),
                **{key: spec[key] for key in OF_EXPERIMENT & spec.keys()},
                **{key: run[key] for key in OF_RUN & run.keys()},
            }
            for cell in _cells_of_run(run, spec, problems, shared, where):
                yield cell
                if "noise_factor" in run:
                    twin = f"{cell.name}-{WEAKENED}"
                    yield replace(cell, name=twin, noise_factor=run["noise_factor"])


def _cells_of_run(
    run: Mapping[str, Any],
    spec: Mapping[str, Any],
    problems: Mapping[str, Any],
    shared: Mapping[str, Any],
    where: str,
) -> Iterator[Cell]:
    """Yield a cell for each pair of a problem and a variant of `run`, an entry of ``runs``.

    All cells have the fields in `shared`. Values in `run` take precedence over values in the
    experiment's `spec`.
    """
    for problem in run.get("problems", spec.get("problems")):
        require_known(problem, problems, f"{where}: unknown problem")
        twin = run.get("twin", spec["twin"])
        if isinstance(twin, list):  # the problems with twins
            twin = "rounding" if problem in twin else "none"
        for variant, changes in run.get("variants", {"default": {}}).items():
            own = dict(changes or {})
            tags = problems[problem]["tags"] | own.pop("tags", {})
            if taken := sorted(NAMED & tags.keys()):
                raise ConfigError(
                    f"{where}, {problem}-{variant}: every table of runs already has a "
                    f"column '{taken[0]}': give the tag another name"
                )
            params = (
                spec.get("params", {})
                | problems[problem].get("defaults", {})
                | run.get("params", {})
                | run.get("params_of", {}).get(problem, {})
                | own
            )
            name = f"{problem}-{variant}"
            yield Cell(**shared, name=name, problem=problem, params=params, twin=twin, tags=tags)


def _check_draws(cell: Cell, problem: Mapping[str, Any], where: str) -> None:
    """Raise `ConfigError` if a cell has more repeats than its problem has random data sets."""
    made = draws_of(problem)
    if made is not None and cell.repeats > made:
        raise ConfigError(
            f"{where}: {cell.short} has {cell.repeats} repeats, but {cell.problem} only "
            f"{counted(made, 'draw')}, and some repeats would share their data: raise `draws`, "
            "or lower `repeats`"
        )


def draws_of(problem: Mapping[str, Any]) -> int | None:
    """Return the number of random data sets of a problem; None if all repeats share their data."""
    return (
        problem["draws"] * len(combinations(problem.get("over", {})))
        if "draws" in problem
        else None
    )


def check_cell(cell: Cell, where: str) -> None:
    """Raise `ConfigError` if a cell's parameters, metrics or stopping rules are invalid."""
    try:
        values = {
            k: 1.0 if v == "reference" and k in REFERENCES else v for k, v in cell.params.items()
        }
        algorithm = algorithms.get(cell.algorithm)
        for changes in combinations(cell.tune["over"]) if cell.tune else [{}]:
            if algorithm.private(algorithm.params({**values, **changes}, form="NAME: VALUE")):
                require_released(cell.stop, released_columns(algorithm.released))
        if cell.newcomers and "model" not in algorithm.task.fields:
            raise ConfigError(f"{cell.algorithm} learns no network: leave out `newcomers`")
        if cell.twin != "none" and not algorithm.task.twins:
            raise ConfigError(f"{cell.algorithm} learns no subspace: leave out `twin`")
        measured = [*cell.metrics, *([cell.tune["by"]] if cell.tune else [])]
        for name in measured:
            metrics.get(name)
        require_columns(algorithm.name, algorithm.columns, measured)
        recorded = {*COLUMNS, *algorithm.columns, *cell.metrics}
        _check_names(cell.stop, recorded, "stop: there is no column")
        StopRules(cell.stop)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise ConfigError(f"{where}: {error}") from error


def _leave_out_without_package(plan: Plan) -> None:
    """Leave out problems whose methods need a package that is not installed."""
    for cell in chain.from_iterable(plan.all_cells.values()):
        packages = algorithms.get(cell.algorithm).task.packages
        missing = [package for package in packages if find_spec(package) is None]
        if missing:
            get = f"pip install {missing[0]}"
            if missing[0] == "torch":
                get += ", or make env EXTRAS=deep in fedcore's checkout"
            for name in cell.problems:
                reason = f"{cell.algorithm} needs the package {missing[0]}: {get}"
                plan.unavailable.setdefault(f"{cell.paper}/{name}", reason)
