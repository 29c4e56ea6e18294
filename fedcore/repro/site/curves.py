"""Data of the interactive curves: the records of every run, thinned for a screen.

The data come with commands; each runs a method as an experiment runs it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedcore import algorithms
from fedcore.errors import HistoryError, InputError
from fedcore.reports import curve_styles
from fedcore.reports.replay import replay
from fedcore.repro.site.model import slug
from fedcore.repro.tables.budgets import privacy, products, sum_of_squares
from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import gathered

DATA = "DATA"  # stands for the reader's
POINTS = 90  # of a curve, at most; denser at its start
AXES = {
    "rounds": "communication rounds",
    "up": "bytes sent up, all clients",
    "bytes": "bytes sent up and down, all clients",
    "steps": "products of a client with its data",
    "seconds": "CPU seconds of the simulation, all clients and the server",
    "epsilon": "ε spent",
}


def groups(plan: Path) -> list[dict[str, Any]]:
    """Return the runs of a paper by experiment and problem.

    Each pair of experiment and problem has its measures, the parameters that vary, and its runs.
    Each run has name, cell, looks, the values on every axis, and, for every measure, the median,
    the smallest and the largest value of the repeats.
    """
    results, found = Results(plan), []
    methods = curve_styles.of_methods(results.plan)
    together = gathered(((run.experiment, run.problem), run) for run in results.runs())
    for (experiment, problem), every in together.items():
        runs = [_curves(results.plan["paper"], run) for run in every]
        _tell_apart(runs, methods)
        found.append(
            {
                "experiment": experiment,
                "problem": problem,
                "label": every[0].label,
                "status": every[0].status,
                "runs": runs,
                "varied": _varied(runs),
                "measures": _measures(runs, results.plan["experiments"][experiment]["metrics"]),
            }
        )
    return found


def script(groups: list[dict[str, Any]]) -> str:
    """Return a script that holds the data of a page, because local pages cannot read files."""
    return f"window.CURVES = {json.dumps(groups, separators=(',', ':'), allow_nan=False)};\n"


def _curves(paper: str, run: Run) -> dict[str, Any]:
    cell = f"{run.experiment}/{run.algorithm}/{run.problem}-{run.variant}"
    kept = _kept(run["iteration"].shape[1])
    metrics = [name for name in run.history.units if name in run.history.columns]
    measures = [n for n in metrics if run[n].dtype.kind == "f" and n not in ("epsilon", "diverged")]
    values = {measure: run[measure] for measure in measures}
    units = {measure: list(run.history.units[measure]) for measure in measures}
    if "captured" in values and (squares := sum_of_squares(run)) is not None:
        values["unexplained"] = 1.0 - run["captured"] / squares
        units["unexplained"] = ["1", "share of the sum of squares outside of the subspace"]
    name = run.algorithm + ("" if run.variant == "default" else f", {run.variant}")
    return {
        "algorithm": run.algorithm,
        "name": run.tags.get("method") or name,
        "privacy": privacy(run),
        "command": command(run.algorithm, run.history.about.get("params", {})),
        "params": {k: v for k, v in vars(run.params).items() if isinstance(v, int | float)},
        "cell": cell,
        "row": slug(f"{paper}/{cell}"),
        "x": {axis: _numbers(x[kept]) for axis, x in axes_of(run).items()},
        "y": {measure: _spread(found[:, kept]) for measure, found in values.items()},
        "units": units,
        **_replayed(run),
    }


def _replayed(run: Run) -> dict[str, Any]:
    """Return the replay of the first repeat; empty if no kept iterate has a recorded measure."""
    try:
        found = replay(run.history, 1)
    except InputError:
        return {}
    there = np.isfinite(found.recorded[0]) & np.isfinite(found.recomputed[0])
    if not there.any():
        return {}
    whole = run["iteration"][0] >= 0
    kept = _kept(int(whole.sum()))
    return {
        "replay": {
            "measure": found.measure,
            "iterations": found.iteration[0][there].tolist(),
            "recomputed": _numbers(found.recomputed[0][there]),
            "recorded": _numbers(found.recorded[0][there]),
            "difference": float(found.difference),
            "curve": [run["iteration"][0][kept].tolist(), _numbers(run[found.measure][0][kept])],
        }
    }


def _tell_apart(runs: list[dict[str, Any]], methods: Mapping[str, Mapping[str, str]]) -> None:
    """Give runs the looks of the plan's methods, or else looks that differ within this plot."""
    here = curve_styles.distinct_looks([run["algorithm"] for run in runs])
    for run, own in zip(runs, here, strict=True):
        run.update(methods.get(run["name"], own))


