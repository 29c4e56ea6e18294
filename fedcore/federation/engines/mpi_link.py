"""Send bytes between the ranks of an MPI program; no other module imports mpi4py.

A rank that waits for a message tests now and then whether the message has come, and sleeps between
the tests. Blocking calls of MPI would keep a core busy that another rank may need.
"""

from __future__ import annotations

import os
import struct
import sys
import time
from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any, NoReturn

from fedcore.errors import InputError
from fedcore.words import visible

# Environment variables by which a launcher tells a program its rank and the number of ranks.
RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK")
SIZE_VARIABLES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
SPIN_SECONDS, LONGEST_SLEEP = 5e-5, 1e-3  # seconds of waiting before the first sleep; longest sleep
# Seconds for mpiexec to read a rank's last output before Abort ends all ranks.
FORWARDING_SECONDS = 0.5


def started_as() -> int:
    """Return the rank that an MPI launcher has given to this process, or 0 without a launcher."""
    return next((int(rank) for name in RANK_VARIABLES if (rank := os.getenv(name))), 0)


def connect() -> Link:
    """Connect this process to the other ranks of the program.

    Raises
    ------
    InputError
        If mpi4py or MPI is missing, or if mpi4py uses another MPI than the launcher.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # the second without an MPI to load
        raise InputError(
            f"the engine mpi needs mpi4py and an MPI library ({error}): pip install mpi4py mpich, "
            "or make env EXTRAS=mpi in fedcore's checkout"
        ) from error
    started = max((int(os.getenv(name) or 1) for name in SIZE_VARIABLES), default=1)
    if started > 1 and MPI.COMM_WORLD.Get_size() == 1:
        raise InputError(
            f"{started} processes were started, but each sees only itself: the launcher belongs to "
            f"another MPI than mpi4py ({MPI.Get_library_version().split(chr(10))[0].strip()}); "
            f"use the launcher in {os.path.dirname(sys.executable)}"
        )
    return Link(MPI)


class Link:
    """Connection by which one rank sends and receives bytes.

    Parameters
    ----------
    mpi : module
        ``mpi4py.MPI``.

    Attributes
    ----------
    rank, size : int
        Number of this rank, and number of all ranks.
    sent : int
        Number of bytes that this rank has sent, by broadcast, by gather or to a single rank.
    """

    def __init__(self, mpi: Any) -> None:
        self._mpi, self._world = mpi, mpi.COMM_WORLD
        self.rank, self.size = self._world.Get_rank(), self._world.Get_size()
        self.sent = 0

    def broadcast(self, data: bytes = b"", root: int = 0) -> bytes:
        """Send the bytes of the rank `root` to all ranks, and return them."""
        if self.size == 1:
            return data
        self.sent += len(data)
        size = bytearray(struct.pack("<Q", len(data)))
        self._broadcast(size, root)
        (length,) = struct.unpack("<Q", size)
        whole = bytearray(data.ljust(length, b"\0"))
        self._broadcast(whole, root)
        return bytes(whole)

    def gather(self, data: bytes) -> list[bytes]:
        """Send the bytes of every rank to all ranks, and return them in the order of the ranks."""
        self.sent += len(data)
        sizes = bytearray(8 * self.size)
        self._wait(self._world.Iallgather(struct.pack("<Q", len(data)), sizes))
        counts = struct.unpack(f"<{self.size}Q", sizes)
        starts = [0, *accumulate(counts)]
        every, kind = bytearray(starts[-1]), self._mpi.BYTE
        self._wait(self._world.Iallgatherv([data, kind], [every, counts, starts[:-1], kind]))
        return [bytes(every[start:stop]) for start, stop in pairwise(starts)]

    def send(self, to: int, data: bytes) -> None:
        """Send bytes to one rank, and wait until MPI has accepted the bytes."""
        self.sent += len(data)
        self._wait(self._world.Isend([data, self._mpi.BYTE], dest=to))

    def receive(self, source: int) -> bytes:
        """Wait for bytes from the rank `source`, and return them."""
        _patiently(lambda: self._world.Iprobe(source=source))
        status = self._mpi.Status()
        self._world.Probe(source=source, status=status)
        data = bytearray(status.Get_count(self._mpi.BYTE))
        self._wait(self._world.Irecv([data, self._mpi.BYTE], source=source))
        return bytes(data)

    def abort(self, sentence: str) -> NoReturn:
        """Print an error message, and end all ranks at once."""
        print(f"Error: {visible(sentence)}", file=sys.__stderr__, flush=True)
        time.sleep(FORWARDING_SECONDS)
        self._world.Abort(1)
        raise SystemExit(1)

    def _broadcast(self, data: bytearray, root: int) -> None:
        self._wait(self._world.Ibcast([data, self._mpi.BYTE], root=root))

    def _wait(self, request: Any) -> None:
        _patiently(request.Test)


def _patiently(done: Callable[[], bool]) -> None:
    """Wait until ``done()`` is true, with sleeps that grow with the time waited so far."""
    began = time.monotonic()
    while not done():
        waited = time.monotonic() - began
        if waited > SPIN_SECONDS:
            time.sleep(min(waited / 8, LONGEST_SLEEP))
