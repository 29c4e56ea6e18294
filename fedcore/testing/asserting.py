"""How the checks of an algorithm compare, and the list of these checks."""

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
    """Add a function to `CHECKS`; the first line of its docstring is its sentence."""
    CHECKS[function.__name__] = function
    return function


def require(condition: Any, words: str) -> None:
    """Raise an AssertionError with `words` unless `condition` is true."""
    if not condition:
        raise AssertionError(words)


def require_close(actual: Any, desired: Any, tolerance: float, what: str) -> None:
    """Compare relative to the largest entry, because single entries may cancel."""
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
    """V Vᵀ, which does not depend on signs or rotations of columns."""
    return basis @ basis.T


def takes_a_start(setting: Mapping[str, Any]) -> bool:
    """Return whether the setting allows a start; several samples do not."""
    return setting.get("samples", 1) == 1


@contextmanager
def noted(setting: Mapping[str, Any], **more: Any) -> Iterator[None]:
    """Add the parameters to an error."""
    try:
        yield
    except Exception as error:
        words = ", ".join(f"{k} = {v}" for k, v in {**setting, **more}.items())
        error.add_note(f"with {words or 'default parameters'}")
        raise


def settings_and_starts(subject: Subject) -> Iterator[tuple[dict[str, Any], np.ndarray | None]]:
    """Yield the settings of the case, each without a start and, where it has one, with it."""
    for setting in subject.case.settings:
        yield dict(setting), None
        if subject.subspace and takes_a_start(setting):
            yield dict(setting), starting_basis()


def with_start(start: np.ndarray | None) -> dict[str, Any]:
    """Return ``start`` as an option, if there is one."""
    return {} if start is None else {"start": start}


def only_subspace(subject: Subject) -> None:
    """Skip the check of an algorithm that learns no subspace."""
    if not subject.subspace:
        raise Skipped("the algorithm learns no subspace")
