"""Metrics of an iterate, which is the current result of an algorithm.

A metric is a function ``(iterate, problem) -> float``, where the problem consists of the clients'
data and the exact answer. Metrics are no part of the federated protocol, and the ledger of
communication costs does not count them. Most metrics use only the matrix that all clients share,
and therefore apply to methods of different papers. Each module of this package is a family of
metrics, and lists its metrics in ``METRICS``.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import wraps
from numbers import Real
from typing import TypeVar, cast

import numpy as np

from fedcore.errors import ConfigError, InputError, foreign_errors, nearest
from fedcore.iterates import Iterate
from fedcore.plugins import Registry
from fedcore.problems.problem import Problem

REGISTRY = Registry(__name__, __path__, "family of metrics")

Value = TypeVar("Value")


@dataclass(frozen=True)
class Metric:
    """A named metric.

    Attributes
    ----------
    name, units, description : str
        Texts that a history file, which has the results of runs, stores with the metric's values.
    function : callable
        Function ``(iterate, problem) -> float``.
    finite : bool, default=True
        If true, a value that is not finite marks the run as diverged. Use false for a metric that
        is allowed to be infinite or NaN.
    each : callable, optional
        Function ``(iterate, problem) -> ndarray of shape (n_clients,)`` that returns one value per
        client. `function` returns the mean of these values. A history file stores the mean and the
        clients' values.
    """

    name: str
    units: str
    description: str
    function: Callable[[Iterate, Problem], float]
    finite: bool = True
    each: Callable[[Iterate, Problem], np.ndarray] | None = None

    def __post_init__(self) -> None:
        for name in ("name", "units", "description"):
            if not isinstance(text := getattr(self, name), str):
                raise InputError(f"the {name} of a metric must be a text, got {text!r}")

    def value(self, iterate: Iterate, problem: Problem) -> float:
        """Return the metric's value for an iterate.

        Parameters
        ----------
        iterate : Iterate
            Current result of an algorithm.
        problem : Problem
            The clients' data with the exact answer.

        Raises
        ------
        InputError
            Raised if the value is not a number, or if a metric of another package fails.
        """
        others = not self.code.startswith("fedcore.")
        with foreign_errors(f"metric '{self.name}' ({self.code})", others):
            found = self.function(iterate, problem)
        if not isinstance(found, Real):
            raise InputError(
                f"metric '{self.name}' ({self.code}) gives a {type(found).__name__}: return one "
                "number, as float(...) makes it"
            )
        return cast("float", found)

    def fails(self, value: float) -> bool:
        """Return whether a value of this metric marks the run as diverged.

        Parameters
        ----------
        value : float
            Value of the metric for an iterate.
        """
        return self.finite and not np.isfinite(value)

    @property
    def code(self) -> str:
        """Return the name ``module:function`` of the metric's code.

        For a function defined inside another function, ``function`` is the name of the outer
        function. Metrics made by the same outer function therefore share one ``code``, and need
        different metric names. If the module has no attribute ``function``, the result is only the
        name of the module.
        """
        function = inspect.unwrap(self.function)
        module = function.__module__
        name = getattr(function, "__qualname__", "<").partition(".")[0]
        return f"{module}:{name}" if hasattr(sys.modules[module], name) else module


def metric(
    units: str,
    description: str,
    *,
    finite: bool = True,
    each: Callable[[Iterate, Problem], np.ndarray] | None = None,
) -> Callable[[Callable[[Iterate, Problem], float]], Metric]:
    """Turn the decorated function ``(iterate, problem) -> float`` into a `Metric` of the same name.

    Parameters
    ----------
    units, description, finite, each
        Attributes of the `Metric`.
    """

    def declare(function: Callable[[Iterate, Problem], float]) -> Metric:
        return Metric(function.__name__, units, description, function, finite, each)

    return declare


def intermediate(
    function: Callable[[Iterate, Problem], Value],
) -> Callable[[Iterate, Problem], Value]:
    """Decorate a function so that it runs only once for each iterate (result of an algorithm).

    Parameters
    ----------
    function : callable
        Function ``(iterate, problem) -> value``.
    """

    @wraps(function)
    def once(iterate: Iterate, problem: Problem) -> Value:
        if function not in iterate.derived:
            iterate.derived[function] = function(iterate, problem)
        return iterate.derived[function]

    return once


def families() -> tuple[dict[str, tuple[Metric, ...]], list[str]]:
    """Return every family's metrics, and an error message for each family that fails to load."""
    known: dict[str, tuple[Metric, ...]] = {}
    broken: list[str] = []  # a broken family of another package leaves the others usable
    for family in REGISTRY.names():
        try:
            metrics = tuple(REGISTRY.module(family).METRICS)
            {metric.name for metric in metrics}
        except (InputError, AttributeError, TypeError) as error:
            broken.append(f"metrics '{family}': {error}")
        else:
            known[family] = metrics
    return known, broken


def modules(names: Collection[str]) -> list[str]:
    """Return the names of the modules that define the metrics `names`."""
    known, _ = families()
    return [
        REGISTRY.module_name(family)
        for family, found in known.items()
        if any(metric.name in names for metric in found)
    ]


def get(name: str) -> Metric:
    """Return the metric `name`.

    Raises
    ------
    ConfigError
        Raised if no metric has this name. The message suggests the nearest name.
    """
    found, broken = families()
    known = {metric.name: metric for family in found.values() for metric in family}
    if not isinstance(name, str) or name not in known:
        hint = nearest(str(name), known, "`fedcore list metrics` shows all")
        raise ConfigError("; ".join([f"unknown metric '{name}': {hint}", *broken]))
    return known[name]
