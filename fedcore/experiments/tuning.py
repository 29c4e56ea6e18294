"""Choose hyper-parameters from a declared grid, by one rule for every method.

A cell (an algorithm on one problem) has several repeats, which differ in their random streams.
Every combination of the grid's values runs on the first repeats. With the key ``first``, the runs
use the repeats from this number on, and may use repeats that the cell does not report. The value of
a run is the geometric mean of a metric that is computed at regular intervals. This mean is small if
progress is fast and the final value is small. The combination with the fewest diverged runs is
chosen; the smallest median value decides a tie. The history (record of the runs) keeps all
combinations and their values.

Tuning computes the metric from the data without noise. For a private method, tuning therefore leaks
information that the privacy budget does not cover. A cell with a private method may still be tuned,
because a cell is only a simulation; the history notes the leak.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from fedcore import metrics
from fedcore.errors import ConfigError
from fedcore.experiments.cell import Cell
from fedcore.experiments.combinations import combinations
from fedcore.iterates import Iterate
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder, Recording
from fedcore.words import counted

UNPAID_NOTE = "tuned on exact measures: not paid for"


def tune(cell: Cell, draws: Sequence[Problem], trial: Callable[..., Any]) -> dict[str, Any]:
    """Run a cell's algorithm with each combination of a grid's values, and choose the best one.

    Parameters
    ----------
    cell : Cell
        The cell's ``tune`` has the keys ``by`` (name of the metric), ``every`` (number of recorded
        iterates from one computation of the metric to the next) and ``over`` (lists of values by
        parameter name). The key ``repeats`` is the number of repeats to run. The key ``first`` says
        at which repeat to begin, by default at 0. If ``first`` is 0, no more repeats are run than
        the cell has.
    draws : sequence of Problem
    trial : callable
        ``trial(cell, draws, params, repeat, recording) -> (recorder, output)``, such as
        `repeats.trial`.

    Returns
    -------
    dict
        The keys ``by``, ``every``, ``first`` and ``repeats`` describe the search. ``settings``
        lists the combinations, and ``chosen`` is the best of them. ``values`` lists each
        combination's median value, and ``diverged`` its number of diverged runs. A diverged run
        enters the median as an infinite value.
    """
    asked = cell.tune or {}
    by, every, over, first = asked["by"], asked["every"], asked["over"], asked.get("first", 0)
    repeats = asked["repeats"] if first else min(cell.repeats, asked["repeats"])
    if first and 1 < len(draws) < first + repeats:
        raise ConfigError(
            f"{cell.name}: tune takes the repeats {first} to {first + repeats - 1}, but the "
            f"problem has {counted(len(draws), 'draw')}: give the problem {first + repeats} draws"
        )
    settings, values, diverged = combinations(over), [], []
    for changes in settings:
        found = []
        for repeat in range(first, first + repeats):
            params = {**cell.params, **changes}
            recording = Recording([_sampled(metrics.get(by), every)])
            recorder, _ = trial(cell, draws, params, repeat, recording)
            found.append(_mean(recorder, by))
        values.append(float(np.median(found)))
        diverged.append(int(np.isinf(found).sum()))
    chosen = min(zip(diverged, values, range(len(settings)), strict=True))[2]
    return {
        "by": by,
        "every": every,
        "first": first,
        "repeats": repeats,
        "settings": settings,
        "values": values,
        "diverged": diverged,
        "chosen": settings[chosen],
    }


def _sampled(metric: metrics.Metric, every: int) -> metrics.Metric:
    """Return `metric`, computed only at the recorded iterates `every`, 2·`every`, …, else NaN."""
    count = itertools.count()

    def function(iterate: Iterate, problem: Problem) -> float:
        number = next(count)
        return metric.value(iterate, problem) if number and number % every == 0 else np.nan

    return replace(metric, function=function, finite=False, each=None)


def _mean(recorder: Recorder, by: str) -> float:
    """Return the geometric mean of the metric's values, or infinity for a diverged run."""
    if recorder.rows[-1]["diverged"]:
        return np.inf
    values = recorder.columns()[by]
    values = values[~np.isnan(values)]
    # A measure of zero counts as the smallest normal number.
    return float(np.exp(np.log(np.maximum(values, np.finfo(float).tiny)).mean()))
