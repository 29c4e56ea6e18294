"""Metrics of a history: names, best possible values, and metrics left out by private runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import numpy as np

from fedcore.recorder import COLUMNS

OBJECTIVES = ("objective", "exact_objective")
ERRORS = (
    "exact_excess",
    "kkt",
    "kkt_residual",
    "projection_distance",
    "sin_squared",
    "subspace_distance",
)


class Recorded(Protocol):
    """The attributes of a `History` that figures use; `History` describes them."""

    columns: dict[str, np.ndarray]
    reference: dict[str, np.ndarray]
    about: dict[str, Any]
    units: dict[str, tuple[str, str]]
    released: frozenset[str] | None


def measured(history: Recorded) -> list[str]:
    """Return the sorted names of a history's metrics and of the algorithm's own columns."""
    return sorted(set(history.columns) - set(COLUMNS))


def best(history: Recorded, name: str) -> np.ndarray | None:
    """Return a metric's best possible value for each random data set, shape (draws,), or None."""
    squares = np.atleast_2d(history.reference.get("singular_values", np.empty(0))) ** 2
    rank = history.about.get("params", {}).get("n_components")
    if not squares.size or not isinstance(rank, int):
        return None
    if name in OBJECTIVES:
        return squares[:, rank:].sum(axis=1) / 2
    if name == "captured":
        return squares[:, :rank].sum(axis=1)
    return np.zeros(len(squares)) if name in ERRORS else None


def why_left_out(found: Iterable[Mapping[str, Any]]) -> str:
    """Say which metrics private runs have not kept, and why; return "" if all metrics are kept.

    Each entry of `found` is the attribute ``about`` of a history, or a history's description.
    """
    every = [one.get("privacy", {}).get("left_out", ()) for one in found]
    names = sorted({name for left_out in every for name in left_out})
    if not names:
        return ""
    return (
        "a private run with real noise keeps no measure that is exact and not released "
        f"({', '.join(names)}): run the command with --keep-exact, or in Python take the run's own "
        "history, not its released_alone()"
    )
