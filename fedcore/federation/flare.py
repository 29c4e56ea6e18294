"""Clients of several organisations, each at a member of a job of NVIDIA FLARE.

The server runs the algorithm and has no data. Orders wait until an upload is asked for and go with
it, each client's own ones only. What clients would show for evaluation stays with them: a `Looks`
stands in its place, which asks them when it is read, and only if the run evaluates. Sums are those
of one process, reply by reply in the order of the clients. This module imports nothing of FLARE;
`fedcore.experiments.flare_server` brings the link.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from fedcore.errors import InputError
from fedcore.federation.flare_group import Group
from fedcore.federation.flare_messages import Begin, Carry, Drop, Fetch, Finish, Look
from fedcore.federation.mpi_messages import Seed
from fedcore.federation.transport import Answers, Charges, Do, Order, Read, Setup, Total
from fedcore.problems.clients import Clients

WAITING = 256  # orders after which a client is told, even if nobody asks it for an upload


class Kept(float):
    """What a client has kept to itself: no number (NaN), so that all that reads it is NaN, too."""

    def __new__(cls) -> Kept:
        """Return a NaN."""
        return super().__new__(cls, np.nan)

    def __repr__(self) -> str:
        return "kept by its client"


class Looks(Sequence[Any]):
    """What clients show for evaluation, asked for when it is first read.

    Parameters
    ----------
    flare : Flare
    number : int
    of : sequence of int
    """

    def __init__(self, flare: Flare, number: int, of: Sequence[int]) -> None:
        self._flare, self.number, self._of = flare, number, list(of)
        self._found: list[Any] | None = None

    def __len__(self) -> int:
        return len(self._of)

    def __getitem__(self, i: Any) -> Any:
        if self._found is None:
            self._found = self._flare.fetch(self.number, self._of)
        return self._found[i]


class Flare:
    """Transport to the members of a group.

    Parameters
    ----------
    setup : Setup
    group : Group

    Attributes
    ----------
    run : int
    """

    def __init__(self, setup: Setup, group: Group) -> None:
        if setup.noise is not None:
            raise InputError("over FLARE every member draws its noise from its own entropy")
        self._group, self._clients, self.run = group, setup.clients, next(group.runs)
        self._numbers, self._unread = itertools.count(), list[tuple[int, list[int]]]()
        self._waiting: list[list[Any]] = [[] for _ in group.names]
        root = Seed.of(setup.root)
        group.exchange(
            {
                i: Begin(self.run, group.columns[i], root, int(setup.ids[i]), i, setup.labelled)
                for i in range(len(group.names))
            }
        )
        group.transport = self

    @property
    def clients(self) -> Clients:
        """What the server knows of the clients' data."""
        return self._clients

    @property
    def states(self) -> Sequence[Any]:
        """Refused: they are the members' own."""
        raise InputError("checkpoints need all clients in one process, not over FLARE")

    @property
    def accounts(self) -> None:
        """None: the ledger's accounts are copies, made of what comes with the answers."""
        return None

    def tell(self, order: Order, to: Sequence[int]) -> None:
        """Let an order go with the next exchange; see `Transport`."""
        self._wait(order, to)

    def ask(self, order: Do | Read, of: Sequence[int]) -> Answers:
        """Carry an order and its answers; what is for evaluation is `Looks`. See `Transport`."""
        of = [int(i) for i in of]
        if isinstance(order, Do) and order.purpose == "upload":
            return self._exchange(order, of)
        if isinstance(order, Do) and order.purpose == "none":
            self._wait(order, of)
            return Answers([None] * len(of))
        number = next(self._numbers)
        self._wait(Look(number, order, self._group.evaluation), of)
        looks = Looks(self, number, of)
        weakref.finalize(looks, self._unread.append, (number, of)).atexit = False
        return Answers(looks)

    def total(self, order: Do, of: Sequence[int]) -> Total | None:
        """Return None: the server adds the replies."""
        return None

    def fetch(self, number: int, of: Sequence[int]) -> list[Any]:
        """Return what clients have kept under a number of `Look`, or `Kept` in a run without."""
        if not self._group.evaluation:
            return [Kept() for _ in of]
        asked = list(dict.fromkeys(of))
        found = dict(zip(asked, self._exchange(Fetch(number), asked).replies, strict=True))
        return [found[i] for i in of]

    def flush(self) -> None:
        """Tell all clients what waits for them."""
        if waiting := [i for i, orders in enumerate(self._waiting) if orders]:
            self._exchange(None, waiting)

    def finish(self, output: Mapping[str, Any]) -> None:
        """End the run; each member saves what is its own of the results."""
        self.flush()
        numbers = {name: v.number for name, v in output.items() if isinstance(v, Looks)}
        message = Finish(self.run, numbers)
        self._group.exchange(dict.fromkeys(range(len(self._group.names)), message))

    def close(self) -> None:
        """Nothing to end: `finish` does."""

    def _wait(self, order: Any, to: Iterable[int]) -> None:
        for i in to:
            self._waiting[int(i)].append(order)
        if max(map(len, self._waiting)) > WAITING:
            self.flush()

    def _exchange(self, order: Any, of: Sequence[int]) -> Answers:
        """Tell clients what waits for them, and then an order, if there is one."""
        while self._unread:  # looks that are gone, here and now at their clients
            number, known = self._unread.pop()
            for i in dict.fromkeys(known):
                self._waiting[i].append(Drop(number))
        if order is not None:
            for i in of:
                self._waiting[i].append(order)
        same: dict[tuple[int, ...], Carry] = {}
        messages = {}
        for i in dict.fromkeys(of):
            orders, self._waiting[i] = self._waiting[i], []
            messages[i] = same.setdefault(tuple(map(id, orders)), Carry(self.run, orders))
        answers = self._group.exchange(messages)
        replies = {i: iter(answer.value) for i, answer in answers.items()}
        own = [] if order is None else [next(replies[i]) for i in of]
        charges = {i: answers[i].charges for i in messages}
        found: dict[int, Charges] = {i: c for i, c in charges.items() if c is not None}
        return Answers(own, found)
