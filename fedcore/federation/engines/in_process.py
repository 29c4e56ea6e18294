"""The default engine, which keeps all clients in this process.

A client step (a function that runs at a client) is called client by client, unless a decorator of
`fedcore.federation.execution` declares a faster way. If several runs proceed side by side
(`fedcore.federation.lockstep`), one call of a step marked by `of_runs` serves all of these runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from fedcore.errors import ReplyError
from fedcore.federation import lockstep
from fedcore.federation.centring import Centred
from fedcore.federation.execution import Step, name_of
from fedcore.federation.ledger import payload
from fedcore.federation.messages import copied, narrow, opened
from fedcore.federation.site import Site, changed, read_only_view
from fedcore.federation.state import Arrays, StackedState, State, StatesOfSome, write_back
from fedcore.federation.transport import (
    Centre,
    Change,
    Do,
    Read,
    Setup,
    Total,
)
from fedcore.privacy.mechanisms import Account
from fedcore.problems.clients import Clients, Labelled
from fedcore.rowspace import Frame, frame_of
from fedcore.words import counted

Result = TypeVar("Result")


class InProcess:
    """Transport, by which a federation calls its clients, for clients in this process.

    Parameters
    ----------
    setup : Setup
        Clients, random seeds and options of the run.
    plain : bool, default=False
        Whether every client step runs client by client, as under the MPI engine.

    Attributes
    ----------
    clients : Clients
        Clients with their current samples.
    states : sequence of State
    sites : list of Site
        For each client, the object that runs the client's steps.
    root : numpy.random.SeedSequence
        Root of the run's public random streams.
    plain : bool
    """

    def __init__(self, setup: Setup, *, plain: bool = False) -> None:
        self.clients, self._everyone = setup.clients, range(len(setup.clients))
        self.sites, self.root = [Site(setup, i) for i in self._everyone], setup.root
        self._as_one = SimpleNamespace(kept=self.clients.kept)
        self._arrays: Arrays = {}  # arrays of stacked states, see StackedState
        self.states: Sequence[State] = [site.state for site in self.sites]
        self._labelled, self.plain = setup.labelled, plain
        self._stack = not plain and self.clients.uniform and len(self.clients) > 1
        self._private = False
        self._one_message = True  # whether all clients are known to hold the same message

    @property
    def accounts(self) -> list[Account]:
        """The privacy accounts of all clients; the ledger reads these very objects, not copies."""
        return [site.account for site in self.sites if site.account is not None]

    def once(self, job: Callable[[], Result], *, last: bool = False) -> Result:
        """Call `job`; see `Transport`."""
        return job()

    def hold(self, message: Any, to: Sequence[int]) -> None:
        """Give clients a message, which they hold until the next message."""
        sites = self.sites
        self._one_message = to == self._everyone
        for i in to:
            sites[i].message = message

    def protect(self) -> None:
        """Begin the privacy accounts of all clients."""
        self._private = True
        for site in self.sites:
            site.protect()

    def ask(self, order: Do | Read, of: Sequence[int]) -> Sequence[Any]:
        """Return the replies to a step, or values of states; see `Transport`."""
        if isinstance(order, Read):
            return self._held(order.name, of)
        replies = self._run(order, of)
        return narrow(replies) if order.narrow else replies

    def total(self, order: Do, of: Sequence[int]) -> Total | None:
        """Return the sum that the step's `summed` function computes, or None if it is not used."""
        at_once: Step | None = getattr(order.step, "summed", None)
        everyone = of == self._everyone or sorted(of) == list(self._everyone)
        if at_once is None or self.plain or not everyone or not self._hold_one(of):
            return None
        message, total = self.sites[of[0]].message, None
        if _meets(order, message):
            total = _in_all_runs(order.step, at_once, self.clients, self._as_one, message)
        elif message is not None:
            total = at_once(self.clients, self._as_one, message)
        if total is None:
            return None
        total = copied(narrow(total) if order.narrow else total)
        if self._private:
            for i in of:
                self.sites[i].expose(order.step)
        scalars, size = payload(total)
        return Total(total, len(of) * scalars, len(of) * size)

    def frame(self, start: np.ndarray) -> Frame | None:
        """Return coordinates in which sums over clients cost little; see `Federation.frame`.

        The result is None if the features do not far outnumber the samples, if every step runs
        client by client, if the run is private, or if the clients' Gram matrix exists already.
        """
        alone = self.plain or self._private or self.clients.gram is not None
        return None if alone else frame_of(self.clients, start)

    def change(self, change: Change) -> None:
        """Change all clients' samples, and drop all values computed from the old samples."""
        if isinstance(change, Centre) and not self.clients.sparse:
            self.clients = Centred(self.clients, change.mean)
        else:
            new = [changed(change, samples, i) for i, samples in enumerate(self.clients)]
            matrices = [samples for samples in new if samples is not None]
            if not matrices:
                return
            self.clients = Clients(matrices, labels=self.clients.labels)
        self._as_one.kept = self.clients.kept
        for i, site in enumerate(self.sites):
            site.go_on_with(self.clients, i)

    def _held(self, name: str, positions: Iterable[int]) -> Sequence[Any]:
        """Return ``state.<name>`` of the clients at `positions`."""
        whole = self._arrays.get(name)
        if whole is not None:
            return whole.copy() if positions == self._everyone else whole[list(positions)]  # type: ignore[return-value]
        return [getattr(self.states[i], name) for i in positions]

    def _hold_one(self, positions: Sequence[int]) -> bool:
        """Return whether the clients at `positions` hold the same message."""
        if self._one_message:
            return True
        sites = self.sites
        first = sites[positions[0]].message
        return all(sites[i].message is first for i in positions)

    def _run(self, order: Do, positions: Sequence[int]) -> Sequence[Any]:
        """Return the replies of the clients at `positions`; a position may occur twice."""
        sites = self.sites
        alone = self.plain or self.clients.sparse
        if not alone and _meets(order, sites[0].message):
            self._arrays.clear()  # as for plain steps, below
            asked = [sites[i] for i in positions]
            return [
                _in_all_runs(order.step, order.step, site.data, site.state, site.message)
                for site in asked
            ]
        stacks = self._stack and getattr(order.step, "stacked", False) and not order.message
        if stacks and self._alike(positions):
            return self._run_stacked(order, positions)
        self._arrays.clear()  # a plain step writes to the states, which hold the same values
        run_all = getattr(order.step, "run_all", None)
        if run_all and not self.plain and 1 < len(positions) == len(set(positions)):
            replies: list[Any] = run_all([partial(sites[i].do, order) for i in positions])
            return replies
        if self._private or order.message:
            return [sites[i].do(order) for i in positions]
        step, asked = order.step, [sites[i] for i in positions]  # `Site.do` at less cost
        return [step(site.data, site.state, opened(site.message)) for site in asked]

    def _run_stacked(self, order: Do, positions: Sequence[int]) -> Sequence[Any]:
        """Run a step once for all participants (a stacked step); they hold the same message."""
        stack: Any = self.clients.labelled_stack if self._labelled else self.clients.stack
        data = read_only_view(stack)
        before = {i: self.sites[i].charged() for i in positions} if self._private else {}
        message = opened(self.sites[positions[0]].message)
        if positions == self._everyone:
            state = StackedState(self.states, self._arrays, self.clients.kept)
            replies = order.step(data, state, message)
        else:
            rows = list(positions)
            data = Labelled(*(part[rows] for part in data)) if self._labelled else data[rows]
            some = StatesOfSome(self.states, self._arrays, rows)
            replies = order.step(data, some, message)
            write_back(some)
        shape = replies.shape if isinstance(replies, np.ndarray) else type(replies).__name__
        if order.purpose != "none" and shape[:1] != (len(positions),):
            raise ReplyError(
                f"a stacked step replied with {shape} for {counted(len(positions), 'client')}: "
                "reply with one array that has one row for each client"
            )
        if before and order.purpose == "upload":
            for i, reply in zip(positions, replies, strict=True):
                self.sites[i].judge(order.step, reply, before[i])
        return replies

    def _alike(self, positions: Sequence[int]) -> bool:
        """Return whether `positions` are distinct clients that hold the same message."""
        if not positions or len(set(positions)) < len(positions):
            return False
        return self._hold_one(positions)


def _meets(order: Do, message: Any) -> bool:
    """Return whether one call of a step serves all runs that proceed side by side.

    A step of purpose "look", which only observes clients, runs separately for each run.
    """
    several = getattr(order.step, "of_runs", False) and order.purpose != "look"
    return several and lockstep.slot() is not None and isinstance(message, np.ndarray)


def _in_all_runs(step: Step, at_once: Step, data: Any, state: Any, message: np.ndarray) -> Any:
    """Return the reply to this run; one call of `at_once` serves all runs that ask for `step`."""

    def serve(asked: list[Any]) -> list[Any]:
        slots, states, messages = zip(*asked, strict=True)
        several = StackedState(states, {}, state.kept, list(slots))
        replies = at_once(data, several, np.stack(messages))
        if replies is None:
            return [None] * len(asked)
        return list(replies)

    slot = lockstep.slot()
    assert slot is not None
    block, place = divmod(slot, lockstep.WIDTH)
    key = id(state.kept), name_of(step), message.shape, message.dtype, block
    return lockstep.meet(key, serve, (place, state, message))
