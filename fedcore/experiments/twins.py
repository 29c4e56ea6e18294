"""Twins, which are second runs from a changed starting matrix, to show how rounding is amplified.

If a method amplifies rounding, its result and its number of rounds may depend on the CPU, the
number of threads and concurrent runs. With the setting ``twin: rounding``, every run of an
experiment is therefore made a second time, from a changed starting matrix. If the parameter `start`
is given, the second run changes the `start`. Without a `start`, the second run changes every real
array that the server draws. Each entry of a changed array is the next floating-point number above
or below the original entry. If the server broadcasts a real array before drawing one, the broadcast
array is a computed start. The second run then changes the broadcast array and all arrays that the
server draws later. Data, all other parameters and stopping rules of the two runs are the same.

By chance, a twin may end exactly as its run does. With ``twin: ten_roundings``, a run therefore
gets nine more twins if its subspace and the first twin's ever differ by more than
`TEARING_DISTANCE`. The history (record of the runs) keeps the twin that differs most from the run
in the number of recorded iterates.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partialmethod
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.errors import ConfigError
from fedcore.federation.federation import Federation
from fedcore.iterates import Iterate
from fedcore.linalg import orth, sin_theta

KINDS = {"none": 0, "rounding": 1, "ten_roundings": 10}  # and the number of roundings tried
TEARING_DISTANCE = 1e-8  # distance from which on another rounding may end elsewhere
DISTANCE = "twin_distance"
COLUMN = (
    "sine of an angle",
    "the largest principal angle to the subspace of the same run from a start changed by one "
    "rounding in every entry, the first that was tried; NaN once either has ended",
)


def nudge(matrix: np.ndarray, pattern: int = 0) -> np.ndarray:
    """Move each entry of `matrix` to the next float above or below; the seed `pattern` decides."""
    matrix = np.asarray(matrix)
    signs = np.random.default_rng(pattern).choice([-np.inf, np.inf], matrix.shape)
    return np.nextafter(matrix, signs.astype(matrix.dtype))


class Nudged(np.random.Generator):
    """A generator with the stream of `rng`; each array of real numbers is changed by `nudge`.

    Attributes
    ----------
    arrays : int
        Number of arrays that have been changed.
    """

    def __init__(self, rng: np.random.Generator, pattern: int = 0) -> None:
        super().__init__(rng.bit_generator)
        self.arrays, self._pattern = 0, pattern

    def _changed(self, draw: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        drawn = draw(self, *args, **kwargs)
        if not isinstance(drawn, np.ndarray):
            return drawn
        self.arrays += 1
        return nudge(drawn, self._pattern)

    random = partialmethod(_changed, np.random.Generator.random)
    uniform = partialmethod(_changed, np.random.Generator.uniform)
    normal = partialmethod(_changed, np.random.Generator.normal)
    standard_normal = partialmethod(_changed, np.random.Generator.standard_normal)


@dataclass
class TwinDistance:
    """Distance between the subspaces of a run and its twin (second run) at each iterate.

    Run and twin may run one after the other or side by side. Each iterate's subspace is kept until
    the other run has recorded the same iterate.
    """

    distances: dict[int, float] = field(default_factory=dict)
    _waiting: dict[tuple[bool, int], np.ndarray] = field(default_factory=dict)

    def see(self, of_twin: bool, record: int, iterate: Iterate) -> None:
        """Compare an iterate with the other run's, or store it until the other run gets there."""
        shared = np.asarray(iterate.held)
        basis = orth(shared) if np.isfinite(shared).all() else np.full_like(shared, np.nan)
        other = self._waiting.pop((not of_twin, record), None)
        if other is None:
            self._waiting[of_twin, record] = basis
        else:
            same = basis.shape == other.shape and np.isfinite([basis, other]).all()
            self.distances[record] = sin_theta(basis, other) if same else np.nan

    @property
    def torn(self) -> bool:
        """Whether the distance between run and twin ever exceeded `TEARING_DISTANCE`."""
        return any(distance > TEARING_DISTANCE for distance in self.distances.values())

    def column(self, records: int) -> list[float]:
        """Return the distances at the first `records` iterates; NaN after one run has ended."""
        return [self.distances.get(record, np.nan) for record in range(records)]


def perturbed(algorithm: Algorithm, pattern: int = 0) -> Algorithm:
    """Return `algorithm` with a starting matrix that is changed by one rounding; see `nudge`.

    The function ``run`` of the returned algorithm raises ConfigError if no starting matrix was
    given, drawn or broadcast.
    """

    def run(federation: Federation, params: Any, rng: Any, record: Any) -> dict[str, Any]:
        if params.start is not None:
            params = dataclasses.replace(params, start=nudge(params.start, pattern))
            return algorithm.run(federation, params, rng, record)
        federation.rng = nudged = Nudged(rng, pattern)
        send = federation.broadcast

        def broadcast(message: Any, *, to: Sequence[int] | None = None) -> None:
            floats = isinstance(message, np.ndarray) and message.dtype.kind == "f"
            if floats and not nudged.arrays:
                nudged.arrays, message = 1, nudge(message, pattern)
            send(message, to=to)

        federation.broadcast = broadcast  # type: ignore[method-assign]
        output = algorithm.run(federation, params, nudged, record)
        if not nudged.arrays:
            raise ConfigError(
                f"a twin changes the start, and the server of {algorithm.name} neither draws nor "
                "broadcasts a start: give the parameter 'start', or leave out 'twin'"
            )
        return output

    return dataclasses.replace(algorithm, run=run)
