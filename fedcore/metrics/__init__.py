"""Metrics of an iterate, evaluated outside the protocol and not charged to the ledger.

A metric is a function ``(iterate, problem) -> float`` of an `Iterate`. Most metrics use only its
shared matrix, so that they apply to methods of different papers.

Each module of this package is a family and lists its metrics in ``METRICS``.
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
        Words that are written into a history.
    function : callable
        ``(iterate, problem) -> float``.
    finite : bool, default=True
        Whether a value that is not finite marks the run as diverged. False for a metric that may be
        infinite, or NaN where it is undefined.
    each : callable, optional
        ``(iterate, problem) -> ndarray of shape (n_clients,)``, one value per client; `function`
        gives their mean. A history keeps these values, too.
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
                raise InputError(f"the {name} of a metric is {text!r}: write a text")

    def value(self, iterate: Iterate, problem: Problem) -> float:
        """Return what `function` gives.

        Parameters
        ----------
        iterate : Iterate
        problem : Problem

        Raises
        ------
        InputError
            When the value is no number, or the function of another package fails.
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
        """Return whether `value` marks the run as diverged.

        Parameters
        ----------
        value : float
        """
        return self.finite and not np.isfinite(value)

    @property
    def code(self) -> str:
        """The metric's code as ``module:function``, or its module if that has no such name.

        A function that another function returns gets the name of the outer function, without
        arguments. So metrics from one outer function must differ in their own names.
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
    """Decorate a function ``(iterate, problem) -> float`` to make it a `Metric` of its own name.

    Parameters
    ----------
    units, description, finite, each
        See `Metric`.
    """

    def declare(function: Callable[[Iterate, Problem], float]) -> Metric:
        return Metric(function.__name__, units, description, function, finite, each)

    return declare


def intermediate(
    function: Callable[[Iterate, Problem], Value],
) -> Callable[[Iterate, Problem], Value]:
    """Decorate a function that several metrics call: its value is kept in the iterate.

    This is safe because the recorder makes a new iterate in every call, for one problem.

    Parameters
    ----------
    function : callable
        ``(iterate, problem) -> value``

    Returns
    -------
    callable
        The function that keeps its value.
    """

    @wraps(function)
    def once(iterate: Iterate, problem: Problem) -> Value:
        if function not in iterate.derived:
            iterate.derived[function] = function(iterate, problem)
        return iterate.derived[function]

    return once


def families() -> tuple[dict[str, tuple[Metric, ...]], list[str]]:
    """Return the metrics of every family, and for each broken family why it is left out."""
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
    """Return the modules of the families to which these metrics belong."""
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
        When there is no such metric (the message suggests the nearest name).
    """
    found, broken = families()
    known = {metric.name: metric for family in found.values() for metric in family}
    if not isinstance(name, str) or name not in known:
        hint = nearest(str(name), known, "`fedcore list metrics` shows all")
        raise ConfigError("; ".join([f"unknown metric '{name}': {hint}", *broken]))
    return known[name]
