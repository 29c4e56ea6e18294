"""Engine over MPI: every rank runs the same algorithm and holds a range of consecutive clients.

Client steps (functions that run at a client) are not sent between ranks, because every rank has the
algorithm and runs the steps of its own clients. Messages to clients come from rank 0. Replies are
gathered at all ranks. A partial sum is passed from rank to rank in the order of the clients. Each
rank adds the replies of its own clients one after the other, and the last rank broadcasts the
total. A single process makes the same additions in the same order, so no bit of the sum depends on
the number of ranks.

At the beginning of every exchange of messages, rank 0 broadcasts a hash of all exchanges so far and
of the shapes in them. A rank that has computed a different hash ends the program. Without this
check, such a rank could wait for a message that no other rank will send.
"""

from __future__ import annotations

import hashlib
import itertools
import pickle
import traceback
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fedcore.errors import FedcoreError, InputError
from fedcore.federation.engine import everywhere
from fedcore.federation.engines.mpi_link import Link, connect
from fedcore.federation.execution import name_of
from fedcore.federation.ledger import payload
from fedcore.federation.messages import added, read_only
from fedcore.federation.site import Site, changed, samples_of
from fedcore.federation.transport import (
    Change,
    Do,
    Read,
    Setup,
    Total,
)
from fedcore.privacy.mechanisms import Account
from fedcore.problems.clients import Clients

Result = TypeVar("Result")
AHEAD = 1 << 30  # bytes of replies that a rank computes before the partial sum arrives
END = "the end"
SHOWN = 200  # characters of an exchange that an error shows


class Ended(BaseException):
    """Raised at every rank except rank 0, when rank 0 has ended."""


class Told(NamedTuple):
    """A broadcast from rank 0.

    Attributes
    ----------
    what : str
        Description of the exchange that begins.
    seen : bytes
        Hash of this exchange and of all exchanges before it.
    value : object
        What rank 0 sends, such as messages to clients or the value of a job.
    look : bool
        Whether rank 0, running alone, asks the waiting ranks to read from their clients.
    """

    what: str
    seen: bytes = b""
    value: Any = None
    look: bool = False


class Ranks:
    """The ranks of a program from the view of one rank, which takes part in every exchange.

    Parameters
    ----------
    link : Link
        Connection of this rank to the others.

    Attributes
    ----------
    rank : int
    alone : bool
        Whether this rank is rank 0, and the other ranks wait while it runs alone.
    busy : bool
        Whether an exchange has begun and not ended.
    """

    def __init__(self, link: Link) -> None:
        self.link, self.rank = link, link.rank
        self.alone = self.busy = False
        self._seen = b""

    def meet(self, what: str, value: Any = None) -> Any:
        """Begin an exchange `what` of all ranks, and return the `value` that rank 0 has passed."""
        self.require_all()
        self._note(what)
        return self._told(Told(what[:SHOWN], self._seen, value)).value

    def require_all(self) -> None:
        """Raise an error if the other ranks wait for rank 0 and cannot take part in an exchange.

        Raises
        ------
        InputError
            If rank 0 runs alone.
        """
        if self.alone:
            raise InputError(
                "only rank 0 is running here: begin no run and send no message in a measure or in "
                "federation.once"
            )

    def first(self, job: Callable[[], Result]) -> Result:
        """Call `job` at rank 0, then at the other ranks, which find the files that rank 0 made."""
        found = [] if self.rank else [job()]
        self.meet("what rank 0 prepares")
        return found[0] if found else job()

    def once(
        self, job: Callable[[], Result], look: Callable[[Any], Any], *, last: bool = False
    ) -> Result:
        """Run `job` at rank 0, and return its value or raise its error at all ranks.

        When the job reads from clients, the other ranks call `look`. If `last` is true, rank 0 goes
        on alone after the job, and the other ranks wait until rank 0 ends.
        """
        if self.alone:
            return job()
        what = "what rank 0 does alone"
        self._note(what)
        if self.rank:
            told = self._told(Told(what, self._seen))
            while told.look:
                with suppress(Exception):  # rank 0 gets it, too, and decides
                    look(told.value)
                told = self._told(Told(what, self._seen))
            if isinstance(told.value, Failure):
                raise told.value.error
            return told.value
        self.alone = True
        try:
            found = job()
        except Exception as error:
            self.alone = False
            self._told(Told(what, self._seen, Failure.from_error(0, error, self.rank)))
            raise
        self.alone = last
        if not last:
            self._told(Told(what, self._seen, found))
        return found

    def look(self, value: Any) -> None:
        """Tell the other ranks, which wait for rank 0, what their clients are asked."""
        try:
            self._told(Told("a look", self._seen, value, look=True))
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise InputError(
                f"the client step of a measure cannot be sent to other ranks ({error}): define the "
                "step with def at the top level of a module"
            ) from error

    def leave(self, error: BaseException | None = None) -> None:
        """Leave the program together with rank 0, or abort all ranks if one still needs this rank.

        The message of an abort gives `error` as the reason why this rank left.
        """
        why = "it ended"
        if error is not None:
            known = isinstance(error, FedcoreError)
            why = str(error) if known else "".join(traceback.format_exception(error))
        if self.busy:
            self.link.abort(f"rank {self.rank} left in the middle of an exchange: {why}")
        if self.rank == 0:
            self.link.broadcast(pickle.dumps(Told(END)))
        elif not isinstance(error, Ended):
            told = pickle.loads(self.link.broadcast())
            if told.what != END:
                self.link.abort(f"rank {self.rank} left before rank 0 did: {why}")

    def _note(self, what: str) -> None:
        self._seen = hashlib.sha256(self._seen + what.encode()).digest()[:16]

    def _told(self, own: Told) -> Told:
        """Return the broadcast of rank 0; end the program if rank 0 is at another exchange."""
        if self.rank == 0:
            self.link.broadcast(pickle.dumps(own))
            return own
        told: Told = pickle.loads(self.link.broadcast())
        if told.what == END:
            raise Ended
        if told.seen != own.seen:
            self.link.abort(
                f"rank {self.rank} has come to another exchange ({own.what}) than rank 0 "
                f"({told.what}): make every decision of the server that depends on rank, time or "
                "fresh random numbers by federation.once"
            )
        return told


