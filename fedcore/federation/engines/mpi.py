"""All clients behind MPI: rank 0 runs the algorithm, and every rank holds consecutive clients.

Rank 0 holds clients, too. Each rank reads its own clients from the problem file. Steps cross by
name (`fedcore.client_steps`), and a run is equal to one in process with plain steps, bit
for bit and at every number of ranks; with ``order="any"`` sums are MPI's own and equal to rounding.
"""

from __future__ import annotations

import traceback
import weakref
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeVar

import numpy as np

from fedcore.errors import FedcoreError, InputError
from fedcore.federation.engine import everywhere
from fedcore.federation.engines.mpi_link import connect
from fedcore.federation.engines.mpi_messages import Answer, Carry, How, Reduce
from fedcore.federation.engines.ranks import holder, serve
from fedcore.federation.engines.team import Team
from fedcore.federation.messages import added
from fedcore.federation.site import changed
from fedcore.federation.transport import (
    Answers,
    BoundRows,
    Change,
    Charges,
    Do,
    Hold,
    Order,
    Read,
    Setup,
    Total,
)
from fedcore.problems.clients import Clients

Result = TypeVar("Result")


class Mpi:
    """Transport to the clients of all ranks, on rank 0.

    Parameters
    ----------
    setup : Setup
    team : Team
    """

    def __init__(self, setup: Setup, team: Team) -> None:
        self._team, self._data, self._apart = team, setup.clients, setup.apart
        self._run = next(team.runs)
        self._waiting: list[tuple[Order, list[int]]] = []  # go with the next exchange
        self._changes: list[Change] = []
        self._edges = team.begin(setup, self._run)
        weakref.finalize(self, team.over.append, self._run).atexit = False

    @property
    def clients(self) -> Clients:
        """The clients' current samples; rank 0 reads those of others, too, for evaluation."""
        while self._changes:
            order = self._changes.pop(0)
            new = [changed(order, samples, i) for i, samples in enumerate(self._data)]
            self._data = Clients(new, labels=self._data.labels)
        return self._data

    @property
    def states(self) -> Sequence[Any]:
        """Refused: only rank 0's are here."""
        raise InputError("checkpoints need all clients in one process: run without --engine mpi")

    @property
    def accounts(self) -> None:
        """None: the ledger's accounts are copies, made of what comes with the answers."""
        return None

    def tell(self, order: Order, to: Sequence[int]) -> None:
        """Carry an order; a message waits for the next exchange. See `Transport`."""
        positions = _listed(to)
        if isinstance(order, Hold):
            self._waiting.append((order, positions))
            return
        self._exchange(order, positions, "tell")
        if isinstance(order, Change) and (not isinstance(order, BoundRows) or order.clip):
            self._changes.append(order)

    def ask(self, order: Do | Read, of: Sequence[int]) -> Answers:
        """Carry an order and its answers; see `Transport`."""
        positions = _listed(of)
        answers = self._exchange(order, positions, "ask")
        replies = [iter(answer.value) for answer in answers]
        own = [next(replies[holder(self._edges, i)]) for i in positions]
        return Answers(own, _charges(answers, positions))

    def total(self, order: Do, of: Sequence[int]) -> Total | None:
        """Return the sum that the ranks have formed; None if somebody reads single replies."""
        positions = _listed(of)
        if self._apart or not positions:
            return None
        if self._team.order == "chain":
            answers = self._exchange(order, positions, "chain")
            value = answers[holder(self._edges, positions[-1])].value
        else:
            answers = self._exchange(order, positions, "any")
            value = self._reduced([answer.value for answer in answers])
        scalars, size = sum(a.scalars for a in answers), sum(a.size for a in answers)
        return Total(value, scalars, size, _charges(answers, positions))

    def close(self) -> None:
        """Nothing to end: the ranks are the team's."""

    def _exchange(self, order: Order, of: list[int], how: How) -> list[Answer]:
        orders, self._waiting = [*self._waiting, (order, of)], []
        return self._team.exchange(Carry(self._run, orders, how))

    def _reduced(self, forms: list[Any]) -> Any:
        """Return MPI's own sum of the ranks' sums, whose first client, shape and type are given."""
        there = [form for form in forms if form is not None]
        firsts = [first for first, _, _ in there]
        form = added([np.zeros(shape, dtype) for _, shape, dtype in there], firsts)  # or refuses
        message = Reduce(self._run, np.shape(form), np.asarray(form).dtype.str)
        return self._team.exchange(message)[0].value[()]


def _listed(positions: Iterable[int]) -> list[int]:
    return [int(i) for i in positions]


def _charges(answers: Sequence[Answer], positions: Sequence[int]) -> dict[int, Charges]:
    """Return all charges, in the order of the positions."""
    found = {i: charged for answer in answers for i, charged in answer.charges.items()}
    return {i: found[i] for i in dict.fromkeys(positions) if i in found}


def lead(body: Callable[[Team], Result], order: str = "chain") -> Result | None:
    """Call ``body(team)`` on rank 0 with all federations over MPI, while the other ranks serve it.

    Returns
    -------
    object
        What `body` returns; None on the other ranks, when rank 0 is done.

    Raises
    ------
    InputError
        As `mpi_link.connect`; and all that `body` raises, after the other ranks have ended.
    """
    link = connect()
    if link.rank:
        try:
            serve(link)
        except FedcoreError as error:  # of an order that this rank cannot read
            link.abort(f"rank {link.rank}: {error}")
        except BaseException:  # also sys.exit in a step: rank 0 would wait for ever
            link.abort(f"rank {link.rank} failed\n{traceback.format_exc()}")
        return None
    team = Team(link, order)
    try:
        with everywhere(partial(Mpi, team=team)):
            return body(team)
    finally:
        team.end()
