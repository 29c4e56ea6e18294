"""Threads in the place of the ranks of MPI: what they say to each other goes through queues."""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from fedcore.federation.engines import ranks
from fedcore.federation.engines.mpi import Mpi
from fedcore.federation.engines.mpi_link import ANSWER, CHAIN, DATA
from fedcore.federation.engines.team import Team

TELL, SUM = -1, -2
PATIENCE = 60.0  # seconds


class ThreadsLink:
    """As `fedcore.federation.engines.mpi_link.Link`."""

    def __init__(self, rank: int, size: int, mail: Any) -> None:
        self.rank, self.size, self.busy, self.sent = rank, size, False, 0
        self._mail = mail

    def tell(self, data: bytes) -> None:
        for other in range(1, self.size):
            self.send(other, data, TELL)

    def hear(self) -> bytes:
        return self.receive(0, TELL)

    def send(self, to: int, data: Any, kind: int = ANSWER) -> None:
        self._mail[self.rank, to, kind].put(data)

    def receive(self, source: int, kind: int = ANSWER) -> Any:
        return self._mail[source, self.rank, kind].get(timeout=PATIENCE)

    def reduced(self, part: np.ndarray) -> np.ndarray:
        """Add from the last rank to the first."""
        if self.rank:
            self.send(0, part, SUM)
            return part
        others = [self.receive(rank, SUM) for rank in reversed(range(1, self.size))]
        return sum([*others[1:], part], others[0]) if others else part


@contextmanager
def team_of(size: int, order: str = "chain", *, idle: bool = False) -> Iterator[Team]:
    """A team whose other ranks are threads."""
    kinds = (TELL, SUM, ANSWER, CHAIN, DATA)
    # Made before the threads begin: two that make the same queue at once would lose a message.
    pairs = itertools.product(range(size), range(size), kinds)
    mail: Any = {key: queue.Queue() for key in pairs}
    links = [ThreadsLink(rank, size, mail) for rank in range(size)]
    others = [threading.Thread(target=ranks.serve, args=(link,)) for link in links[1:]]
    for thread in others:
        thread.start()
    team = Team(links[0], order, idle=idle)
    try:
        yield team
    finally:
        team.end()
        for thread in others:
            thread.join(PATIENCE)
            assert not thread.is_alive()


def engine_of(team: Team) -> Any:
    return partial(Mpi, team=team)
