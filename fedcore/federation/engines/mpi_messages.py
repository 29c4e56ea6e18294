"""What rank 0 of an MPI program tells all ranks, and what each answers; they cross as bytes.

An error of one process is told to another one, which raises it again.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import numpy as np

from fedcore.client_steps.values import installed
from fedcore.errors import FedcoreError, RefusedError
from fedcore.federation.transport import Charges, Order
from fedcore.privacy.noise import Source, Weakened

How = Literal["tell", "ask", "chain", "any"]


class Seed(NamedTuple):
    """A `numpy.random.SeedSequence` as plain numbers."""

    entropy: Any
    spawn_key: tuple[int, ...]

    @classmethod
    def of(cls, source: Any) -> Any:
        """Return the numbers of a seed, or of a source of noise."""
        if source is None:
            return None
        if isinstance(source, Weakened):
            return Weakened(cls.of(source.source), source.factor)
        entropy = source.entropy
        plain = entropy if isinstance(entropy, int) else [int(word) for word in entropy]
        return cls(plain, tuple(int(word) for word in source.spawn_key))


def source_of(numbers: Any) -> Source | None:
    """Return what `Seed.of` has described."""
    if numbers is None:
        return None
    if isinstance(numbers, Weakened):
        return Weakened(source_of(numbers.source), numbers.factor)  # type: ignore[arg-type]
    return np.random.SeedSequence(numbers.entropy, spawn_key=numbers.spawn_key)


class Data(NamedTuple):
    """The clients of a run.

    Attributes
    ----------
    key : int
    edges : list of int
        The clients of rank r are those from ``edges[r]`` to before ``edges[r + 1]``.
    file : tuple of str and int, or None
        Problem file that all ranks can read, and the draw; without it rank 0 sends the data.
    """

    key: int
    edges: list[int]
    file: tuple[str, int] | None


class Begin(NamedTuple):
    """Begin the clients' sides of a run; the attributes are those of `Setup`."""

    run: int
    data: Data
    root: Seed
    ids: list[int]
    noise: Any
    labelled: bool


class Largest(NamedTuple):
    """Find the largest absolute value of an entry."""

    data: Data


class Carry(NamedTuple):
    """Obey orders; the answer is that to the last one.

    Attributes
    ----------
    run : int
    orders : list of (Order, positions)
        The clients to obey each, by their positions.
    how : {"tell", "ask", "chain", "any"}
        Answer nothing, the replies, or their sum.
    """

    run: int
    orders: list[tuple[Order, list[int]]]
    how: How


class Reduce(NamedTuple):
    """Add the ranks' own sums of the last message, in any order."""

    run: int
    shape: tuple[int, ...]
    dtype: str


class Forget(NamedTuple):
    """Drop runs and data that nobody asks for any more."""

    runs: list[int]
    data: list[int]


class Used(NamedTuple):
    """Say what a rank has used: CPU seconds, and MiB of memory at most."""


class End(NamedTuple):
    """The program ends."""


class Answer(NamedTuple):
    """What a rank answers.

    Attributes
    ----------
    value : object
        Replies in the order of the positions, or a sum; of a sum in any order the first client,
        the shape and the type of the own part.
    charges : mapping of int to Charges
        By position.
    scalars, size : int
        Numbers and bytes of its clients' replies.
    failure : Failure or None
    """

    value: Any = None
    charges: Mapping[int, Charges] = {}
    scalars: int = 0
    size: int = 0
    failure: Failure | None = None


class Failure(NamedTuple):
    """What has failed elsewhere.

    Attributes
    ----------
    at : int
        How many calls came before in the order in which one process would have made them.
    kind : tuple of str
        Module and name of the error's class.
    said : str
    trace : str
        Where it was raised; empty for an error that a user can cause.
    """

    at: int
    kind: tuple[str, str]
    said: str
    trace: str = ""

    @classmethod
    def of(cls, error: Exception, at: int = 0) -> Failure:
        """Describe an error."""
        kind = type(error).__module__, type(error).__qualname__
        if isinstance(error, FedcoreError):
            return cls(at, kind, str(error))
        said = str(error.args[0]) if len(error.args) == 1 else str(error)
        return cls(at, kind, said, "".join(traceback.format_exception(error)))

    def error(self, where: str) -> Exception:
        """Return an error of the same class, or a RuntimeError if there is none here."""
        try:
            kind = installed(*self.kind)
            made = kind(self.said) if issubclass(kind, Exception) else None
        except (RefusedError, TypeError):
            made = None
        found = made or RuntimeError(f"{self.kind[1]}: {self.said}")
        if self.trace:
            found.add_note(f"Raised {where}:\n{self.trace}")
        return found
