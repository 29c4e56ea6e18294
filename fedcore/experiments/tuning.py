"""Choose hyper-parameters from a declared grid, by one rule for every method.

Every combination of the grid's values runs on some repeats: the first ones of the cell, or others
that the cell does not report. The value of a run is
the geometric mean of a measure taken at regular intervals, so that speed counts, and not only the
final value. Among the combinations with the fewest diverged runs, the one with the smallest median
value is used for all repeats. The history keeps all combinations and their values.

The measure is exact: for a private method the choice itself leaks information that the privacy
budget does not cover. Such a choice is allowed here because a cell is only a simulation; the
history notes that the budget does not pay for it.
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
    """Try the grid of a cell.

    Parameters
    ----------
    cell : Cell
        Its ``tune`` has the name of the measure (``by``), the number of records between two values
        (``every``), the number of ``repeats`` to try, the ``first`` of them (0 if it is missing),
        and the grid: values by name (``over``).
    draws : sequence of Problem
    trial : callable
        ``trial(cell, draws, params, repeat, recording) -> (recorder, output)``, as `repeats.trial`.

    Returns
    -------
    dict
        ``by``, ``every``, ``first``, ``repeats``, ``settings`` (the combinations), ``values`` (the
        median of each; a diverged run counts as infinite), ``diverged`` (the number of diverged
        runs of each) and ``chosen`` (a combination).
    """
    asked = cell.tune or {}
    by, every, over, first = asked["by"], asked["every"], asked["over"], asked.get("first", 0)
    repeats = asked["repeats"] if first else min(cell.repeats, asked["repeats"])
    if first and 1 < len(draws) < first + repeats:
        raise ConfigError(
            f"{cell.name}: tune takes the repeats {first} to {first + repeats - 1}, and the "
            f"problem has {counted(len(draws), 'draw')}: give it {first + repeats}"
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
    """Return the metric evaluated at record `every` and its multiples, and NaN elsewhere."""
    count = itertools.count()

    def function(iterate: Iterate, problem: Problem) -> float:
        number = next(count)
        return metric.value(iterate, problem) if number and number % every == 0 else np.nan

    return replace(metric, function=function, finite=False, each=None)


def _mean(recorder: Recorder, by: str) -> float:
    """Return the geometric mean of the measured values; infinite for a diverged run."""
    if recorder.rows[-1]["diverged"]:
        return np.inf
    values = recorder.columns()[by]
    values = values[~np.isnan(values)]
    # A measure of zero counts as the smallest normal number.
    return float(np.exp(np.log(np.maximum(values, np.finfo(float).tiny)).mean()))
