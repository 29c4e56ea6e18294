"""Parameters that a cell may give as ``reference``: the problem's own numbers.

A theorem or a baseline assumes that they are known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fedcore.errors import ConfigError
from fedcore.problems.problem import Problem
from fedcore.problems.regression import Truth

REFERENCES: dict[str, Callable[[Problem, int], float]] = {
    "sigma_max": lambda problem, rank: float(problem.singular_values[0]),
    "sigma_r": lambda problem, rank: float(problem.singular_values[rank - 1]),
    "sigma_next": lambda problem, rank: float(np.append(problem.singular_values, 0.0)[rank]),
    "head_sigma": lambda problem, rank: float(_truth(problem).head_singular_values[0]),
}


def resolve(params: Mapping[str, Any], problem: Problem) -> dict[str, Any]:
    """Return parameters with the problem's numbers in the place of every ``reference``."""
    resolved = dict(params)
    for name, value in params.items():
        if value == "reference":
            if name not in REFERENCES:
                raise ConfigError(
                    f"'{name}: reference' is not possible: take a number; only "
                    f"{', '.join(sorted(REFERENCES))} have a reference"
                )
            rank, most = params.get("n_components"), min(problem.n_samples, problem.n_features)
            if not isinstance(rank, int) or not 1 <= rank <= most:
                raise ConfigError(
                    f"'{name}: reference' needs n_components from 1 to {most}, got {rank!r}"
                )
            resolved[name] = REFERENCES[name](problem, rank)
    return resolved


def _truth(problem: Problem) -> Truth:
    if problem.truth is None:
        raise ConfigError(
            f"problem {problem.name}: no model of its labels is known; give head_sigma as a number"
        )
    return problem.truth
