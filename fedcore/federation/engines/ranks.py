"""What every rank of an MPI program does: it obeys for its own clients, which are consecutive.

Rank 0 runs the algorithm. All ranks, rank 0 among them, get each of its messages as the same bytes
and answer it. A sum goes from rank to rank in the order of the clients, and each adds its own to
it: the additions are those of one process, one after the other, so no bit depends on the ranks.

Each rank reads its own clients from a problem file, without those of the others.
"""

from __future__ import annotations

import itertools
import os
import resource
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from functools import partial
from typing import Any

import h5py
import numpy as np

from fedcore.client_steps.naming import find_step
from fedcore.client_steps.values import decode, encode
from fedcore.errors import DataError
from fedcore.federation.engines.mpi_link import CHAIN, DATA, Link
from fedcore.federation.engines.mpi_messages import (
    Answer,
    Begin,
    Carry,
    Data,
    End,
    Failure,
    Forget,
    Largest,
    Reduce,
    Used,
    source_of,
)
from fedcore.federation.ledger import payload
from fedcore.federation.messages import added
from fedcore.federation.site import Site
from fedcore.federation.transport import Order
from fedcore.files import hdf5
from fedcore.files.mapping import Mapped
from fedcore.problems.clients import Clients, Matrices


class RankRun:
    """The clients' sides of one run at one rank.

    Attributes
    ----------
    edges : list of int
    sites : dict of int to Site
        By position.
    own : object
        The sum of the own clients' replies, for `Reduce`.
    """

    def __init__(self, message: Begin, clients: Clients, rank: int) -> None:
        self.edges, self.own = message.data.edges, None
        root, noise = source_of(message.root), source_of(message.noise)
        assert isinstance(root, np.random.SeedSequence)
        first, stop = self.edges[rank : rank + 2]
        self.sites = {
            i: Site(
                clients, i - first, i, root=root, client_id=message.ids[i], noise=noise,
                labelled=message.labelled,
            )
            for i in range(first, stop)
        }  # fmt: skip


class Rank:
    """One rank: its clients' data, and their sides in every run.

    Parameters
    ----------
    link : Link
    data : mutable mapping of int to Clients, optional
        Data that are here already, by key. Those of rank 0 have all clients, its own first.
    """

    def __init__(self, link: Link, data: MutableMapping[int, Clients] | None = None) -> None:
        self._link = link
        self._runs: dict[int, RankRun] = {}
        self._data: MutableMapping[int, Clients] = {} if data is None else data

    def obey(self, message: Any) -> Answer:
        """Do what a message says; an error becomes an answer."""
        do: dict[type, Callable[[Any], Answer]] = {
            Begin: self._begin, Largest: self._largest, Carry: self._carry, Reduce: self._reduce,
            Forget: self._forget, Used: self._used,
        }  # fmt: skip
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # as rank 0 ignores them
                return do[type(message)](message)
        except Exception as error:
            return Answer(failure=Failure.of(error))

    def _clients(self, data: Data) -> Clients:
        """Return the own clients, read or received at the first call."""
        if data.key not in self._data:
            start, stop = data.edges[self._link.rank : self._link.rank + 2]
            if data.file is not None:
                self._data[data.key] = share(*data.file, start, stop)
            else:
                matrices, labels = decode(self._link.receive(0, DATA))
                self._data[data.key] = Clients(matrices, labels=labels)
        return self._data[data.key]

    def _begin(self, message: Begin) -> Answer:
        clients = self._clients(message.data)
        self._runs[message.run] = RankRun(message, clients, self._link.rank)
        return Answer()

    def _largest(self, message: Largest) -> Answer:
        start, stop = message.data.edges[self._link.rank : self._link.rank + 2]
        own = (self._clients(message.data)[i] for i in range(stop - start))
        return Answer(max((float(max(m.max(), -m.min())) for m in own), default=0.0))

    def _forget(self, message: Forget) -> Answer:
        for number in message.runs:
            self._runs.pop(number, None)
        for key in message.data:
            self._data.pop(key, None)
        return Answer()

    def _used(self, message: Used) -> Answer:
        used = resource.getrusage(resource.RUSAGE_SELF)
        unit = 1024**2 if sys.platform == "darwin" else 1024
        return Answer((used.ru_utime + used.ru_stime, used.ru_maxrss / unit))

    def _carry(self, message: Carry) -> Answer:
        run = self._runs[message.run]
        *before, (order, of) = message.orders
        for held, to in before:
            _replies(run, held, to)
        replies, failure = _replies(run, order, of)
        charges = {i: run.sites[i].charges() for i in set(of) & run.sites.keys()}
        answer = Answer(charges={i: c for i, c in charges.items() if c}, failure=failure)
        if message.how == "tell":
            return answer
        if message.how == "ask":
            return answer._replace(value=replies)
        try:
            counted = [] if failure else [payload(reply) for reply in replies]
        except TypeError as error:  # the turns of a chain go on
            answer = answer._replace(failure=Failure.of(error, len(of)))
            counted = []
        answer = answer._replace(
            scalars=sum(c[0] for c in counted), size=sum(c[1] for c in counted)
        )
        if message.how == "chain":
            return self._chain(run, of, replies, answer)
        mine = [i for i in of if i in run.sites]
        run.own = added(replies, mine) if mine and answer.failure is None else None
        form = None if run.own is None else (mine[0], np.shape(run.own), run.own.dtype.str)
        return answer._replace(value=form)

    def _chain(self, run: RankRun, of: list[int], replies: list[Any], answer: Answer) -> Answer:
        """Add the own replies to the sum when it is the turn of each; the last rank answers it."""
        waiting, me, turns = iter(replies), self._link.rank, list(_turns(run, of))
        for turn, (rank, start, stop) in enumerate(turns):
            if rank != me:
                continue
            so_far = decode(self._link.receive(turns[turn - 1][0], CHAIN)) if turn else []
            total: list[Any] = []  # none after a failure, of this rank or of one before
            if answer.failure is None and len(so_far) == min(turn, 1):
                own = [next(waiting) for _ in range(start, stop)]
                positions = of[start:stop] if not turn else [of[0], *of[start:stop]]
                try:
                    total = [added([*so_far, *own], positions)]
                except Exception as error:
                    answer = answer._replace(failure=Failure.of(error, len(of) + 1 + start))
            if turn + 1 < len(turns):
                self._link.send(turns[turn + 1][0], encode(total), CHAIN)
            elif total:
                answer = answer._replace(value=total[0])
        return answer

    def _reduce(self, message: Reduce) -> Answer:
        own = self._runs[message.run].own
        part = np.zeros(message.shape) if own is None else own
        total = self._link.reduced(np.ascontiguousarray(part, dtype=message.dtype))
        return Answer(total if self._link.rank == 0 else None)