def _varied(runs: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Return the values of each numeric parameter in which runs of one method differ.

    The runs lose all other parameters.
    """
    values: dict[str, set[float]] = {}
    for first in runs:
        alike = [run for run in runs if run["algorithm"] == first["algorithm"]]
        for name in first["params"]:
            of_method = {run["params"].get(name) for run in alike} - {None}
            if len(of_method) > 1:
                values.setdefault(name, set()).update(of_method)
    for run in runs:
        run["params"] = {name: value for name, value in run["params"].items() if name in values}
    return {name: sorted(found) for name, found in values.items()}


def axes_of(run: Run) -> dict[str, np.ndarray]:
    """Return the values on each axis that a run has, as medians over its repeats."""
    there = np.where(run["iteration"] >= 0, 1.0, np.nan)
    columns = {
        "rounds": run["round"],
        "up": run["bytes_up"],
        "bytes": run["bytes_up"] + run["bytes_down"],
    }
    if not algorithms.get(run.algorithm).task.labelled:  # a step of a network is no product
        columns["steps"] = products(run, run.history)
    found = {axis: _median(there * column) for axis, column in columns.items()}
    try:
        if run.on_a_core:  # on an accelerator they are no sum over clients
            found["seconds"] = _median(run.seconds)
    except HistoryError:  # a history from elsewhere
        pass
    if "epsilon" in run.history.columns:
        found["epsilon"] = _median(there * run["epsilon"])
    return found


def _kept(records: int) -> np.ndarray:
    """Return the numbers of the records that are shown, which become sparser with time."""
    return np.unique(np.geomspace(1, records, POINTS).astype(int) - 1)


def _spread(values: np.ndarray) -> dict[str, list[float | None]]:
    found = {"median": _numbers(_median(values))}
    if len(values) > 1:
        with np.errstate(invalid="ignore"):
            found["low"] = _numbers(np.fmin.reduce(values))
            found["high"] = _numbers(np.fmax.reduce(values))
    return found


def _median(values: np.ndarray) -> np.ndarray:
    """Return the median over the repeats that have a value; NaN where no repeat has one."""
    some = ~np.isnan(values).all(axis=0)
    found = np.full(values.shape[1], np.nan)
    found[some] = np.nanmedian(values[:, some], axis=0)
    return found


def _numbers(values: np.ndarray) -> list[float | None]:
    """Return five digits of every number; None for what is not finite."""
    return [float(f"{x:.5g}") if np.isfinite(x) else None for x in values.tolist()]


def _measures(runs: list[dict[str, Any]], first: Sequence[str]) -> dict[str, str]:
    """Return the measures with a value in some run, and their units; `first` ones come first."""
    found: dict[str, str] = {}
    for run in runs:
        for name, (units, text) in run.pop("units").items():
            if any(value is not None for value in run["y"][name]["median"]):
                found[name] = f"{name}: {text} ({units})"
    order = [name for name in first if name in found]
    return {name: found[name] for name in [*order, *sorted(found.keys() - set(order))]}


def command(algorithm: str, params: Mapping[str, Any]) -> str:
    """Return the command line that runs a method; `DATA` stands for a data set or files."""
    words = ["fedcore", "run", algorithm, DATA]
    for name, value in params.items():
        text = value if isinstance(value, str) else json.dumps(value)
        words += ["--components", text] if name == "n_components" else ["--set", f"{name}={text}"]
    return shlex.join(words)


def of_variants(experiment: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return a row of ``method`` and ``command`` for every variant of an experiment's runs."""
    shared = experiment.get("params", {})
    return [
        {
            "method": name,
            "command": command(
                run["algorithm"],
                shared | run.get("params", {}) | {k: v for k, v in own.items() if k != "tags"},
            ),
        }
        for run in experiment["runs"]
        for name, own in run["variants"].items()
    ]
