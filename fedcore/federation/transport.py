"""Transports carry messages and steps to the clients, and replies back.

A `Federation` has the methods that algorithms call; a `Transport` below it calls the clients' sides
(`fedcore.federation.site`). A transport knows neither ledger nor algorithm. Every engine is a
transport: `fedcore.federation.engines.in_process` calls the sites of all clients, and
`fedcore.federation.engines.mpi` the sites at one rank, where the algorithm also runs.
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
    """With `clip`, scale rows longer than `bound` to this norm; without it, refuse them."""

    bound: float
    clip: bool


class Centre(NamedTuple):
    """Subtract `mean` from every sample."""

    mean: np.ndarray


class Scale(NamedTuple):
    """Divide every feature by its scale."""

    scales: np.ndarray


class Do(NamedTuple):
    """Run a client step.

    Attributes
    ----------
    step : Step
    purpose : {"none", "upload", "look"}
        Whether the reply stays, is uploaded, or is looked at for evaluation, outside the protocol.
    narrow : bool
        Whether the reply crosses in single precision.
    message : tuple
        ``(message,)`` to replace the message that the client holds; empty to keep it.
    """

    step: Step
    purpose: Literal["none", "upload", "look"]
    narrow: bool = False
    message: tuple[()] | tuple[Any] = ()


class Read(NamedTuple):
    """Show ``state.<name>`` for evaluation, outside the protocol."""

    name: str


Change = BoundRows | Centre | Scale  # of the samples


class Total(NamedTuple):
    """A sum of replies that did not reach the server one by one.

    Attributes
    ----------
    value : number or ndarray
    scalars, size : int
        Numbers and bytes of all the replies.
    """

    value: Any
    scalars: int
    size: int


class Transport(Protocol):
    """Calls clients, which it knows by their positions.

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
        """The clients' privacy accounts, from `protect` on; up to date after every answer."""
        ...

    def once(self, job: Callable[[], Result], *, last: bool = False) -> Result:
        """Call `job` once for the whole run, and return its value to all who take part.

        `job` may look at the clients by `ask`. After the `last` job the other participants end.
        """
        ...

    def hold(self, message: Any, to: Sequence[int]) -> None:
        """Let clients keep a message until the next one; it may travel with the next `ask`."""
        ...

    def protect(self) -> None:
        """Begin all clients' privacy accounts; see `fedcore.privacy.mechanisms`."""
        ...

    def change(self, change: Change) -> None:
        """Change the samples of all clients."""
        ...

    def ask(self, order: Do | Read, of: Sequence[int]) -> Sequence[Any]:
        """Return the replies, in the order of the positions `of`; a position may occur twice.

        Replies to a step of purpose "none" may be None.
        """
        ...

    def total(self, order: Do, of: Sequence[int]) -> Total | None:
        """Return the sum of the replies; None if this transport cannot form it: then use `ask`."""
        ...


@dataclass(frozen=True)
class Setup:
    """What an engine needs to begin the clients' sides of a run.

    Attributes
    ----------
    clients : Clients
    root : numpy.random.SeedSequence
        Root of the clients' public random streams.
    ids : sequence of int
        Ids of the clients, which select their random streams.
    labelled : bool
        Whether steps get labels.
    noise : SeedSequence, Weakened or None
        Source of a simulation's privacy noise; None for every client's own entropy.
    apart : bool
        Whether somebody reads the single replies of a sum, as an audit does.
    """

    clients: Clients
    root: np.random.SeedSequence
    ids: Sequence[int]
    labelled: bool = False
    noise: Source | None = None
    apart: bool = False


Engine = Callable[[Setup], Transport]
