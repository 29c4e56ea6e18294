"""The run that a job belongs to: a job of a run that was killed must not touch a later one's files.

A run has a name. While it lives it holds a lock on ``.snakemake/runs/<name>``, and its jobs have
the path of this file in their environment, also in a cluster's queue. The next run finds the file
without a lock, and puts a second one beside it, ``<name>.over``: a job that sees it does nothing.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

from fedcore import datasets
from fedcore.errors import SupersededError

RUN = "FEDCORE_RUN"  # environment variable: absolute path of the run's file
ANSWERS = "FEDCORE_ANSWERS"  # environment variable: which servers answer, as JSON
OVER = ".over"
DAYS = 30.0  # for which a job may wait in a queue

_HELD: list[IO[bytes]] = []  # open, as the lock ends with the file


@cache
def name() -> str:
    """Return the name of this process's run; the jobs of a cluster's queue begin with it."""
    return f"fedcore-{secrets.token_hex(6)}"


def begin(folder: Path) -> list[str]:
    """Begin a run; return the names of those that were killed, whose jobs may still be queued.

    Parameters
    ----------
    folder : path
        Folder of the runs' files. Where the file system has no locks nobody can know which runs
        are alive, and none is returned.
    """
    folder.mkdir(parents=True, exist_ok=True)
    own = (folder / name()).absolute()
    with _alone(folder):  # a run that has not locked its file yet would be taken for a killed one
        killed = [path.name for path in sorted(folder.iterdir()) if path != own and _is_dead(path)]
        for dead in killed:
            (folder / f"{dead}{OVER}").touch()
            (folder / dead).unlink(missing_ok=True)
        for old in folder.glob(f"*{OVER}"):
            if old.stat().st_mtime < time.time() - DAYS * 86400:
                old.unlink(missing_ok=True)
        _HELD.append(open(own, "ab"))
        with contextlib.suppress(OSError):
            fcntl.flock(_HELD[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.environ[RUN] = str(own)
    return killed


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keep other runs from beginning until the block ends, if the file system has locks."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def end() -> None:
    """End the run: no job of it is left."""
    while _HELD:
        file = _HELD.pop()
        Path(file.name).unlink(missing_ok=True)
        file.close()


def answers(url: str) -> bool:
    """Whether the server of an address answers; see `fedcore.datasets.answers`.

    Each server is asked once. Jobs inherit the answers, and so plan the same work.
    """
    server = urlsplit(url).netloc
    known: dict[str, bool] = json.loads(os.environ.get(ANSWERS, "{}"))
    if server not in known:
        known[server] = datasets.answers(url)
        os.environ[ANSWERS] = json.dumps(known)
    return known[server]


def require_current() -> None:
    """Refuse a job whose run was killed and followed by another one.

    Raises
    ------
    SupersededError
        In such a job.
    """
    run = os.environ.get(RUN)
    if run and Path(f"{run}{OVER}").exists():
        raise SupersededError(
            f"this job belongs to the run {Path(run).name}, which was killed, and a later run has "
            "begun: the job does nothing"
        )


def _is_dead(path: Path) -> bool:
    """Return whether nobody holds the lock of a run's file."""
    if path.suffix == OVER:
        return False
    try:
        with open(path, "ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # it is alive, or there are no locks here
        return False
    return True
