"""All ranks of an MPI program, as rank 0 speaks to them: it tells all, and reads their answers."""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from fedcore.client_steps.naming import find_step, name_step
from fedcore.client_steps.values import decode, encode
from fedcore.errors import InputError
from fedcore.federation.engines.mpi_link import DATA, Link
from fedcore.federation.engines.mpi_messages import (
    Answer,
    Begin,
    Data,
    End,
    Forget,
    Largest,
    Seed,
    Used,
)
from fedcore.federation.engines.ranks import Rank
from fedcore.federation.transport import Setup
from fedcore.problems.clients import Clients
from fedcore.words import counted


class Team:
    """All ranks, as rank 0 speaks to them.

    Parameters
    ----------
    link : Link
    order : {"chain", "any"}
        In which order replies are added.
    idle : bool
        Whether a rank may be without a client.
    """

    def __init__(self, link: Link, order: str = "chain", *, idle: bool = False) -> None:
        self.link, self.order, self._idle = link, order, idle
        self.runs = itertools.count()
        self.over: list[int] = []
        self._keys, self._gone = itertools.count(), list[int]()
        self._known: weakref.WeakKeyDictionary[Clients, Data] = weakref.WeakKeyDictionary()
        self._here: weakref.WeakValueDictionary[int, Clients] = weakref.WeakValueDictionary()
        self._rank = Rank(link, self._here)

    @property
    def about(self) -> dict[str, Any]:
        """What a history must say: nothing where it has the bytes of a run in one process."""
        return {} if self.order == "chain" else {"sums": {"order": "any", "ranks": self.link.size}}

    def announce_file(self, path: str, draws: Sequence[Clients]) -> None:
        """Say that these clients are the draws of a problem file, which all ranks can read.

        Their largest entry, for which one process would read all of them, is found by all ranks.
        """
        for number, clients in enumerate(draws):
            data = self._data(clients, (os.path.abspath(path), number))
            if clients.gram is None:
                answers = self.exchange(Largest(data))
                clients.largest = max(float(answer.value) for answer in answers)

    def used(self) -> tuple[float, float]:
        """Return CPU seconds and MiB of memory of all ranks together."""
        values = [answer.value for answer in self.exchange(Used())]
        return sum(value[0] for value in values), sum(value[1] for value in values)

    def begin(self, setup: Setup, run: int) -> list[int]:
        """Begin the clients' sides of a run, and return the edges between the ranks' clients."""
        known = setup.clients in self._known
        data = self._data(setup.clients)
        then = None if known or data.file else partial(self._send, setup.clients, data)
        ids = [int(i) for i in setup.ids]
        root, noise = Seed.of(setup.root), Seed.of(setup.noise)
        self.exchange(Begin(run, data, root, ids, noise, setup.labelled), then)
        return data.edges

    def exchange(self, message: Any, then: Callable[[], None] | None = None) -> list[Answer]:
        """Tell all ranks a message and return their answers; `then` comes before they are read.

        Raises
        ------
        Exception
            The first error in the order of the clients.
        """
        if self.over or self._gone:
            forgotten = Forget(self.over[:], self._gone[:])
            del self.over[: len(forgotten.runs)], self._gone[: len(forgotten.data)]
            self._told(forgotten)
        return self._told(message, then)

    def end(self) -> None:
        """Let the other ranks end; at once, if they may wait for something else."""
        if self.link.busy:
            self.link.abort("rank 0 ended in the middle of an exchange with the others")
        self.link.tell(encode(End()))

    def _told(self, message: Any, then: Callable[[], None] | None = None) -> list[Answer]:
        sent = encode(message, name_step)  # refused before anybody is told
        self.link.busy = True
        self.link.tell(sent)
        if then is not None:
            then()
        answers = [self._rank.obey(decode(sent, find_step))]
        answers += [decode(self.link.receive(rank)) for rank in range(1, self.link.size)]
        self.link.busy = False
        failed = [(a.failure, rank) for rank, a in enumerate(answers) if a.failure is not None]
        if failed:
            failure, rank = min(failed, key=lambda one: one[0].at)
            raise failure.error(f"at rank {rank}")
        return answers

    def _data(self, clients: Clients, file: tuple[str, int] | None = None) -> Data:
        """Return how ranks call these clients, and let rank 0 have them."""
        if clients not in self._known:
            data = Data(next(self._keys), self._edges(clients), file)
            self._known[clients], self._here[data.key] = data, clients
            weakref.finalize(clients, self._gone.append, data.key).atexit = False
        return self._known[clients]

    def _edges(self, clients: Clients) -> list[int]:
        """Return how ranks share consecutive clients: with samples as equal as can be."""
        count, ranks = len(clients), self.link.size
        if ranks > count:
            if self._idle:
                return [min(rank, count) for rank in range(ranks + 1)]
            raise InputError(
                f"there are {ranks} ranks and only {counted(count, 'client')}: start at most as "
                f"many ranks as clients (mpiexec -n {count})"
            )
        ends, edges = np.cumsum([rows for rows, _ in clients.shapes]), [0]
        for rank in range(1, ranks):
            nearest = int(np.argmin(np.abs(ends - ends[-1] * rank / ranks))) + 1
            edges.append(min(max(nearest, edges[-1] + 1), count - (ranks - rank)))
        return [*edges, count]

    def _send(self, clients: Clients, data: Data) -> None:
        """Send the other ranks their clients."""
        for rank in range(1, self.link.size):
            start, stop = data.edges[rank : rank + 2]
            labels = None if clients.labels is None else list(clients.labels[start:stop])
            self.link.send(rank, encode((clients[start:stop], labels)), DATA)
