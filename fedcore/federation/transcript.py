"""What the server saw of the clients: the raw material of a privacy audit."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple


class Exchange(NamedTuple):
    """One reply, and what it was a reply to."""

    round: int  # number of the upload in the ledger, from 1
    client: int | None  # position of the client; None for the sum over the participants
    received: Any  # the last message that the client had been sent
    sent: Any  # its reply


class Transcript:
    """Keeps copies of what crosses; pass it as ``transcript=`` to a run.

    Parameters
    ----------
    clients : sequence of int, optional
        Positions of the clients to watch; the default is all of them.
    sums_only : bool, default=False
        Whether the server computes `Federation.sum` and `Federation.mean` by secure aggregation.
        In the protocol without it, the server sees every reply, and so does this transcript. With
        it the server sees the total alone, and that is what is kept, as the exchange of client
        None (its ``received`` is None if the participants had been sent different messages). What
        an algorithm asks for by `Federation.gather` is seen reply by reply in either case.

    Attributes
    ----------
    exchanges : list of Exchange
        In the order in which they happened.

    Notes
    -----
    Watching changes neither results nor ledger, and costs the memory of the copies. A client that
    is sent several messages before it replies shows the last of them only.

    Examples
    --------
    >>> import numpy as np, fedcore
    >>> from fedcore.federation.transcript import Transcript
    >>> rng = np.random.default_rng(0)
    >>> clients = [rng.standard_normal((30, 8)) for _ in range(4)]
    >>> seen = Transcript(clients=[1])
    >>> result = fedcore.run("power_iteration", clients, 2, power=3, transcript=seen)
    >>> [exchange.round for exchange in seen.exchanges]
    [1, 2, 3, 4]
    """

    def __init__(self, clients: Sequence[int] | None = None, *, sums_only: bool = False) -> None:
        self.clients = clients
        self.sums_only = sums_only
        self.exchanges: list[Exchange] = []

    def on_upload(self, number: int, exchanges: Sequence[tuple[int | None, Any, Any]]) -> None:
        """Keep copies of one upload: (client or None for the total, its last message, its reply).

        A message that was sent to many clients is copied once.
        """
        copies: dict[int, Any] = {}
        for client, received, sent in exchanges:
            kept = copy.deepcopy(received, copies), copy.deepcopy(sent, copies)
            self.exchanges.append(Exchange(number, client, *kept))

    def of(self, client: int | None) -> list[Exchange]:
        """Return the exchanges of one client, or with None those of the sums."""
        return [exchange for exchange in self.exchanges if exchange.client == client]
