"""Which measures a history has, what they would be at best, and which a private run left out."""

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
    """What figures take of a history, whose attributes of these names say what each is."""

    columns: dict[str, np.ndarray]
    reference: dict[str, np.ndarray]
    about: dict[str, Any]
    units: dict[str, tuple[str, str]]
    released: frozenset[str] | None


def measured(history: Recorded) -> list[str]:
    """Return the names of a history's metrics and of the algorithm's own columns, sorted."""
    return sorted(set(history.columns) - set(COLUMNS))


def bounds(history: Recorded, name: str) -> dict[str, np.ndarray]:
    """Return what a metric would be at best, and of a model that is zero everywhere.

    Returns
    -------
    dict of str to ndarray of shape (draws,)
        ``at best`` and ``all zero``, as far as they are known.
    """
    squares = np.atleast_2d(history.reference.get("singular_values", np.empty(0))) ** 2
    rank = history.about.get("params", {}).get("n_components")
    if not squares.size or not isinstance(rank, int):
        return {}
    if name in OBJECTIVES:
        outside = squares[:, rank:].sum(axis=1)
        return {"at best": outside / 2, "all zero": squares.sum(axis=1) / 2}
    if name == "captured":
        return {"at best": squares[:, :rank].sum(axis=1)}
    return {"at best": np.zeros(len(squares))} if name in ERRORS else {}


def why_left_out(found: Iterable[Mapping[str, Any]]) -> str:
    """Say which measures private runs have not kept, and why; empty if there are none.

    `found` has what histories say of themselves, or descriptions of them.
    """
    every = [one.get("privacy", {}).get("left_out", ()) for one in found]
    names = sorted({name for left_out in every for name in left_out})
    if not names:
        return ""
    return (
        "a private run with real noise keeps no measure that is exact and not released "
        f"({', '.join(names)}): run it with --keep-exact"
    )
