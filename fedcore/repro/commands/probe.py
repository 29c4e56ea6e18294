"""How fast this machine is."""

from __future__ import annotations

import math
import time

import numpy as np
import threadpoolctl


def probe_speed() -> float:
    """Return the CPU seconds of a fixed piece of work, which compares two machines.

    The work has one BLAS thread, as jobs have. With two threads, the time in which they wait for
    each other would count as work.
    """
    matrix = np.random.default_rng(0).standard_normal((400, 400))

    def once() -> float:
        began = time.process_time()
        for _ in range(5):
            np.linalg.qr(matrix @ matrix)
        sum(math.sqrt(i) for i in range(200_000))
        return time.process_time() - began

    with threadpoolctl.threadpool_limits(1):
        return min(once() for _ in range(5))
