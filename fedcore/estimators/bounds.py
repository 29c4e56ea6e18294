"""Public bounds of samples, to which clients clip them in a private fit.

A sample is clipped by itself, so that neighbouring data stay neighbours. Everything else follows
from the bounds and from released values alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcore.errors import InputError
from fedcore.privacy.bounded_rows import clip_rows
from fedcore.validation import as_floats, require_positive


@dataclass(frozen=True)
class Box:
    """Bounds of every entry.

    Attributes
    ----------
    low, high : ndarray of shape (d,)
    """

    low: np.ndarray
    high: np.ndarray

    @property
    def middle(self) -> np.ndarray:
        """Point with the shortest reach, shape (d,)."""
        return (self.low + self.high) / 2

    @property
    def sum_of_fractions(self) -> float:
        """Largest norm of the vector ``((x - point) / widths)²`` of a sample."""
        return float(np.sqrt(len(self.low)))

    def clip(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows within the bounds."""
        return np.clip(rows, self.low, self.high)

    def widths(self, point: np.ndarray) -> np.ndarray:
        """Largest distance of every entry from that of `point`, shape (d,)."""
        return np.maximum(self.high - point, point - self.low)

    def reach(self, point: np.ndarray, scale: np.ndarray) -> float:
        """Largest norm of ``(x - point) / scale``."""
        return float(np.linalg.norm(self.widths(point) / scale))


@dataclass(frozen=True)
class Ball:
    """A bound of the norm of every sample.

    Attributes
    ----------
    radius : float
    d : int
    """

    radius: float
    d: int

    @property
    def middle(self) -> np.ndarray:
        """The origin, shape (d,)."""
        return np.zeros(self.d)

    @property
    def sum_of_fractions(self) -> float:
        """Largest norm of the vector ``((x - point) / widths)²`` of a sample."""
        return 1.0

    def clip(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows, longer ones shortened."""
        return clip_rows(rows, self.radius)

    def widths(self, point: np.ndarray) -> np.ndarray:
        """Largest distance of every entry from that of `point`, shape (d,)."""
        return np.full(self.d, self.radius + float(np.linalg.norm(point)))

    def reach(self, point: np.ndarray, scale: np.ndarray) -> float:
        """Largest norm of ``(x - point) / scale``."""
        return float((self.radius + np.linalg.norm(point)) / scale.min())


def bounds_of(given: Any, d: int) -> Box | Ball:
    """Return the bounds that a user gives for samples of d features.

    Parameters
    ----------
    given : (low, high) or float
        Numbers, or arrays of shape (d,); or the largest norm of a sample.
    d : int

    Raises
    ------
    InputError
    """
    if given is None:
        raise InputError(
            "a private fit needs public bounds of the data, bounds=(low, high), or the largest "
            "norm of a sample, bounds=norm: bounds taken from the data would reveal them"
        )
    pair = isinstance(given, tuple | list) or (isinstance(given, np.ndarray) and given.ndim)
    if not pair:
        require_positive(bounds=given)
        return Ball(float(given), d)
    if len(given) != 2:
        raise InputError("bounds must be a number, or a pair (low, high) of numbers or arrays")
    ends = [as_floats(end, f"bounds[{i}]") for i, end in enumerate(given)]
    for i, end in enumerate(ends):
        if end.shape not in ((), (d,)):
            raise InputError(f"bounds[{i}] has shape {end.shape}: give a number or {d} of them")
    low, high = (np.broadcast_to(end, (d,)) for end in ends)
    if not (np.isfinite(low).all() and np.isfinite(high).all() and (low <= high).all()):
        raise InputError("bounds must be finite, and low at most high in every feature")
    if not (low < high).any():
        raise InputError("bounds leave no room: low is high in every feature")
    return Box(low, high)
