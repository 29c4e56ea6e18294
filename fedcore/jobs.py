"""What the scripts of the workflow share: their log, and errors of one sentence."""

from __future__ import annotations

import contextlib
import fcntl
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fedcore.errors import FedcoreError
from fedcore.last_words import last_words


@contextlib.contextmanager
def logged(path: str) -> Iterator[None]:
    """Send standard error to the job's log; turn a user's error into one sentence and status 1.

    Parameters
    ----------
    path : str
        Log file of the job.

    Raises
    ------
    SystemExit
        With status 1, after the message of a `FedcoreError` has gone to the log and the terminal;
        any other error passes, and its traceback stands in the log.
    """
    terminal = sys.stderr
    with open(path, "w", buffering=1, encoding="utf-8") as log, contextlib.redirect_stderr(log):
        try:
            with last_words(log):
                yield
        except Exception as error:
            sentence = _sentence(error)
            if sentence is None:
                traceback.print_exc(file=log)
                raise
            for stream in (log, terminal):
                print(f"Error: {sentence}", file=stream)
            raise SystemExit(1) from None


def _sentence(error: Exception) -> str | None:
    """Message of a user's error, be it raised here or in a notebook that was executed."""
    if isinstance(error, FedcoreError):
        return str(error)
    # papermill's error carries the name and the message of what the notebook raised.
    known = {kind.__name__ for kind in FedcoreError.__subclasses__()}
    return error.evalue if getattr(error, "ename", None) in known else None  # type: ignore[attr-defined]


def forget_killed_run(folder: Path) -> IO[bytes]:
    """Clear what a killed run of Snakemake left behind: its lock, and marks of incomplete outputs.

    An output of this workflow is whole or not there, so that neither has a meaning once the run is
    dead. Every run holds a shared lock of the operating system on ``<folder>/alive`` until its
    process ends, however it ends; whoever gets it exclusively knows that no other run is alive.

    Parameters
    ----------
    folder : path
        Snakemake's working folder, ``.snakemake``.

    Returns
    -------
    file
        Keep it open as long as the run lasts.
    """
    folder.mkdir(exist_ok=True)
    alive = open(folder / "alive", "ab")
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
        left = [*(folder / "locks").glob("*.lock"), *(folder / "incomplete").glob("*")]
        for path in left:
            path.unlink()
        if left:
            print("Going on where the last run was killed.", file=sys.stderr)
    fcntl.flock(alive, fcntl.LOCK_SH)
    return alive
