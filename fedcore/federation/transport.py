"""Transports, which carry messages and client steps to the clients, and replies to the server.

Algorithms call the methods of a `Federation`. The federation calls a `Transport`, which calls the
clients' sites (`fedcore.federation.site`), one object for each client. A transport knows neither
ledger nor algorithm. An engine is a function or class that makes a transport. The engine
`fedcore.federation.engines.in_process` calls the sites of all clients. The engine
`fedcore.federation.engines.mpi` calls the sites of one rank; the algorithm runs at every rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from fedcore.federation.execution import Step
from fedcore.privacy.mechanisms import Account
from fedcore.privacy.noise import Source
from fedcore.problems.clients import Clients

Result = TypeVar("Result")


class BoundRows(NamedTuple):
    """Order to scale rows with a norm above `bound` to this norm if `clip`, else to refuse them."""

    bound: float
    clip: bool


class Centre(NamedTuple):
    """Order to subtract `mean` from every sample."""

    mean: np.ndarray


class Scale(NamedTuple):
    """Order to divide every feature by its scale."""

    scales: np.ndarray


class Do(NamedTuple):
    """Order to run a client step, a function ``step(data, state, message) -> reply``.

    Attributes
    ----------
    step : Step
    purpose : {"none", "upload", "look"}
        What happens to the reply: it stays with the client, is uploaded, or is read for evaluation
        outside the protocol.
    narrow : bool
        Whether the reply is converted to single precision.
    message : tuple
        A tuple ``(message,)`` contains the message that this step gets. If the tuple is empty, the
        step gets the last message to the client.
    """

    step: Step
    purpose: Literal["none", "upload", "look"]
    narrow: bool = False
    message: tuple[()] | tuple[Any] = ()


class Read(NamedTuple):
    """Order to read ``state.<name>`` of a client, for evaluation outside the protocol."""

    name: str


Change = BoundRows | Centre | Scale  # of the samples


class Total(NamedTuple):
    """The sum of all replies, received by the server in place of the individual replies.

    Attributes
    ----------
    value : number or ndarray
    scalars, size : int
        Numbers of scalars and bytes in all replies.
    """

    value: Any
    scalars: int
    size: int


class Transport(Protocol):
    """Methods by which a federation calls its clients; arguments name clients by position.

    Attributes
    ----------
    clients : Clients
        Clients with their current samples, for evaluation outside the protocol.
    root : numpy.random.SeedSequence
        Root of the run's public random streams.
    """

    clients: Clients
    root: np.random.SeedSequence

    @property
    def states(self) -> Sequence[Any]:
        """The clients' states, for checkpoints."""
        ...

    @property
    def accounts(self) -> list[Account]:
        """The clients' privacy accounts, which `protect` begins and every reply updates."""
        ...

    def once(self, job: Callable[[], Result], *, last: bool = False) -> Result:
        """Call the function `job` once for the whole run, and return its value in every process.

        The job may read from clients by `ask`. If `last` is true, only rank 0 returns the value;
        other processes wait until rank 0 ends.
        """
        ...

    def hold(self, message: Any, to: Sequence[int]) -> None:
        """Give clients a message, which they hold until the next message.

        The message may travel with the next `ask` or `total`.
        """
        ...

    def protect(self) -> None:
        """Begin all clients' privacy accounts; see `fedcore.privacy.mechanisms`."""
        ...

    def change(self, change: Change) -> None:
        """Apply `change` to the samples of all clients."""
        ...

    def ask(self, order: Do | Read, of: Sequence[int]) -> Sequence[Any]:
        """Run a step or read a state's value at the clients at positions `of`; return the results.

        There is one result per entry of `of`, which may contain a position twice. If
        nobody uses the results (purpose "none"), they may be None.
        """
        ...

    def total(self, order: Do, of: Sequence[int]) -> Total | None:
        """Return the sum of the replies, or None if the caller must sum the replies of `ask`."""
        ...


@dataclass(frozen=True)
class Setup:
    """What an engine needs to make a transport for a run: clients, random seeds and options.

    Attributes
    ----------
    clients : Clients
        The clients' samples and labels at the start of the run.
    root : numpy.random.SeedSequence
        Root of the clients' public random streams.
    ids : sequence of int
        Ids of the clients; an id selects the client's random stream.
    labelled : bool
        Whether client steps get labels with the samples.
    noise : SeedSequence, Weakened or None
        Source of the privacy noise in a simulation. If the source is None, every client uses its
        own entropy.
    apart : bool
        Whether the individual replies of a sum are needed, for example by an audit.
    """

    clients: Clients
    root: np.random.SeedSequence
    ids: Sequence[int]
    labelled: bool = False
    noise: Source | None = None
    apart: bool = False


Engine = Callable[[Setup], Transport]
