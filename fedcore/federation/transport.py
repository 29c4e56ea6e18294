"""Orders from the server to the clients, and what carries them.

A `Federation` has verbs; a `Transport` below it carries orders to the clients' sides
(`fedcore.federation.site`) and answers back. It knows neither ledger nor algorithm. Every engine is
one: `fedcore.federation.engines.in_process` calls the sites of all clients, and
`fedcore.federation.engines.mpi` those at one rank, where the algorithm runs, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np

from fedcore.federation.execution import Step
from fedcore.privacy.events import Event
from fedcore.privacy.mechanisms import Account
from fedcore.privacy.noise import Source
from fedcore.problems.clients import Clients

Result = TypeVar("Result")


class Hold(NamedTuple):
    """Keep this message until the next one."""

    message: Any


class Protect(NamedTuple):
    """Begin a privacy account; see `fedcore.privacy.mechanisms`."""


class BoundRows(NamedTuple):
    """Scale rows longer than `bound` to this norm, or refuse them without `clip`."""

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
        ``(message,)`` in the place of the one that the client holds; empty for that one.
    """

    step: Step
    purpose: Literal["none", "upload", "look"]
    narrow: bool = False
    message: tuple[()] | tuple[Any] = ()


class Read(NamedTuple):
    """Show ``state.<name>`` for evaluation, outside the protocol."""

    name: str


Change = BoundRows | Centre | Scale  # of the samples
Order = Hold | Protect | Change | Do | Read


class Charges(NamedTuple):
    """What one client's records were charged since its last answer.

    Attributes
    ----------
    events : mapping of Event to int
    unprotected : tuple of str
        Steps that have uploaded something that no mechanism returned.
    """

    events: Mapping[Event, int]
    unprotected: tuple[str, ...]


class Answers(NamedTuple):
    """Replies in the order in which clients were asked; charges by client, in a private run."""

    replies: Sequence[Any]
    charges: Mapping[int, Charges] = {}


class Total(NamedTuple):
    """A sum of replies that did not come to the server one by one.

    Attributes
    ----------
    value : number or ndarray
    scalars, size : int
        Numbers and bytes of all the replies.
    charges : mapping of int to Charges
    """

    value: Any
    scalars: int
    size: int
    charges: Mapping[int, Charges] = {}


class Transport(Protocol):
    """Carries orders to clients, which it knows by their positions, and answers back."""

    @property
    def clients(self) -> Clients:
        """The clients' current samples, for evaluation outside the protocol."""
        ...

    @property
    def states(self) -> Sequence[Any]:
        """The clients' states, for checkpoints."""
        ...

    @property
    def accounts(self) -> list[Account] | None:
        """The sites' own privacy accounts, if they are in this process; else charges tell."""
        ...

    @property
    def root(self) -> np.random.SeedSequence:
        """Of the run's public random streams."""
        ...

    def once(self, job: Callable[[], Result], *, last: bool = False) -> Result:
        """Return what `job` gives, which is called once for the run, whoever takes part in it.

        It may look at the clients, by `ask`. After the `last` job the others end.
        """
        ...

    def tell(self, order: Order, to: Sequence[int]) -> None:
        """Carry an order that has no answer; it may wait for the next `ask`."""
        ...

    def ask(self, order: Do | Read, of: Sequence[int]) -> Answers:
        """Carry an order and return the answers; a position may occur twice.

        Replies to a step of purpose "none" may be left out.
        """
        ...

    def total(self, order: Do, of: Sequence[int]) -> Total | None:
        """Return the sum of the replies if this transport can form it; else None, and `ask`."""
        ...

    def close(self) -> None:
        """End the clients' sides."""
        ...


@dataclass(frozen=True)
class Setup:
    """What an engine needs to begin the clients' sides of a run.

    Attributes
    ----------
    clients : Clients
    root : numpy.random.SeedSequence
        Of the clients' public random streams.
    ids : sequence of int
        Select the clients' streams.
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
