"""Logs and error messages of the workflow's scripts."""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import fcntl
import importlib
import os
import platform
import secrets
import signal
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType
from typing import IO, TextIO

from fedcore.errors import FedcoreError, SupersededError, too_large
from fedcore.files import atomic
from fedcore.words import counted, visible

DAY = 86400.0  # seconds
# Signals that by default end a process silently. Here they raise an exception, so that temporary
# files are removed.
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU, signal.SIGUSR1, signal.SIGUSR2)
# The disk is full, or what the user may have of it, or the file is as large as it may be.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def logged(path: str) -> Iterator[None]:
    """Send standard error to the job's log; turn a user's error into one sentence and status 1.

    The log's first line names the job's process. A job may outlive a killed run. When a later run
    starts the same job, the new job begins a new log, and `atomic.replace` lets only the process
    that the log names write the result.

    Parameters
    ----------
    path : str
        Log file of the job.

    Raises
    ------
    SystemExit
        With status 1 after a `FedcoreError`, whose message goes to the log and the terminal, and
        when the disk is full. With status 0 when a later run has started the job again, as
        Snakemake must not remove the newer result. Any other error passes, and its traceback goes
        to the log.
    """
    terminal = sys.stderr
    try:
        with _logged(path, terminal):
            yield
    except OSError as error:  # also of the log itself
        if error.errno not in FULL:
            raise
        print(f"Error: {_full(error)}", file=terminal)
        raise SystemExit(1) from None


def settle_device() -> None:
    """Settle PyTorch, in a process of fedcore's own, if the environment names an accelerator."""
    if os.environ.get("FEDCORE_DEVICE", "") in ("", "cpu", "together"):
        return
    with contextlib.suppress(ModuleNotFoundError):  # without PyTorch there are no networks
        importlib.import_module("fedcore.deep.device").settle()


@contextlib.contextmanager
def _logged(path: str, terminal: TextIO) -> Iterator[None]:
    """Do what `logged` does, but raise the error of a full disk."""
    Path(path).unlink(missing_ok=True)  # a job that has it open keeps writing to the old log
    first = f"job {secrets.token_hex(8)}, process {os.getpid()} on {platform.node()}"
    with (
        open(path, "w", buffering=1, encoding="utf-8") as log,
        contextlib.redirect_stderr(log),
        _alive(Path(".snakemake/jobs")),
    ):
        print(first, file=log)
        # In the environment, because a notebook runs in a child process.
        os.environ[atomic.JOB] = f"{first}\n{Path(path).absolute()}"
        try:
            with _last_words(log):
                yield
        except Exception as error:
            if isinstance(error, OSError) and error.errno in FULL:
                with contextlib.suppress(OSError):  # the log may be on that disk
                    print(f"Error: {_full(error)}", file=log)
                raise
            sentence = _sentence(error)
            if sentence is None:
                traceback.print_exc(file=log)
                raise
            for stream in (log, terminal):
                print(f"Error: {visible(sentence)}", file=stream)
            late = SupersededError.__name__ in (type(error).__name__, getattr(error, "ename", ""))
            raise SystemExit(0 if late else 1) from None
        finally:
            del os.environ[atomic.JOB]


def _full(error: OSError) -> str:
    words = os.strerror(error.errno or 0)
    name = error.filename2 or error.filename  # of a copy, what is written
    where = f", {name}" if name else ""
    if error.errno == errno.EFBIG:
        return f"a file may not become larger here ({words}{where}): raise `ulimit -f`, run again"
    return f"no space is left on the disk ({words}{where}): make room, and run again"


def _sentence(error: Exception) -> str | None:
    """Return the message of a user's error, raised here or in an executed notebook, else None."""
    if isinstance(error, FedcoreError):
        return str(error)
    if (words := too_large(error)) is not None:
        return f"the job is too large for this machine ({words}): make its problem smaller"
    # papermill's error carries the name and the message of the notebook's error.
    known = {kind.__name__ for kind in FedcoreError.__subclasses__()}
    return error.evalue if getattr(error, "ename", None) in known else None  # type: ignore[attr-defined]


@contextlib.contextmanager
def _last_words(log: IO[str]) -> Iterator[None]:
    """Write into `log` which signal or exit ends the block, and where.

    The signals of `ENDING` raise a `KeyboardInterrupt` with their name; SIGKILL cannot be caught.
    An ordinary error passes, as `logged` reports it.
    """
    with contextlib.ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            for number in ENDING:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` ignores SIGHUP
                    stack.callback(signal.signal, number, signal.signal(number, _end))
        # After a crash in compiled code the log has the signal's name and Python's traceback.
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


@contextlib.contextmanager
def _alive(path: Path) -> Iterator[None]:
    """Hold a shared lock on a file until the block ends, if the file system has locks."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):
            fcntl.flock(stack.enter_context(open(path, "ab")), fcntl.LOCK_SH)
        yield


def remove_left_overs(folder: Path, made: Iterable[Path], shared: Iterable[Path]) -> None:
    """Remove the temporary files that killed jobs have left, and say how many.

    Parameters
    ----------
    folder : path
        Snakemake's working folder, ``.snakemake``. Nothing is removed while one of its jobs runs:
        every job holds a lock on ``<folder>/jobs``.
    made : iterable of path
        Folders of results, which no other checkout writes.
    shared : iterable of path
        Folders of raw data, which other checkouts may write, too. Only files in their direct
        subfolders are removed, and only if they have not changed for a day.
    """
    before = time.time() - DAY
    try:
        with open(folder / "jobs", "ab") as jobs:
            fcntl.flock(jobs, fcntl.LOCK_EX | fcntl.LOCK_NB)
            hidden = [path for root in made for path in root.glob("**/.*")]
            old = [path for root in shared for path in root.glob("*/.*")]
            hidden += [path for path in old if path.stat().st_mtime <= before]
            found = [path for path in hidden if atomic.LEFT_OVER.fullmatch(path.name)]
            size = sum(path.stat().st_size for path in found)
            for path in found:
                path.unlink()
    except OSError:  # a job runs, or the folder cannot be locked or written
        return
    if found:
        files = f"{counted(len(found), 'temporary file')} ({size / 1e6:.1f} MB)"
        print(f"Removed {files} of killed runs.", file=sys.stderr)
