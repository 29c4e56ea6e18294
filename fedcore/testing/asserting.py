"""Comparisons for the checks of an algorithm, and the registry of these checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from fedcore.testing.report import Skipped
from fedcore.testing.samples import starting_basis
from fedcore.testing.subject import Subject

# Sums in another order and products of other shapes differ by a few hundred roundings (2e-16 each),
# times condition numbers of at most about 1e4 in these settings. Beyond it, the effect is measured.
ROUNDING = 1e-9
UNSTABLE = 1e-6  # what rounding moves further than this has no digits left that a test could hold
UNLESS_MEANT = "if the method is not meant to, say so in the case of its ALGORITHM"
CHECKS: dict[str, Callable[[Subject], None]] = {}


def check(function: Callable[[Subject], None]) -> Callable[[Subject], None]:
    """Add a function to `CHECKS`; reports show the first line of its docstring."""
    CHECKS[function.__name__] = function
    return function


def require(condition: Any, words: str) -> None:
    """Raise an AssertionError with `words` unless `condition` is true."""
    if not condition:
        raise AssertionError(words)


def require_close(actual: Any, desired: Any, tolerance: float, what: str) -> None:
    """Require that arrays agree up to `tolerance` times the largest absolute desired entry."""
    actual, desired = np.asarray(actual), np.asarray(desired)
    require(actual.shape == desired.shape, f"{what}: shape {actual.shape}, not {desired.shape}")
    largest = np.abs(desired).max()
    error = np.abs(actual - desired).max()
    allowed = tolerance * largest
    require(
        error <= allowed,
        f"{what}: differs by {error:.3g} where rounding allows {allowed:.3g} (Not equal to "
        "tolerance)",
    )


def projection(basis: np.ndarray) -> np.ndarray:
    """Return V Vᵀ, which does not depend on signs or rotations of the columns of V."""
    return basis @ basis.T


@contextmanager
def noted(setting: Mapping[str, Any], **more: Any) -> Iterator[None]:
    """Return a context that adds the parameters of a run as a note to every error in it."""
    try:
        yield
    except Exception as error:
        told = {**setting, **({"start": "given"} if "start" in setting else {}), **more}
        words = ", ".join(f"{k} = {v}" for k, v in told.items())
        error.add_note(f"with {words or 'default parameters'}")
        raise


def options_of(subject: Subject) -> Iterator[dict[str, Any]]:
    """Yield each of the case's settings, first without and then with a `start`, if possible."""
    for setting in subject.case.settings:
        yield dict(setting)
        if subject.subspace and setting.get("samples", 1) == 1:  # several samples have no start
            yield {**setting, "start": starting_basis()}


def only_subspace(subject: Subject) -> None:
    """Raise `Skipped` if the algorithm learns no subspace."""
    if not subject.subspace:
        raise Skipped("the algorithm learns no subspace")
