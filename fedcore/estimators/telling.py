"""Warnings of a fit, shown at the user's line."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_the_users_line() -> Iterator[None]:
    """Give every warning that is raised inside the line outside of fedcore that led to it."""
    told: list[warnings.WarningMessage] = []
    try:
        with warnings.catch_warnings(record=True) as told:
            yield
    finally:
        for warning in told:
            warnings.warn(warning.message, stacklevel=_level())


def _level() -> int:
    """Return the `stacklevel` for which the caller's warning shows the first line of a user's."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").startswith(
        ("fedcore.", "contextlib")
    ):
        level, frame = level + 1, frame.f_back
    return level
