"""Bytes between the ranks of an MPI program; the only module that imports mpi4py.

Rank 0 tells all others, and each answers it. Who waits tests now and then and sleeps in between:
MPI's own waiting would take a whole core, also from a rank that has work to do.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from fedcore.errors import InputError
from fedcore.words import visible

if TYPE_CHECKING:  # the command line asks for the rank before it sets BLAS' threads
    import numpy as np

# By these variables a program knows before MPI is there what its launcher has started.
RANKS = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
SPIN, LONGEST = 5e-5, 1e-3  # seconds: without sleep at first; the longest sleep
FIRST = 1 << 13  # bytes that all are told at once, before they know whether there are more
ANSWER, CHAIN, DATA = 1, 2, 3  # what a message from one rank to another is


def started_as() -> int:
    """Return the rank that a launcher has given to this process; 0 without a launcher."""
    return next((int(rank) for name in RANKS if (rank := os.getenv(name))), 0)


def connect() -> Link:
    """Join the ranks of this program.

    Raises
    ------
    InputError
        Without mpi4py, or when it belongs to another MPI than the launcher.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # the second without an MPI to load
        raise InputError(
            f"the engine mpi needs mpi4py and an MPI ({error}): pip install mpi4py mpich, or "
            "make env EXTRAS=mpi in fedcore's checkout"
        ) from error
    started = max((int(os.getenv(name) or 1) for name in SIZES), default=1)
    if started > 1 and MPI.COMM_WORLD.Get_size() == 1:
        raise InputError(
            f"{started} processes were started and each sees itself alone: the launcher is of "
            f"another MPI than mpi4py ({MPI.Get_library_version().split(chr(10))[0].strip()}); "
            f"take the one in {os.path.dirname(sys.executable)}"
        )
    return Link(MPI)


class Link:
    """What one rank says and hears.

    Parameters
    ----------
    mpi : module
        ``mpi4py.MPI``.

    Attributes
    ----------
    rank, size : int
    busy : bool
        Whether an exchange has begun and not ended; then nothing orderly can be said any more.
    sent : int
        Bytes that this rank has told all others or sent to one.
    """

    def __init__(self, mpi: Any) -> None:
        self._mpi, self._world = mpi, mpi.COMM_WORLD
        self.rank, self.size = self._world.Get_rank(), self._world.Get_size()
        self.busy, self.sent = False, 0

    def tell(self, data: bytes) -> None:
        """Tell all other ranks, which `hear`."""
        self.sent += len(data) * (self.size > 1)
        whole = struct.pack("<Q", len(data)) + data
        self._broadcast(bytearray(whole[:FIRST].ljust(FIRST, b"\0")))
        if len(whole) > FIRST:
            self._broadcast(bytearray(whole[FIRST:]))

    def hear(self) -> bytes:
        """Return what rank 0 tells."""
        first = bytearray(FIRST)
        self._broadcast(first)
        stop = 8 + struct.unpack_from("<Q", first)[0]
        rest = bytearray(max(stop - FIRST, 0))
        if rest:
            self._broadcast(rest)
        return bytes(first[8:stop] + rest)

    def send(self, to: int, data: bytes, kind: int = ANSWER) -> None:
        """Send bytes to one rank, and wait until they are on their way."""
        self.sent += len(data)
        self._wait(self._world.Isend([data, self._mpi.BYTE], dest=to, tag=kind))

    def receive(self, source: int, kind: int = ANSWER) -> bytes:
        """Return bytes from one rank."""
        found: list[Any] = []

        def there() -> bool:
            message = self._world.Improbe(source=source, tag=kind, status=status)
            if message is not None:
                found.append(message)
            return message is not None

        status = self._mpi.Status()
        _patiently(there)
        data = bytearray(status.Get_count(self._mpi.BYTE))
        found[0].Recv([data, self._mpi.BYTE])
        return bytes(data)

    def reduced(self, part: np.ndarray) -> np.ndarray:
        """Return on rank 0 the sum of all ranks' arrays, in an order that MPI chooses."""
        total = part.copy()
        self._wait(self._world.Ireduce(part, total, op=self._mpi.SUM, root=0))
        return total

    def abort(self, sentence: str) -> NoReturn:
        """Say why, and end all ranks at once."""
        print(f"Error: {visible(sentence)}", file=sys.__stderr__, flush=True)
        self._world.Abort(1)
        raise SystemExit(1)

    def _broadcast(self, data: bytearray) -> None:
        self._wait(self._world.Ibcast([data, self._mpi.BYTE], root=0))

    def _wait(self, request: Any) -> None:
        _patiently(request.Test)


def _patiently(done: Callable[[], bool]) -> None:
    """Return when `done` says so; the longer it takes, the longer are the sleeps."""
    began = time.monotonic()
    while not done():
        waited = time.monotonic() - began
        if waited > SPIN:
            time.sleep(min(waited / 8, LONGEST))
