"""All checks of a family of metrics."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from fedcore import metrics
from fedcore.errors import FedcoreError, InputError, require_known
from fedcore.iterates import Iterate
from fedcore.metrics import Metric
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.testing.asserting import require
from fedcore.testing.report import Report, Skipped, examine, file_of
from fedcore.testing.samples import FEATURES, RANK, uneven_clients


@dataclass(frozen=True)
class Subject:
    """A metric under check."""

    metric: Metric

    @property
    def problem(self) -> Problem:
        """A small problem."""
        return Problem("contract", Clients(uneven_clients()))

    def value(self, basis: np.ndarray, problem: Problem | None = None) -> Any:
        """Return its value; skip the check if the metric is of another task."""
        try:
            return self.metric.function(Iterate(basis=basis), problem or self.problem)
        except FedcoreError as error:
            raise Skipped(f"it measures something else than a subspace: {error}") from None


def _basis() -> np.ndarray:
    gaussian = np.random.default_rng(3).standard_normal((FEATURES, RANK))
    return np.linalg.qr(gaussian)[0]


def says_what_it_is(subject: Subject) -> None:
    """It has a name, units and a description."""
    metric = subject.metric
    require(isinstance(metric, Metric), f"METRICS holds a {type(metric).__name__}")
    for name in ("name", "units", "description"):
        text = getattr(metric, name)
        require(isinstance(text, str) and text, f"its {name} is {text!r}: a unit-free one has '1'")


def gives_a_number(subject: Subject) -> None:
    """Its value is one number, finite unless it says that it need not be."""
    value = subject.value(_basis())
    require(np.ndim(value) == 0, f"its value has shape {np.shape(value)}")
    number = float(value)
    require(np.isfinite(number) or not subject.metric.finite, f"its value is {number}")


def repeats(subject: Subject) -> None:
    """The same iterate has the same value."""
    require(
        np.array_equal(subject.value(_basis()), subject.value(_basis()), equal_nan=True),
        "two calls differ: a metric may not draw without a seed",
    )


def leaves_iterate_and_data(subject: Subject) -> None:
    """It writes into neither iterate nor data."""
    basis, problem = _basis(), subject.problem
    before = basis.tobytes(), problem.checksum
    subject.value(basis, problem)
    del problem.checksum
    require((basis.tobytes(), problem.checksum) == before, "it wrote into the iterate or the data")


CHECKS: dict[str, Callable[[Subject], None]] = {
    check.__name__: check
    for check in (says_what_it_is, gives_a_number, repeats, leaves_iterate_and_data)
}


def check_metrics(found: str | ModuleType | Metric, *, raising: bool = True) -> list[Report]:
    """Check one metric, or all of a module.

    Parameters
    ----------
    found : str, module or Metric
        Name of a metric, import path of a module with ``METRICS``, the module, or the metric.
    raising : bool, default=True
        Whether to raise when a check fails.

    Returns
    -------
    list of Report
        One for each metric.

    Raises
    ------
    CheckFailed
        An AssertionError that names every check that has failed.
    ConfigError, InputError
        When there is no such metric or module.
    """
    reports = [
        examine(
            f"metric {getattr(m, 'name', m)}", CHECKS, Subject(m),
            file_of(getattr(m, "function", None)),
        )
        for m in _metrics(found)
    ]  # fmt: skip
    if raising:
        for report in reports:
            report.require()
    return reports


def _metrics(found: str | ModuleType | Metric) -> Iterable[Metric]:
    if isinstance(found, str) and "." not in found:
        return [metrics.get(found)]
    if isinstance(found, str):
        try:
            found = importlib.import_module(found)
        except (Exception, SystemExit) as error:
            raise InputError(
                f"{found} cannot be imported: {type(error).__name__}: {error}"
            ) from error
    if isinstance(found, ModuleType):
        require_known("METRICS", vars(found), f"{found.__name__} has no", InputError)
        return list(found.METRICS)
    return [found]
