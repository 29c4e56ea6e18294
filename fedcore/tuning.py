"""Choosing hyper-parameters from a declared grid, by one rule for every method.

Every combination of the grid's values is run on all repeats of the cell without recording, and the
one whose measure after the last iterate has the smallest median over the repeats is taken for all
of them. A run that diverged counts as infinite. What was tried and what came out goes into the
history.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fedcore import metrics
from fedcore.problems import Problem


def combinations(grid: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    """Return every combination of the grid's values, the first name's value changing slowest."""
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def tune(
    cell: Mapping[str, Any], draws: Sequence[Problem], trial: Callable[..., Any]
) -> dict[str, Any]:
    """Try the grid of a cell.

    Parameters
    ----------
    cell : mapping
        With ``tune``: the measure ``by`` which to choose, and ``over``, the grid: values by name.
    draws : sequence of Problem
    trial : callable
        ``trial(cell, draws, params, repeat, metrics) -> (recorder, output)``, as `cells.trial`.

    Returns
    -------
    dict
        ``by``, ``settings`` (a list of changes), ``values`` (the median measure of each, infinite
        where half of the runs diverged), ``diverged`` (the number of repeats that did) and
        ``chosen``.
    """
    measure = metrics.get(cell["tune"]["by"])
    settings = combinations(cell["tune"]["over"])
    values, diverged = [], []
    for changes in settings:
        found = []
        for repeat in range(cell["repeats"]):
            recorder, _ = trial(cell, draws, {**cell["params"], **changes}, repeat, [])
            ended = bool(recorder.rows[-1]["diverged"])
            problem = draws[repeat % len(draws)]
            found.append(np.inf if ended else measure.function(recorder.last, problem))
        values.append(float(np.median(found)))
        diverged.append(int(np.isinf(found).sum()))
    chosen = settings[int(np.argmin(values))]
    return {
        "by": measure.name,
        "settings": settings,
        "values": values,
        "diverged": diverged,
        "chosen": chosen,
    }
