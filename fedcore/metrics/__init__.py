"""Measures of an iterate, evaluated outside the protocol and free of charge.

A metric is a function ``(iterate, problem) -> float`` of an `Iterate`. Most need its shared matrix
only, so that methods of different papers can be measured by the same yardstick.

Each module of this package is a family and lists its metrics in ``METRICS``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import TypeVar

import numpy as np

from fedcore.errors import ConfigError, InputError, nearest
from fedcore.iterates import Iterate
from fedcore.plugins import Registry
from fedcore.problems.problem import Problem

REGISTRY = Registry(__name__, __path__, "family of metrics")

Value = TypeVar("Value")


@dataclass(frozen=True)
class Metric:
    """A named measure.

    Attributes
    ----------
    name, units, description : str
        As they are written into a history.
    function : callable
        ``(iterate, problem) -> float``.
    finite : bool, default=True
        Whether a value that is not finite marks the run as diverged. A measure that may be infinite
        or left out (NaN) says False.
    """

    name: str
    units: str
    description: str
    function: Callable[[Iterate, Problem], float]
    finite: bool = True

    def fails(self, value: float) -> bool:
        """Whether `value` is what only a diverged run has."""
        return self.finite and not np.isfinite(value)

    @property
    def code(self) -> str:
        """Where it is written, as ``module:function``; the module where no name of it leads there.

        What a function of a function has been given must be seen in the metric's own name.
        """
        function = inspect.unwrap(self.function)
        module = function.__module__
        name = getattr(function, "__qualname__", "<").partition(".")[0]
        return f"{module}:{name}" if hasattr(sys.modules[module], name) else module


def intermediate(
    function: Callable[[Iterate, Problem], Value],
) -> Callable[[Iterate, Problem], Value]:
    """Decorate what several metrics need of the same iterate: it is computed once, and kept in it.

    An iterate is new in every call of the recorder, and belongs to one problem.
    """

    @wraps(function)
    def once(iterate: Iterate, problem: Problem) -> Value:
        if function not in iterate.derived:
            iterate.derived[function] = function(iterate, problem)
        return iterate.derived[function]

    return once


def get(name: str) -> Metric:
    """Return the metric `name`.

    Raises
    ------
    ConfigError
        When there is none; the message suggests the nearest name.
    """
    known: dict[str, Metric] = {}
    broken: list[str] = []  # of other packages, perhaps: the metrics of all others still work
    for family in REGISTRY.names():
        try:
            known.update({metric.name: metric for metric in REGISTRY.module(family).METRICS})
        except (InputError, AttributeError) as error:
            broken.append(str(error))
    if name not in known:
        raise ConfigError("; ".join([f"unknown metric '{name}': {nearest(name, known)}", *broken]))
    return known[name]