class Failure(NamedTuple):
    """An error in a client's step, or in the reply of a client.

    If several clients fail, the error that a single process would find first is raised. This is the
    error with the lowest `stage` and, within this stage, with the lowest `place`.

    Attributes
    ----------
    stage : int
        0 if a step failed, 1 if the ledger cannot count the step's reply, 2 if the reply cannot be
        added to the replies of earlier clients.
    place : int
        Place of the client in the order in which clients were asked.
    error : Exception
        Error to raise at all ranks.
    """

    stage: int
    place: int
    error: Exception

    @classmethod
    def from_error(cls, place: int, error: Exception, rank: int) -> Failure:
        """Return the failure of a step; replace an error that cannot be sent to other ranks."""
        if not isinstance(error, FedcoreError):
            trace = "".join(traceback.format_exception(error))
            error.add_note(f"Raised at rank {rank}:\n{trace}")
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:
            error = RuntimeError(f"{type(error).__name__}: {error}")
        return cls(0, place, error)


@dataclass
class Sum:
    """A sum on its way from rank to rank; its value is complete only if no client has failed."""

    value: Any = None
    scalars: int = 0
    size: int = 0
    accounts: dict[int, Account] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)

    def add(self, reply: Any, place: int, of: Sequence[int]) -> None:
        """Add the reply of the client at `place`, after the replies of all earlier clients."""
        before = [self.value] if place else []
        try:
            if not self.failures:
                self.value = added([*before, reply], [*of[: len(before)], of[place]])
        except Exception as error:
            self.failures.append(Failure(2, place, error))


