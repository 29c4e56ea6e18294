"""Choosing hyper-parameters from a declared grid, by one rule for every method.

Every combination of the grid's values is run on the first repeats of the cell. Of each run the
geometric mean of a measure over every so many rounds is taken, so that speed counts and not the end
alone. Of the combinations with the fewest runs that diverged, mostly none, that with the smallest
median is taken for all repeats. What was tried and what came out goes into the history.

The measures are exact, so that of a private method the choice itself gives something away: it is
allowed, as a cell is a simulation, and the history says that it was not paid for.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedcore import metrics
from fedcore.experiments.combinations import combinations
from fedcore.iterates import Iterate
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder

UNPAID = "tuned on exact measures: not paid for"


def tune(
    cell: Mapping[str, Any], draws: Sequence[Problem], trial: Callable[..., Any]
) -> dict[str, Any]:
    """Try the grid of a cell.

    Parameters
    ----------
    cell : mapping
        With ``tune``: the measure ``by`` which to choose, on ``every`` so many records of the first
        ``repeats`` repeats, and ``over``, the grid: values by name.
    draws : sequence of Problem
    trial : callable
        ``trial(cell, draws, params, repeat, metrics) -> (recorder, output)``, as `cell.trial`.

    Returns
    -------
    dict
        ``by``, ``every``, ``repeats``, ``settings`` (a list of changes), ``values`` (the median of
        each, where a repeat that diverged counts as infinite), ``diverged`` (how many did) and
        ``chosen``.
    """
    by, every, over = (cell["tune"][key] for key in ("by", "every", "over"))
    repeats = min(cell["repeats"], cell["tune"]["repeats"])
    settings, values, diverged = combinations(over), [], []
    for changes in settings:
        found = []
        for repeat in range(repeats):
            params = {**cell["params"], **changes}
            recorder, _ = trial(cell, draws, params, repeat, [_sampled(metrics.get(by), every)])
            found.append(_mean(recorder, by))
        values.append(float(np.median(found)))
        diverged.append(int(np.isinf(found).sum()))
    chosen = min(zip(diverged, values, range(len(settings)), strict=True))[2]
    return {
        "by": by,
        "every": every,
        "repeats": repeats,
        "settings": settings,
        "values": values,
        "diverged": diverged,
        "chosen": settings[chosen],
    }


def _sampled(metric: metrics.Metric, every: int) -> metrics.Metric:
    """Return the metric evaluated on every so many records after the first, else NaN."""
    count = itertools.count()

    def function(iterate: Iterate, problem: Problem) -> float:
        number = next(count)
        return metric.function(iterate, problem) if number and number % every == 0 else np.nan

    return replace(metric, function=function, finite=False)


def _mean(recorder: Recorder, by: str) -> float:
    """Geometric mean of what was measured; infinite for a run that diverged."""
    if recorder.rows[-1]["diverged"]:
        return np.inf
    values = recorder.columns()[by]
    values = values[~np.isnan(values)]
    # A measure of exactly zero is as good as the smallest number.
    return float(np.exp(np.log(np.maximum(values, np.finfo(float).tiny)).mean()))
