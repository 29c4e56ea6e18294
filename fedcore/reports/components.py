"""The principal components that a run has found: weights, variances, and what they mean."""

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
from fedcore.problems.problem import Problem

AXES = ("components", "explained_variance", "explained_variance_ratio")  # in `final`
NAMES = "features"  # in `about`


def add(
    history: History, algorithm: Algorithm, draws: Sequence[Problem],
    features: Sequence[str] | None,
) -> None:  # fmt: skip
    """Add principal axes of the subspace found, and their variances, to a history.

    They are exact functions of the data, so that a private run gets none. A network, a
    representation learned from labels and a run without a finite result have no such axes.
    """
    if features is not None:
        history.about[NAMES] = list(features)
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


def read_components(history: History) -> dict[str, Any]:
    """Return the components of the first repeat.

    Returns
    -------
    dict
        ``features``, their names or None; ``weights``, an array of one row per component;
        ``explained_variance`` and ``explained_variance_ratio`` but for a private run, which has
        released the directions alone. Empty for a run without such axes.
    """
    final = history.final
    matrix = final.get("components", final.get("basis") if history.released is not None else None)
    if matrix is None or matrix.ndim != 3 or not np.isfinite(matrix[0]).all():
        return {}
    rows = matrix[0].T
    largest = np.take_along_axis(rows, np.abs(rows).argmax(axis=1, keepdims=True), axis=1)
    return {
        "features": history.about.get(NAMES),
        "weights": np.where(largest < 0, -rows, rows),
        **{name: final[name][0] for name in AXES[1:] if name in final},
    }
