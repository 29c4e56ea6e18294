"""Description of a history: its data, its last values, its costs, and its components.

`describe` returns the description as a dict. Commands with ``--json`` print the dict, and
`fedcore.reports.terminal` formats it as text.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.estimators.last_round import moments, principal_axes
from fedcore.federation.centring import centred
from fedcore.history import History
from fedcore.linalg import orth
from fedcore.parts.convergence_test import WARNING_SINE
from fedcore.problems.problem import Problem
from fedcore.recorder import COLUMNS
from fedcore.reports.measures import best, measured

AXES = ("components", "explained_variance", "explained_variance_ratio")  # in `final`
FEATURES = "features"  # in `about`


def describe(history: History) -> dict[str, Any]:
    """Return the description of a history.

    Returns
    -------
    dict
        The keys are ``algorithm``, ``params``, ``seed``, ``problem``, ``centred``, ``scaled``,
        ``repeats``, ``metrics``, ``ledger`` (medians over the repeats), ``seconds`` of CPU,
        ``privacy``, ``tuning`` and ``components``. ``converged``, ``diverged`` and ``undetermined``
        count repeats. A repeat is undetermined if it met the tolerance but rounding may rotate its
        subspace. Each entry of ``metrics`` has ``units`` and the ``median``, ``min`` and ``max`` of
        the metric's last values. If the best possible value of the metric is known, ``at best`` has
        the median, min and max of this value over the random data sets. In a private run,
        ``released`` says whether the run releases the metric. Keys for which the history has no
        data are left out.
    """
    about, seconds = history.about, history.seconds
    spent = [name for name in COLUMNS if name in history.columns and name != "diverged"]
    found: dict[str, Any] = {
        "algorithm": about.get("algorithm"),
        **{part: about.get(part, {}) for part in ("params", "seed", "problem")},
        "centred": bool(about.get("centred")),
        "scaled": bool(np.any(history.final.get("scale", 1.0) != 1.0)),
        "repeats": history.repeats,
        "metrics": {name: _metric(history, name) for name in measured(history)},
        "ledger": {name: float(np.median(history.last(name))) for name in spent},
        **_ended(history),
        **{part: about[part] for part in ("privacy", "tuning") if part in about},
    }
    if seconds is not None:
        found["seconds"] = float(np.median(np.nanmax(seconds, axis=1)))
    if components := _components(history):
        found["components"] = components
    return found


def _metric(history: History, name: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "units": history.units.get(name, ("", ""))[0],
        **_spread(history.last(name)),
    }
    possible = best(history, name)
    if possible is not None:
        found["at best"] = _spread(possible)
    if history.released is not None:
        found["released"] = name in history.released
    return found


def _spread(values: np.ndarray) -> dict[str, float]:
    return {word: float(getattr(np, word)(values)) for word in ("median", "min", "max")}


def _ended(history: History) -> dict[str, int]:
    """Return how many repeats have converged, are undetermined, and have diverged."""
    found, final = {}, history.final
    if "converged" in final:
        found["converged"] = int(np.sum(final["converged"]))
        if "angle_estimate" in final:
            most = max(WARNING_SINE, history.about.get("params", {}).get("tol") or 0.0)
            loose = (np.ravel(final["angle_estimate"]) > most) & (np.ravel(final["converged"]) > 0)
            found["undetermined"] = int(np.sum(loose))
    if "diverged" in history.columns:
        found["diverged"] = int(np.sum(history.last("diverged")))
    return found


def add_components(
    history: History, algorithm: Algorithm, draws: Sequence[Problem],
    features: Sequence[str] | None,
) -> None:  # fmt: skip
    """Add the principal axes of the computed subspace, and their variances, to a history.

    A private run gets no axes, because axes are exact functions of the data. A network, a
    representation learned from labels and a run without a finite result have no principal axes.
    """
    if features is not None:
        history.about[FEATURES] = list(features)
    subspaces = history.final.get("basis", history.final.get("V"))
    if subspaces is None or algorithm.labelled or history.released is not None:
        return
    if subspaces.ndim != 3 or not np.isfinite(subspaces).all():
        return
    means = history.final.get("mean")
    found: list[tuple[np.ndarray, ...]] = []
    for repeat, matrix in enumerate(subspaces):
        clients = draws[repeat % len(draws)].clients
        mean = None if means is None else means[repeat]
        basis, total = orth(matrix.astype(np.float64)), np.zeros(1)
        for data in clients:
            rows = data if mean is None else centred(data, mean)
            total = total + moments(rows, SimpleNamespace(), basis)
        axes = principal_axes(basis, total[:-1])
        freedom = max(clients.n_samples - (mean is not None), 1)
        whole = axes.squares.sum() + total[-1]
        found.append((axes.components.T, axes.squares / freedom, axes.squares / (whole or 1.0)))
    parts = zip(*found, strict=True)
    history.final |= {name: np.stack(part) for name, part in zip(AXES, parts, strict=True)}


def _components(history: History) -> dict[str, Any]:
    """Return the components of a history's first repeat, and their variances.

    Returns
    -------
    dict
        ``features`` has the names of the features, or is None, and ``weights`` has one row per
        component. ``explained_variance`` and ``explained_variance_ratio`` are left out for a
        private run, which releases only directions. The dict is empty for a run with neither
        principal axes nor a released basis.
    """
    final = history.final
    matrix = final.get("components", final.get("basis") if history.released is not None else None)
    if matrix is None or matrix.ndim != 3 or not np.isfinite(matrix[0]).all():
        return {}
    rows = matrix[0].T
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1, keepdims=True), axis=1)
    return {
        "features": history.about.get(FEATURES),
        "weights": np.where(largest < 0, -rows, rows),
        **{name: final[name][0] for name in AXES[1:] if name in final},
    }
