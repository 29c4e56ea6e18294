"""Measure how fast this machine is."""

from __future__ import annotations

import math
import time

import numpy as np
import threadpoolctl


def probe_speed() -> float:
    """Return the CPU seconds of a fixed computation, for comparing the speed of machines.

    The computation uses one BLAS thread, as the workflow's jobs do.
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
