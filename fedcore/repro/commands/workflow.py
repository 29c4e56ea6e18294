"""Start Snakemake from a fedcore command, and end Snakemake when the command ends."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType
from typing import TextIO

from fedcore.errors import DataError

PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run(words: Sequence[str], stdout: TextIO | None = None) -> int:
    """Run Snakemake with the arguments `words`, and return its exit status.

    The function passes SIGINT, SIGTERM and SIGHUP on to Snakemake and its jobs, so that neither
    Snakemake nor a job outlives this process.

    Raises
    ------
    DataError
        If SIGINT, SIGTERM or SIGHUP came before Snakemake ended.
    """
    came: list[signal.Signals] = []
    command = [sys.executable, "-m", "snakemake", "--logger", "rich", *words]
    with subprocess.Popen(
        command, process_group=0, stdin=subprocess.DEVNULL, stdout=stdout
    ) as child:

        def pass_on(number: int, frame: FrameType | None) -> None:
            came.append(signal.Signals(number))
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, number)

        before = {number: signal.getsignal(number) for number in PASSED_ON}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:  # as `nohup` ignores SIGHUP
                signal.signal(number, pass_on)
        try:
            status = child.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    if came:
        raise DataError(f"{came[0].name} ended the command too early: run it again to continue")
    return status
