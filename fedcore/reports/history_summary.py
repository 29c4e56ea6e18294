"""How a history ended: its last values, the best that they could be, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fedcore.history import History
from fedcore.recorder import COLUMNS
from fedcore.reports import components

# Of metrics: the best value that a subspace of a rank can have, by the squared singular values.
Best = Callable[[np.ndarray, int], np.ndarray]
BEST: dict[str, Best] = {
    "objective": lambda squares, rank: squares[:, rank:].sum(axis=1) / 2,
    "exact_objective": lambda squares, rank: squares[:, rank:].sum(axis=1) / 2,
    "captured": lambda squares, rank: squares[:, :rank].sum(axis=1),
    **dict.fromkeys(
        (
            "exact_excess",
            "kkt",
            "kkt_residual",
            "projection_distance",
            "sin_squared",
            "subspace_distance",
        ),
        lambda squares, rank: np.zeros(len(squares)),
    ),
}
ZERO: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    name: lambda squares: squares.sum(axis=1) / 2 for name in ("objective", "exact_objective")
}

# How a history's sums over clients were taken, where it does not say it.
ORDERED: Mapping[str, Any] = {"order": "fixed"}


def measured(history: History) -> list[str]:
    """Return the names of a history's metrics and of the algorithm's own columns, sorted."""
    return sorted(set(history.columns) - set(COLUMNS))


def bounds(history: History, name: str) -> dict[str, np.ndarray]:
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
    found = {}
    if name in BEST:
        found["at best"] = BEST[name](squares, rank)
    if name in ZERO:
        found["all zero"] = ZERO[name](squares)
    return found


def ended(history: History) -> dict[str, int]:
    """Return how many repeats have ``converged``, if there is a tolerance, and ``diverged``."""
    found = {}
    if "converged" in history.final:
        found["converged"] = int(np.sum(history.final["converged"]))
    if "diverged" in history.columns:
        found["diverged"] = int(np.sum(history.last("diverged")))
    return found


def spent(history: History) -> dict[str, float]:
    """Return what the ledger has at the end, medians over the repeats."""
    names = [name for name in COLUMNS if name in history.columns and name != "diverged"]
    return {name: float(np.median(history.last(name))) for name in names}


def cpu_seconds(history: History) -> float | None:
    """Return the CPU seconds of a repeat, their median; None where nobody has measured them."""
    seconds = history.seconds
    return None if seconds is None else float(np.median(np.nanmax(seconds, axis=1)))


def summary(history: History) -> dict[str, Any]:
    """Return all that `fedcore.reports.terminal.describe_run` prints, as plain values.

    Returns
    -------
    dict
        ``algorithm``, ``params``, ``seed``, ``sums`` (in which order they were taken over clients),
        ``problem``, ``centred``, ``repeats``, ``metrics``, ``ledger``, ``seconds``, ``converged``,
        ``diverged``, ``privacy``, ``components`` (see `components.read_components`). A metric
        has ``units``, the ``median``, ``min`` and ``max`` of the last values, ``at best`` and ``all
        zero`` where they are known, and ``released`` in a private run.
    """
    about = history.about
    metrics: dict[str, dict[str, Any]] = {}
    for name in measured(history):
        last = history.last(name)
        metrics[name] = {
            "units": history.units.get(name, ("", ""))[0],
            **_spread(last),
            **{word: float(np.median(values)) for word, values in bounds(history, name).items()},
            **({} if history.released is None else {"released": name in history.released}),
        }
    seconds = cpu_seconds(history)
    return {
        "algorithm": about.get("algorithm"),
        "params": about.get("params", {}),
        "seed": about.get("seed", {}),
        "sums": dict(about.get("sums", ORDERED)),
        "problem": about.get("problem", {}),
        "centred": bool(about.get("centred")),
        "repeats": history.repeats,
        "metrics": metrics,
        "ledger": spent(history),
        **({} if seconds is None else {"seconds": seconds}),
        **ended(history),
        **({"privacy": about["privacy"]} if "privacy" in about else {}),
        **({"components": found} if (found := components.read_components(history)) else {}),
    }


def _spread(values: np.ndarray) -> Mapping[str, float]:
    return {
        "median": float(np.median(values)),
        "min": float(np.min(values)),
        "max": float(np.max(values)),
    }
