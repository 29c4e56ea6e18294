"""Record of what the server receives from the clients, for privacy audits."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple


class Exchange(NamedTuple):
    """A client's reply, and the last message to the client before this reply."""

    round: int  # number of the upload in the ledger, from 1
    client: int | None  # position of the client; None for the sum over the participants
    received: Any  # the last message sent to the client
    sent: Any  # its reply


class Transcript:
    """Record of all uploads of a run; pass it to `fedcore.run` as ``transcript``.

    Parameters
    ----------
    clients : sequence of int, optional
        Positions of the clients to watch; the default is all of them.
    sums_only : bool, default=False
        Whether the server computes `Federation.sum` and `Federation.mean` by secure aggregation.
        Without secure aggregation the server sees every reply, and the transcript keeps them all.
        With secure aggregation the server sees only the total. The transcript then keeps the total
        as one exchange, whose ``client`` is None. The field ``received`` of this exchange is the
        message that all participants got, or None if their messages differ. Replies to
        `Federation.gather` are always kept one by one.

    Attributes
    ----------
    exchanges : list of Exchange
        The recorded exchanges, in the order of the uploads.

    Notes
    -----
    A transcript changes neither results nor ledger, but the copies take memory. If a client gets
    several messages before its reply, only the last of these messages is kept.

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
        """Keep copies of upload `number`, given as triples of client, last message and reply.

        In the triple of a sum over clients, the client is None. A message to many clients is copied
        once.
        """
        copies: dict[int, Any] = {}
        for client, received, sent in exchanges:
            kept = copy.deepcopy(received, copies), copy.deepcopy(sent, copies)
            self.exchanges.append(Exchange(number, client, *kept))

    def exchanges_of(self, client: int | None) -> list[Exchange]:
        """Return the exchanges of one client, or the exchanges of sums if `client` is None."""
        return [exchange for exchange in self.exchanges if exchange.client == client]
