"""What a job's log says when the job is ended: by a signal, by Ctrl-C, or by the code that it runs.

An ordinary error is not among these; `fedcore.experiments.job.logged` says it. Of SIGKILL no
process can say anything.
"""

from __future__ import annotations

import contextlib
import faulthandler
import signal
import threading
import traceback
from collections.abc import Iterator
from types import FrameType
from typing import IO

# Sent to end a process, which by default ends without a word; here the block is left by an
# exception, so that temporary files are removed, too.
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU, signal.SIGUSR1, signal.SIGUSR2)


@contextlib.contextmanager
def last_words(log: IO[str]) -> Iterator[None]:
    """Write into `log` what ends the block, be it a signal or `sys.exit`, and where.

    Parameters
    ----------
    log : file
        Open for writing as long as the block runs, with a file descriptor.

    Raises
    ------
    KeyboardInterrupt
        Also for the signals of `ENDING`; the message is the name of the signal.
    """
    with contextlib.ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                stack.callback(signal.signal, number, signal.signal(number, _end))
        # Of a crash in compiled code the log gets the name and where Python was.
        if not faulthandler.is_enabled():
            faulthandler.enable(log)
            stack.callback(faulthandler.disable)
        try:
            yield
        except Exception:
            raise
        except BaseException as error:
            traceback.print_exc(file=log)
            what = " ".join(f"{type(error).__name__} {error}".split())
            print(f"Error: the job was ended before it was done, by {what}", file=log)
            raise


def _end(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)
