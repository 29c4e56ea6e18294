"""What one rounding of the start does to a run, measured by a twin of the run.

A method that amplifies rounding ends elsewhere on another CPU, with another number of threads, or
with other runs beside it, and its count of rounds then says as much about the machine as about the
method. So a cell with ``twin: rounding`` runs every repeat a second time. Only the start differs:
each of its entries is the next floating-point number above or below. Data, draws after it, limits
and stopping rules are the same.

Any algorithm has a twin whose `start` is given or drawn by the server; which one it is that
amplifies is measured, not declared.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.errors import ConfigError
from fedcore.federation.federation import Federation
from fedcore.linalg import orth, sin_theta

KINDS = ("none", "rounding")
DISTANCE = "twin_distance"
COLUMN = (
    "sine of an angle",
    "the largest principal angle to the subspace of the same run from a start changed by one "
    "rounding in every entry; NaN once either has ended",
)


def nudge(matrix: np.ndarray) -> np.ndarray:
    """Return `matrix` with each entry moved to the next number up or down, by a fixed pattern."""
    matrix = np.asarray(matrix)
    signs = np.random.default_rng(0).choice([-np.inf, np.inf], matrix.shape)
    return np.nextafter(matrix, signs.astype(matrix.dtype))


class Nudged(np.random.Generator):
    """The stream of `rng`, with arrays of real numbers changed by one rounding.

    Attributes
    ----------
    arrays : int
        How many of them have been drawn.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng.bit_generator)
        self.arrays = 0

    def _changed(self, draw: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        drawn = draw(self, *args, **kwargs)
        if not isinstance(drawn, np.ndarray):
            return drawn
        self.arrays += 1
        return nudge(drawn)

    random = partialmethod(_changed, np.random.Generator.random)
    uniform = partialmethod(_changed, np.random.Generator.uniform)
    normal = partialmethod(_changed, np.random.Generator.normal)
    standard_normal = partialmethod(_changed, np.random.Generator.standard_normal)


@dataclass
class Pair:
    """A run and its twin, and how far apart their subspaces are at each record.

    The two may run one after the other or side by side; an iterate is kept only until the other
    run has come as far.
    """

    distances: dict[int, float] = field(default_factory=dict)
    _waiting: dict[tuple[bool, int], np.ndarray] = field(default_factory=dict)

    def see(self, of_twin: bool, record: int, shared: np.ndarray) -> None:
        """Take note of the shared matrix at a record of the run or `of_twin`."""
        basis = orth(shared) if np.isfinite(shared).all() else np.full_like(shared, np.nan)
        other = self._waiting.pop((not of_twin, record), None)
        if other is None:
            self._waiting[of_twin, record] = basis
        else:
            same = basis.shape == other.shape and np.isfinite([basis, other]).all()
            self.distances[record] = sin_theta(basis, other) if same else np.nan

    def column(self, records: int) -> list[float]:
        """Return the distance at each of so many records."""
        return [self.distances.get(record, np.nan) for record in range(records)]


@dataclass(frozen=True)
class Perturbed(Algorithm):
    """An algorithm from a start that is changed by one rounding."""

    @property
    def run(self) -> Callable[..., dict[str, Any]]:
        """The algorithm; a `ConfigError` when no start was given and the server drew none."""

        def run(federation: Federation, params: Any, rng: Any, record: Any) -> dict[str, Any]:
            if params.start is not None:
                params = dataclasses.replace(params, start=nudge(params.start))
                return self.module.run(federation, params, rng, record)
            federation.rng = nudged = Nudged(rng)
            output = self.module.run(federation, params, nudged, record)
            if not nudged.arrays:
                raise ConfigError(
                    f"twin: rounding changes the start, and {self.name} has none that the server "
                    "draws: give it a 'start' or leave the twin out"
                )
            return output

        return run
