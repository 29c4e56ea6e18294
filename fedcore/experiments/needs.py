"""What a job asks of a cluster: memory and minutes by its last run, a GPU, and a shared job or not.

A cell that takes seconds is not worth a job of its own: a queue needs longer to start it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

# MB beside the job: on a cluster Snakemake takes 200, and so does the process of which jobs fork.
BESIDE = 500
MARGIN = 1.25  # of memory, over what was measured
STEP = 50  # MB, to which requests are rounded up
SHORT = 60.0  # seconds; what takes longer gets a job of its own
SLOWER = 4  # times that a node may be slower than what was measured

Last = tuple[float, float] | None  # seconds and MB of an earlier run, see `expectation.measured`


def memory(
    last: Last, declared: int, *, attempt: int = 1, remote: bool = False, failed: bool = False
) -> int:
    """Return the MB to ask for.

    Parameters
    ----------
    last : (float, float) or None
        Seconds and MB of an earlier run of the job; MB of 0 were not measured.
    declared : int
        MB where nothing was measured.
    attempt : int, default=1
        Number of the attempt; with ``--retries 1`` the second asks for twice as much.
    remote : bool, default=False
        Whether the job runs on a cluster, where Snakemake runs in it.
    failed : bool, default=False
        Whether it did not end well the last time: then it asks for no less than is declared.
    """
    used = math.ceil(MARGIN * last[1] / STEP) * STEP if last and last[1] else declared
    used = max(used, declared) if failed else used
    return attempt * used + (BESIDE if remote else 0)


def minutes(last: Last, otherwise: int, *, attempt: int = 1) -> int:
    """Return the minutes to ask for: of the last run with a margin, or else `otherwise`."""
    return attempt * (math.ceil(2 + SLOWER * last[0] / 60) if last else otherwise)


def accelerators(packages: Iterable[str], environment: Mapping[str, str]) -> int:
    """Return how many GPUs a cell asks for, by what its task imports: 1 for networks on a GPU.

    `fedcore.deep.device` says what FEDCORE_DEVICE may be.
    """
    device = environment.get("FEDCORE_DEVICE") or "cpu"
    return int("torch" in packages and device.partition(":")[0] not in ("cpu", "together"))


def is_short(last: Last, *, quick: bool) -> bool:
    """Return whether a cell takes seconds; of the unknown, those of the quick run do."""
    return last[0] <= SHORT if last else quick


def ended_badly(log: Path, benchmark: Path) -> bool:
    """Return whether a job began and did not end well: its benchmark is missing or older."""
    try:
        began = log.stat().st_mtime
    except OSError:
        return False
    try:
        return benchmark.stat().st_mtime < began
    except OSError:
        return True
