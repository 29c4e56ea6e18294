"""What the scripts of the workflow share: their log, and errors of one sentence."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from fedcore.errors import FedcoreError


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
        With status 1, after the message of a `FedcoreError` has gone to the log and the terminal.
    """
    terminal = sys.stderr
    with open(path, "w", buffering=1, encoding="utf-8") as log, contextlib.redirect_stderr(log):
        try:
            yield
        except FedcoreError as error:
            for stream in (log, terminal):
                print(f"Error: {error}", file=stream)
            raise SystemExit(1) from None
