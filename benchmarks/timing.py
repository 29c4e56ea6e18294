"""CPU time of a call."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median
from typing import Any


def seconds(call: Callable[[], Any], repeats: int = 5) -> float:
    """Median CPU seconds of a call, after one that is not counted."""
    times = []
    for _ in range(repeats + 1):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return median(times[1:])