def holder(edges: Sequence[int], position: int) -> int:
    """Return the rank that has the client at a position."""
    return bisect_right(edges, position) - 1


def _replies(run: RankRun, order: Order, of: Sequence[int]) -> tuple[list[Any], Failure | None]:
    """Return the replies of the own clients among some, up to the first that fails."""
    replies: list[Any] = []
    for at, i in enumerate(of):
        site = run.sites.get(i)
        if site is None:
            continue
        try:
            replies.append(site.obey(order))
        except Exception as error:
            return replies, Failure.of(error, at)
    return replies, None


def _turns(run: RankRun, of: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield rank, first and last place of each stretch of positions at the same rank."""
    start = 0
    for rank, group in itertools.groupby(of, partial(holder, run.edges)):
        stop = start + len(list(group))
        yield rank, start, stop
        start = stop


def serve(link: Link) -> None:
    """Obey rank 0 until the program ends."""
    rank = Rank(link)
    while True:
        message = decode(link.hear(), find_step)
        if isinstance(message, End):
            return
        try:
            link.send(0, encode(rank.obey(message)))
        except Exception as error:  # of a reply that cannot cross
            link.send(0, encode(Answer(failure=Failure.of(error))))


_WORDS = {"kind": "problem", "first": "make the problem", "again": "make it again"}


def share(path: str | os.PathLike[str], draw: int, start: int, stop: int) -> Clients:
    """Read the clients from `start` to before `stop` of one draw of a problem.

    Of a large file only their bytes are read, and checked, each client's when it is first used; of
    clients that are one array, all are checked here. A small file is read as a whole for its
    checksum, and only they are kept.

    Raises
    ------
    DataError
        When the file is missing or damaged, or has no such clients.
    """
    told = partial(hdf5.translate_errors, path, failure=DataError, **_WORDS)

    def decode(file: hdf5.Opened) -> Clients:
        group = list(file["draws"].values())[draw] if "draws" in file else file
        labels = _part(group["labels"], start, stop) if "labels" in group else None
        stored = group["clients"]
        if not file.large:
            return Clients(_part(stored, start, stop), labels=labels)
        if isinstance(stored, h5py.Dataset):  # with one checksum
            return Clients(Mapped(file, [stored], told)[0][start:stop], labels=labels)
        found = list(stored.values())[start:stop]
        shapes, dtypes = [c.shape for c in found], [c.dtype for c in found]
        return Clients(Mapped(file, found, told), shapes, dtypes, labels=labels)

    return hdf5.load(path, decode, failure=DataError, **_WORDS)


def _part(stored: Any, start: int, stop: int) -> Matrices:
    """Return some clients' arrays of a dataset with an axis of clients, or of a dataset each."""
    if isinstance(stored, h5py.Dataset):
        return hdf5.value(stored)[start:stop]
    return [hdf5.value(item) for item in list(stored.values())[start:stop]]
