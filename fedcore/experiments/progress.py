"""A quiet run in a terminal: one bar with counts, time left and the cells that run."""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from fedcore.experiments import forking

LINES = 8  # of a failed job's log


class Bar(threading.Thread):
    """Shows how many jobs are left, until it is ended.

    Parameters
    ----------
    left : callable
        ``() -> int``, the number of jobs that are left.
    every : float
        Seconds between two looks; longer where standard error is no terminal.
    """

    def __init__(self, left: Callable[[], int], every: float = 0.5) -> None:
        super().__init__(daemon=True)
        self._left, self._total = left, left()
        self._every = every if sys.stderr.isatty() else 20 * every
        self._over = threading.Event()

    def run(self) -> None:
        """Draw the bar."""
        with tqdm(total=self._total, unit="job", dynamic_ncols=True, leave=True) as bar:
            while not self._over.wait(self._every):
                self._draw(bar)
            self._draw(bar)

    def end(self) -> None:
        """Draw the last state and stop."""
        self._over.set()
        self.join(timeout=5)

    def _draw(self, bar: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the scheduler changes its set meanwhile
            bar.n = self._total - self._left()
        bar.set_postfix_str(", ".join(sorted(forking.running())[:2]), refresh=False)
        bar.refresh()


def failures(logs: Iterable[str], since: float) -> str:
    """Return the last lines of the logs, of jobs that have not ended, written since a time."""
    told = []
    for log in map(Path, logs):
        if log.is_file() and log.stat().st_mtime >= since:
            lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-LINES:]
            told.append("\n".join([f"Not finished: {log} ends with", *(f"  {x}" for x in lines)]))
    return "\n".join(told)
