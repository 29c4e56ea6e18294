"""Data of the interactive plots, with at most `POINTS` recorded iterations of each run.

Each run comes with a command that runs the same method with the same hyper-parameters.
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

DATA = "DATA"  # stands for the reader's data set or files
POINTS = 90  # most points of a curve; they are denser at its start
AXES = {
    "rounds": "communication rounds",
    "up": "bytes sent up, all clients",
    "bytes": "bytes sent up and down, all clients",
    "steps": "products of a client with its data",
    "seconds": "CPU seconds of the simulation, all clients and the server",
    "epsilon": "ε spent",
}


def groups(plan: Path) -> list[dict[str, Any]]:
    """Return the runs of a paper, grouped by experiment and problem.

    A group has its runs, its measures, and the hyper-parameters that vary between its runs. A run
    has a name, the name of its cell (planned run), a colour, dashes, and values on the horizontal
    axes that `axes_of` returns. For every measure, a run has the median over the repeats and, with
    several repeats, the smallest and the largest value.
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
    """Return the plots' data as JavaScript, because a page opened from disk cannot read files."""
    return f"window.CURVES = {json.dumps(groups, separators=(',', ':'), allow_nan=False)};\n"


def _curves(paper: str, run: Run) -> dict[str, Any]:
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
        "params": {k: v for k, v in run.shown_params.items() if isinstance(v, int | float)},
        "cell": run.cell,
        "row": slug(f"{paper}/{run.cell}"),
        "x": {axis: _numbers(x[kept]) for axis, x in axes_of(run).items()},
        "y": {measure: _spread(found[:, kept]) for measure, found in values.items()},
        "units": units,
        **_replayed(run),
    }


def _replayed(run: Run) -> dict[str, Any]:
    """Return the first repeat's measure, both as recorded and recomputed from kept iterates.

    The result is empty if the history has no iterate with a recorded measure.
    """
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
    """Give each run its method's colour and dashes; a run without a method gets distinct ones."""
    here = curve_styles.distinct_looks([run["algorithm"] for run in runs])
    for run, own in zip(runs, here, strict=True):
        run.update(methods.get(run["name"], own))


def _varied(runs: list[dict[str, Any]]) -> dict[str, list[float]]:
    """Return the values of each numeric hyper-parameter that differs between an algorithm's runs.

    All other hyper-parameters are removed from `runs`.
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
    """Return, for each horizontal axis on which a run has values, the medians over its repeats."""
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
    """Return the indices of the recorded iterations to plot, which are denser at a run's start."""
    return np.unique(np.geomspace(1, records, POINTS).astype(int) - 1)


def _spread(values: np.ndarray) -> dict[str, list[float | None]]:
    found = {"median": _numbers(_median(values))}
    if len(values) > 1:
        with np.errstate(invalid="ignore"):
            found["low"] = _numbers(np.fmin.reduce(values))
            found["high"] = _numbers(np.fmax.reduce(values))
    return found


def _median(values: np.ndarray) -> np.ndarray:
    """Return each recorded iteration's median over the repeats that have a value, else NaN."""
    some = ~np.isnan(values).all(axis=0)
    found = np.full(values.shape[1], np.nan)
    found[some] = np.nanmedian(values[:, some], axis=0)
    return found


def _numbers(values: np.ndarray) -> list[float | None]:
    """Return numbers rounded to five significant digits, with None in place of NaN and infinity."""
    return [float(f"{x:.5g}") if np.isfinite(x) else None for x in values.tolist()]


def _measures(runs: list[dict[str, Any]], first: Sequence[str]) -> dict[str, str]:
    """Return a description of each measure that has a value in some run.

    The measures in `first` come first.
    """
    found: dict[str, str] = {}
    for run in runs:
        for name, (units, text) in run.pop("units").items():
            if any(value is not None for value in run["y"][name]["median"]):
                found[name] = f"{name}: {text} ({units})"
    order = [name for name in first if name in found]
    return {name: found[name] for name in [*order, *sorted(found.keys() - set(order))]}


def command(algorithm: str, params: Mapping[str, Any]) -> str:
    """Return the command line that runs a method; `DATA` stands for a data set or for files."""
    words = ["fedcore", "run", algorithm, DATA]
    for name, value in params.items():
        text = value if isinstance(value, str) else json.dumps(value)
        words += ["--components", text] if name == "n_components" else ["--set", f"{name}={text}"]
    return shlex.join(words)


def of_variants(experiment: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return a row with the entries ``method`` and ``command`` for each variant in `experiment`."""
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
