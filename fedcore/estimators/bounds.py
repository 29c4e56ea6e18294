"""Public bounds, to which clients clip their samples in a private fit.

Each sample is clipped independently of the others, so neighbouring data sets remain neighbours.
Apart from ``clip``, this module uses only the bounds and noisy values that are already released.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcore.errors import Advice, InputError
from fedcore.privacy.bounded_rows import clip_rows
from fedcore.user_tables.labelled import Features, per_feature
from fedcore.validation import POSITIVE, require_valid
from fedcore.words import counted

FORMS = (
    Advice("give bounds=(low, high), two numbers or two arrays with one value per feature"),
    Advice("give ranges by the features' names, bounds={'age': (0, 120), …}"),
    Advice("give the largest norm of a sample, bounds=norm"),
)


@dataclass(frozen=True)
class Box:
    """A lower and an upper bound for every entry of a sample.

    Attributes
    ----------
    low, high : ndarray of shape (d,)
        Smallest and largest value of each entry.
    """

    low: np.ndarray
    high: np.ndarray

    @property
    def middle(self) -> np.ndarray:
        """Centre of the bounds, shape (d,); for this point, `reach` is smallest."""
        return (self.low + self.high) / 2

    @property
    def sum_of_fractions(self) -> float:
        """Largest norm of ``((x - point) / widths(point))**2`` for samples x within the bounds."""
        return float(np.sqrt(len(self.low)))

    def clip(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows, with every entry clipped to the bounds."""
        return np.clip(rows, self.low, self.high)

    def widths(self, point: np.ndarray) -> np.ndarray:
        """Return the largest ``|x - point|`` in each entry, for x within the bounds, shape (d,)."""
        return np.maximum(self.high - point, point - self.low)

    def reach(self, point: np.ndarray, scale: np.ndarray) -> float:
        """Return the largest norm of ``(x - point) / scale`` for samples x within the bounds."""
        return float(np.linalg.norm(self.widths(point) / scale))


@dataclass(frozen=True)
class Ball:
    """A bound on the norm of every sample.

    Attributes
    ----------
    radius : float
        Largest norm of a sample.
    d : int
        Number of features.
    """

    radius: float
    d: int

    @property
    def middle(self) -> np.ndarray:
        """The origin, which is the centre of the ball, shape (d,)."""
        return np.zeros(self.d)

    @property
    def sum_of_fractions(self) -> float:
        """Bound on the norm of ``((x - point) / widths(point))**2`` for samples x in the ball."""
        return 1.0

    def clip(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows; a row whose norm exceeds the radius is scaled down to norm `radius`."""
        return clip_rows(rows, self.radius)

    def widths(self, point: np.ndarray) -> np.ndarray:
        """Return the largest ``‖x - point‖`` for x in the ball, once per entry, shape (d,)."""
        return np.full(self.d, self.radius + float(np.linalg.norm(point)))

    def reach(self, point: np.ndarray, scale: np.ndarray) -> float:
        """Return an upper bound on the norm of ``(x - point) / scale`` for x in the ball."""
        return float((self.radius + np.linalg.norm(point)) / scale.min())


def bounds_of(given: Any, features: Features) -> Box | Ball:
    """Check the bounds that a user gives for the samples, and return a `Box` or a `Ball`.

    Parameters
    ----------
    given : (low, high) or float
        A single number is the largest norm of a sample. A pair consists of two numbers, two vectors
        with one value per feature, or two mappings from feature names to values.
    features : Features
        Number and names of the clients' features; named bounds are matched to these names.

    Raises
    ------
    InputError
        If bounds are missing, invalid, or do not fit the features.
    """
    if given is None or isinstance(given, str | bytes | bytearray):
        raise InputError(
            f"a private fit needs public bounds of the data, got {given!r}; bounds computed from "
            "the data would reveal the data's range", advice=FORMS,
        )  # fmt: skip
    if isinstance(given, Sequence):
        ends = [per_feature(end, f"bounds[{i}]", features) for i, end in enumerate(given)]
    else:
        found = per_feature(given, "bounds", features, axis=1)
        if not found.ndim:
            require_valid(POSITIVE, bounds=np.asarray(given).item())  # no boolean
            return Ball(float(found), features.width)
        ends = list(found.T)
    d = features.width
    if len(ends) != 2 or any(end.shape not in ((), (d,)) for end in ends):
        sizes = " and ".join(str(end.shape) for end in ends)
        raise InputError(
            f"bounds have the shapes {sizes}, but there are {counted(d, 'feature')}", advice=FORMS
        )
    low, high = (np.broadcast_to(end, (d,)) for end in ends)
    if not (np.isfinite([low, high]).all() and (low <= high).all() and (low < high).any()):
        says = "bounds must be finite, with low ≤ high in every feature and low < high in one"
        raise InputError(says, advice=FORMS)
    return Box(low, high)