class Mpi:
    """Transport at one rank; it runs the client steps of this rank's clients.

    Parameters
    ----------
    setup : Setup
        Clients, random seeds and options of the run.
    ranks : Ranks
        The ranks of the program, as this rank sees them.

    Attributes
    ----------
    clients : Clients
        All clients with their current samples; metrics at rank 0 read samples of all ranks.
    root : numpy.random.SeedSequence
        Seed of rank 0, which all ranks use.
    accounts : list of Account
        Copies of the clients' privacy accounts, which arrive with the replies.
    """

    def __init__(self, setup: Setup, ranks: Ranks) -> None:
        self._ranks, self._link = ranks, ranks.link
        self.clients, self._apart = setup.clients, setup.apart
        self.accounts: list[Account] = []
        shapes, known = setup.clients.shapes, vars(setup.clients)
        largest = 0.0 if setup.clients.gram is not None else known.get("largest")
        found = setup.root, setup.noise, largest
        self.root, noise, largest = ranks.meet(f"a run of {setup.ids}, {shapes}", found)
        self._edges = edges(shapes, self._link.size)
        own = range(*self._edges[ranks.rank : ranks.rank + 2])
        setup = replace(setup, root=self.root, noise=noise)
        self._sites = {i: Site(setup, i) for i in own}
        self._held: list[tuple[Any, Sequence[int]]] = []  # goes with the next exchange
        if largest is None:  # otherwise one process would read all samples to find the value
            look = Do(largest_entry, "look")
            every = self._together(lambda site: site.do(look), range(len(shapes)))
            setup.clients.largest = max(every)

    @property
    def states(self) -> Sequence[Any]:
        """Raise an error, because this rank holds only its own clients' states."""
        raise InputError("checkpoints need all clients in one process: run without --engine mpi")

    def once(self, job: Callable[[], Result], *, last: bool = False) -> Result:
        """Return the value of `job` at rank 0; see `Ranks.once`."""

        def look(asked: tuple[Do | Read, Sequence[int]]) -> None:
            order, of = asked
            self._together(lambda site: site.answer(order), of)

        return self._ranks.once(job, look, last=last)

    def hold(self, message: Any, to: Sequence[int]) -> None:
        """Give clients a message of rank 0, which is sent with the next exchange."""
        self._ranks.require_all()
        self._held.append((message, to))

    def protect(self) -> None:
        """Begin the privacy accounts of all clients."""
        self.accounts += [Account() for _ in self.clients.shapes]
        for site in self._sites.values():
            site.protect()

    def change(self, change: Change) -> None:
        """Apply the change of rank 0 to the samples of all clients."""
        own = self._ranks.meet(type(change).__name__, change)
        self._together(lambda site: site.change(own), range(len(self.clients)))
        if getattr(own, "clip", True):
            self.clients = _lazily(own, self.clients)

    def ask(self, order: Do | Read, of: Sequence[int]) -> Sequence[Any]:
        """Return the replies of the clients `of` at all ranks; see `Transport`."""
        if isinstance(order, Do) and order.purpose == "upload":
            self._ranks.require_all()
        if self._ranks.alone:
            self._ranks.look((order, of))
        else:
            self._begin("answers", order, of)
        return self._together(lambda site: site.answer(order), of)

    def total(self, order: Do, of: Sequence[int]) -> Total | None:
        """Return the sum of the replies, or None if the replies must be summed one by one."""
        if self._apart or self._ranks.alone or not len(of):
            return None
        self._begin("a sum", order, of)
        found = self._chain(order, of)
        self._ranks.busy = False
        if found.failures:
            raise min(found.failures, key=lambda one: one[:2]).error
        self._know(found.accounts)
        return Total(found.value, found.scalars, found.size)

    def _begin(self, verb: str, order: Do | Read, of: Sequence[int]) -> None:
        """Begin an exchange with all ranks, and give rank 0's messages to this rank's clients."""
        step = order.name if isinstance(order, Read) else name_of(order.step)
        forms = [(form(message), to) for message, to in self._held]
        messages = [message for message, _ in self._held]
        told = self._ranks.meet(f"{verb} of {step} of clients {of}, after {forms}", messages)
        self._ranks.busy = True
        for (own, to), message in zip(self._held, told, strict=True):
            received = read_only(message) if self._ranks.rank else own
            for i in to:
                if i in self._sites:
                    self._sites[i].message = received
        self._held.clear()

    def _together(self, act: Callable[[Site], Any], of: Sequence[int]) -> Sequence[Any]:
        """Call `act` for each client in `of` at its rank, and gather the results at all ranks."""
        self._ranks.busy = True
        own, failure = [], None
        for place, i in enumerate(of):
            if i in self._sites and failure is None:
                try:
                    own.append(act(self._sites[i]))
                except Exception as error:
                    failure = Failure.from_error(place, error, self._ranks.rank)
        accounts = self._own_accounts(of)
        try:
            data = pickle.dumps((own, accounts, failure))
        except Exception as error:  # of a reply that cannot cross
            data = pickle.dumps(
                ([], accounts, Failure.from_error(len(of), error, self._ranks.rank))
            )
        every = [pickle.loads(part) for part in self._link.gather(data)]
        self._ranks.busy = False
        if failures := [one for _, _, one in every if one is not None]:
            raise min(failures, key=lambda one: one.place).error
        for _, part, _ in every:
            self._know(part)
        parts = [iter(replies) for replies, _, _ in every]
        return [next(parts[self._holder(i)]) for i in of]

    def _chain(self, order: Do, of: Sequence[int]) -> Sum:
        """Return the sum of the replies; each rank adds its own replies and passes the sum on.

        The last rank broadcasts the total. Before the sum arrives, a rank runs the steps of its
        own clients.
        """
        me, mine, ahead = self._ranks.rank, Sum(), deque[Any]()
        own = self._replies(order, of, mine)
        places_of = itertools.groupby(range(len(of)), lambda place: self._holder(of[place]))
        turns = [(rank, list(places)) for rank, places in places_of]
        total = Sum()
        for turn, (rank, places) in enumerate(turns):
            if rank != me:
                continue
            if turn:
                for reply in own:
                    ahead.append(reply)
                    if mine.size >= AHEAD:
                        break
                total = pickle.loads(self._link.receive(turns[turn - 1][0]))
            for place in places:
                if not ahead:
                    ahead.extend(itertools.islice(own, 1))
                if ahead:
                    total.add(ahead.popleft(), place, of)
            if rank not in dict(turns[turn + 1 :]):
                total.scalars, total.size = total.scalars + mine.scalars, total.size + mine.size
                total.failures += mine.failures
                total.accounts |= self._own_accounts(of)
            if turn + 1 < len(turns):
                self._link.send(turns[turn + 1][0], pickle.dumps(total))
        last = turns[-1][0]
        return pickle.loads(self._link.broadcast(pickle.dumps(total) if me == last else b"", last))

    def _replies(self, order: Do, of: Sequence[int], mine: Sum) -> Iterator[Any]:
        """Yield replies of this rank's clients until a step fails; add their sizes to `mine`."""
        for place, i in enumerate(of):
            if i not in self._sites:
                continue
            try:
                reply = self._sites[i].do(order)
            except Exception as error:
                mine.failures.append(Failure.from_error(place, error, self._ranks.rank))
                return
            try:
                scalars, size = payload(reply)
                mine.scalars, mine.size = mine.scalars + scalars, mine.size + size
            except TypeError as error:
                mine.failures.append(Failure(1, place, error))
            yield reply

    def _own_accounts(self, of: Sequence[int]) -> dict[int, Account]:
        """Return, by position, the privacy accounts of this rank's clients in `of`.

        The result is empty in a run that has not called `protect`.
        """
        found = {i: self._sites[i].account for i in set(of) & self._sites.keys()}
        return {i: account for i, account in found.items() if account is not None}

    def _know(self, accounts: Mapping[int, Account]) -> None:
        for i, account in accounts.items():
            self.accounts[i] = account

    def _holder(self, position: int) -> int:
        return bisect_right(self._edges, position) - 1


