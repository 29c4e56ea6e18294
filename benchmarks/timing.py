"""CPU and wall time of calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any, NamedTuple


def seconds(call: Callable[[], Any], repeats: int = 5, clock: str = "cpu") -> float:
    """Median CPU seconds of a call, or ``wall`` ones, after one that is not counted."""
    return median(getattr(interleaved({"call": call}, repeats)["call"], clock))


class Times(NamedTuple):
    """Seconds of every repeat of a call.

    Attributes
    ----------
    cpu, wall : list of float
    """

    cpu: list[float]
    wall: list[float]

    def over(self, other: Times, clock: str = "cpu") -> float:
        """Median of the ratios to `other` in the same turn, which a load of the machine shares."""
        pairs = zip(getattr(self, clock), getattr(other, clock), strict=True)
        return median(mine / theirs for mine, theirs in pairs)


def interleaved(calls: Mapping[str, Callable[[], Any]], repeats: int = 5) -> dict[str, Times]:
    """Times of calls that take turns, after a turn that is not counted."""
    found = {name: Times([], []) for name in calls}
    for turn in range(repeats + 1):
        for name, call in calls.items():
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
            if turn:
                found[name].cpu.append(cpu)
                found[name].wall.append(wall)
    return found
