"""Replay a run: recompute the error angle of every iterate that the run's history keeps.

The angle is between the iterate's column space and the exact subspace; the history has both.
The recomputed angle must equal the metric that the run recorded.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fedcore.errors import InputError
from fedcore.history import History
from fedcore.linalg import column_space, sin_theta

# Metrics of the largest angle: the last is the squared sine, all others are the sine.
MEASURES = ("subspace_distance", "projection_distance", "sin_squared")


class Replay(NamedTuple):
    """Recomputed and recorded values of a metric, in arrays of shape (repeats, kept iterates).

    Attributes
    ----------
    iteration : ndarray of int
        Iteration of each kept iterate; −1 fills up the rows of repeats that kept fewer iterates.
    recomputed : ndarray
        The metric of each iterate, or NaN where the iterate is missing or not finite.
    recorded : ndarray
        The metric as the run recorded it, or NaN where the run did not compute it.
    measure : str
        Name of the metric. If no angle was recorded, the name is subspace_distance, or
        representation_distance for a representation.
    """

    iteration: np.ndarray
    recomputed: np.ndarray
    recorded: np.ndarray
    measure: str

    @property
    def difference(self) -> float:
        """Largest |`recomputed` − `recorded`|, or NaN if no iterate has both values."""
        apart = np.abs(self.recomputed - self.recorded)
        return float(np.nanmax(apart)) if np.isfinite(apart).any() else np.nan


def replay(history: History, repeats: int | None = None) -> Replay:
    """Recompute the angle of every kept iterate in the first `repeats` repeats (None: in all)."""
    found, exact = history.iterates, history.reference
    if not found or found["shared"].ndim != 4:
        raise InputError(
            "this history keeps no iterates of a subspace: run it again with --iterates log"
        )
    true = "representation" in exact
    if not true and "leading_vectors" not in exact:
        raise InputError(
            "no angle can be recomputed, because this history does not keep the exact directions: "
            "they are not computed for very large sparse data, and a private run with real noise "
            "keeps them only if --keep-exact is given"
        )
    answers = exact["representation" if true else "leading_vectors"]
    answers = answers[None] if answers.ndim == 2 else answers  # one for each draw
    names = ("representation_distance",) if true else MEASURES
    measure = next((name for name in names if name in history.columns), names[0])
    target = history.about.get("params", {}).get("target")
    iteration = found["iteration"][:repeats]
    sine = np.full(iteration.shape, np.nan)
    recorded = np.full(iteration.shape, np.nan)
    for repeat, snapshot in zip(*np.nonzero(iteration >= 0), strict=True):
        shared = found["shared"][repeat, snapshot]
        k = target if target and measure == "projection_distance" else shared.shape[1]
        answer = answers[repeat % len(answers)]
        if np.isfinite(shared).all():
            wanted = answer if true else answer[:, :k]
            sine[repeat, snapshot] = sin_theta(column_space(shared), wanted)
        if measure in history.columns:
            record = found["record_number"][repeat, snapshot]
            recorded[repeat, snapshot] = history.columns[measure][repeat, record]
    recomputed = sine**2 if measure == "sin_squared" else sine
    return Replay(iteration, recomputed, recorded, measure)