def edges(shapes: Sequence[tuple[int, int]], ranks: int) -> list[int]:
    """Return the position of each rank's first client, followed by the number of clients.

    Each rank gets consecutive clients, and the ranks' numbers of samples are as equal as possible.
    Some ranks may get no client, for example if there are more ranks than clients.
    """
    ends = np.cumsum([rows for rows, _ in shapes])
    inner = [int(np.argmin(np.abs(ends - ends[-1] * r / ranks))) + 1 for r in range(1, ranks)]
    return [0, *inner, len(shapes)]


def largest_entry(data: Any, state: Any, message: Any) -> float:
    """Client step that returns the largest absolute value in the samples."""
    samples = samples_of(data)
    return float(max(samples.max(), -samples.min()))


def form(message: Any) -> str:
    """Return the types and shapes in a message as text, without its numbers."""
    if isinstance(message, np.ndarray):
        return f"{message.dtype.str}{message.shape}"
    if isinstance(message, Mapping):
        return f"{ {key: form(part) for key, part in message.items()} }"
    if isinstance(message, list | tuple):
        return f"{[form(part) for part in message]}"
    return type(message).__name__


def _lazily(order: Change, clients: Clients) -> Clients:
    """Return the changed clients; the change is computed when the first sample is read."""

    def change() -> list[Any]:
        found = [changed(order, samples, i) for i, samples in enumerate(clients)]
        return [clients[i] if new is None else new for i, new in enumerate(found)]

    new = Clients(change, clients.shapes, clients.dtypes, labels=clients.labels)
    new.sparse = clients.sparse
    return new


def on_all_ranks(program: Callable[[Ranks], Result]) -> Result | None:
    """Call ``program(ranks)`` at every rank; all federations made in this call use MPI.

    Returns
    -------
    object
        At rank 0, the value of `program`. The other ranks return None after rank 0 has ended.

    Raises
    ------
    InputError
        If `mpi_link.connect` cannot join the ranks. Rank 0 also raises any error of `program`,
        after the other ranks have ended.
    """
    ranks = Ranks(connect())
    try:
        with everywhere(partial(Mpi, ranks=ranks)):
            found = program(ranks)
    except BaseException as error:  # also sys.exit in a step: the others would wait for ever
        ranks.leave(error)
        if ranks.rank:
            return None
        raise
    ranks.leave()
    return None if ranks.rank else found
