"""Ledger of a run: counts of rounds, scalars and bytes, and the privacy accounts.

The federation writes the ledger; algorithms do not. A *round* is one upload by the participating
clients, together with the broadcast before it. A broadcast that no upload follows, for example of
the final result, costs bytes but does not count as a round. Totals are sums over all clients.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcore.privacy.events import NEIGHBOURS
from fedcore.privacy.mechanisms import Privacy
from fedcore.privacy.noise import SIMULATED
from fedcore.rowspace import Block
from fedcore.words import counted


@dataclass(frozen=True)
class Cost:
    """Communication of a whole run, summed over all clients.

    Attributes
    ----------
    rounds : int
        Number of uploads in which at least one client took part.
    scalars_up, scalars_down : int
        Numbers sent from the clients to the server, and from the server to the clients.
    """

    rounds: int
    scalars_up: int
    scalars_down: int


@dataclass(frozen=True)
class Shape:
    """Size of a federation, from which an algorithm computes its communication cost.

    Attributes
    ----------
    n_clients, n_samples, n_features : int
        Number N of clients, number n of all clients' samples, and number d of features.
    """

    n_clients: int
    n_samples: int
    n_features: int


@dataclass
class Ledger:
    """Running totals of a federation's communication.

    Attributes
    ----------
    rounds : int
        Number of uploads in which at least one client took part.
    scalars_up, scalars_down : int
        Numbers sent to and from the server, summed over clients.
    bytes_up, bytes_down : int
        Bytes of the numbers, in the precision in which they were sent.
    privacy : Privacy or None
        Privacy accounts of a private run (see `Federation.protect`), or None for other runs.
    """

    rounds: int = 0
    scalars_up: int = 0
    scalars_down: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    privacy: Privacy | None = None

    def upload(self, replies: Sequence[Any]) -> None:
        """Charge one round in which each client sends one of `replies` to the server.

        If `replies` is empty, no round is counted. If `replies` is an array, each row is the reply
        of one client.
        """
        self.rounds += len(replies) > 0
        for reply in [replies] if isinstance(replies, np.ndarray) else replies:
            scalars, size = payload(reply)
            self.scalars_up += scalars
            self.bytes_up += size

    def upload_total(self, scalars: int, size: int) -> None:
        """Charge one round, given the numbers of scalars and bytes in all replies together."""
        self.rounds += 1
        self.scalars_up += scalars
        self.bytes_up += size

    def download(self, message: Any, n_clients: int) -> None:
        """Charge a message that the server sends to `n_clients` clients."""
        scalars, size = payload(message)
        self.scalars_down += n_clients * scalars
        self.bytes_down += n_clients * size

    def snapshot(self) -> dict[str, float]:
        """Return the totals as a dictionary; a private run adds the key ``epsilon``."""
        totals: dict[str, float] = {
            "round": self.rounds,
            "scalars_up": self.scalars_up,
            "scalars_down": self.scalars_down,
            "bytes_up": self.bytes_up,
            "bytes_down": self.bytes_down,
        }
        if self.privacy is not None:
            totals["epsilon"] = self.privacy.epsilon()
        return totals

    def __str__(self) -> str:
        """Return the totals in words, with the privacy guarantee in a private run."""
        traffic = (
            f"{counted(self.rounds, 'round')}, {self.bytes_up:,} bytes up, {self.bytes_down:,} down"
        )
        return traffic if self.privacy is None else f"{traffic}\n{guarantee(self.privacy)}"

    def __add__(self, other: Ledger) -> Ledger:
        """Return one ledger for two runs on the same data together.

        Traffic counts are added, and the privacy losses of each client are composed. If only one
        run is private and the other has uploaded something, ε becomes infinite. See
        docs/privacy.md.

        Raises
        ------
        InputError
            If private runs differ in the number of clients, the neighbouring relation or δ.
        """
        if not isinstance(other, Ledger):
            return NotImplemented
        one, two = self.privacy, other.privacy
        total = Ledger(
            self.rounds + other.rounds,
            self.scalars_up + other.scalars_up,
            self.scalars_down + other.scalars_down,
            self.bytes_up + other.bytes_up,
            self.bytes_down + other.bytes_down,
        )
        if one is not None and two is not None:
            total.privacy = one + two
        elif one is not None or two is not None:
            private, bare = (one, other) if one is not None else (two, self)
            assert private is not None
            total.privacy = private + Privacy(
                len(private.accounts), private.delta, private.neighbours
            )
            if bare.scalars_up:
                for account in total.privacy.accounts:
                    account.unprotected.add("a run without privacy")
        return total

    def cost(self) -> Cost:
        """Return the rounds and scalars, to compare them with an algorithm's predicted cost."""
        return Cost(self.rounds, self.scalars_up, self.scalars_down)


def payload(message: Any) -> tuple[int, int]:
    """Count the scalars and bytes of a message.

    Parameters
    ----------
    message : None, number, ndarray, or a sequence or mapping of these
        A Python number counts as one scalar of 8 bytes, or of 16 bytes if it is complex.

    Returns
    -------
    scalars, size : int
        Number of scalars, and number of bytes.

    Raises
    ------
    TypeError
        For a message of any other type.
    """
    if message is None:
        return 0, 0
    if isinstance(message, np.ndarray | np.generic | Block) and message.dtype.kind in "biufc":
        return int(message.size), int(message.nbytes)
    if isinstance(message, int | float | complex):
        return 1, 16 if isinstance(message, complex) else 8
    if isinstance(message, Mapping):
        message = list(message.values())
    if isinstance(message, list | tuple):
        parts = [payload(part) for part in message]
        return sum(part[0] for part in parts), sum(part[1] for part in parts)
    kind = f" of {message.dtype}" if isinstance(message, np.ndarray) else ""
    raise TypeError(
        f"a message of type {type(message).__name__}{kind} cannot be sent or counted: send "
        "numbers, or arrays, lists or mappings of numbers"
    )


def guarantee(privacy: Privacy) -> str:
    """Return the privacy guarantee in words, for data owners who do not trust the server."""
    epsilon, change = privacy.epsilon(), NEIGHBOURS[privacy.neighbours]
    if math.isinf(epsilon):
        return f"epsilon is infinite at delta = {privacy.delta:g}: nothing is guaranteed"
    said = (
        f"epsilon = {epsilon:.4g} at delta = {privacy.delta:g}: if {change}, no set of messages to "
        f"the server becomes more than e^{epsilon:.4g} = {math.exp(min(epsilon, 700)):.4g} times "
        f"as likely, but for a probability of {privacy.delta:g}"
    )
    return f"{said} ({SIMULATED})" if privacy.simulated else said
