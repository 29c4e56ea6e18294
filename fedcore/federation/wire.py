"""All clients behind bytes, in this process: what a network would carry, without the network.

Every order and every answer becomes bytes and is read again; steps cross by name (`fedcore.steps`).
After each exchange a client's state is saved, dropped and restored. A run is equal, bit for bit, to
one in process with plain steps. Tests use it, and other engines its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedcore.federation import saving
from fedcore.federation.site import OPEN, Policy, Site, sites_of
from fedcore.federation.state import State
from fedcore.federation.transport import Answers, Charges, Do, Order, Read, Setup, Total
from fedcore.problems.clients import Clients
from fedcore.steps.naming import find_step, name_step
from fedcore.steps.values import decode, encode


def order_bytes(order: Order) -> bytes:
    """Return an order as bytes.

    Raises
    ------
    RefusedError
        For a step that cannot cross, see `fedcore.steps.naming`.
    """
    return encode(order, name_step)


def obeyed(site: Site, order: bytes) -> bytes:
    """Let a site obey an order, and return reply and charges as bytes.

    Raises
    ------
    RefusedError
        When its policy or its installation does not allow the order.
    """
    modules = site.policy.modules
    allowed = None if modules is None else ("fedcore", *modules)
    reply = site.obey(decode(order, allowed, find_step(modules)))
    return encode((reply, site.charges()))


def answer_of(data: bytes) -> tuple[Any, Charges | None]:
    """Return reply and charges of `obeyed`."""
    return decode(data, ("fedcore",))


class Wire:
    """Transport to clients in this process, all through bytes.

    Parameters
    ----------
    setup : Setup
    policy : Policy
        That of every client.

    Attributes
    ----------
    sites : list of Site
    carried : list of int
        Bytes of orders, counted once a client, and of answers.
    """

    def __init__(self, setup: Setup, policy: Policy = OPEN) -> None:
        self.sites = sites_of(setup, policy=policy)
        self._clients, self.carried = setup.clients, [0, 0]

    @property
    def clients(self) -> Clients:
        """The clients' current samples."""
        given = self._clients
        if all(site.follows(given) for site in self.sites):
            return given
        return Clients([site.samples for site in self.sites], labels=given.labels)

    @property
    def states(self) -> Sequence[State]:
        """The clients' states."""
        return [site.state for site in self.sites]

    @property
    def accounts(self) -> None:
        """None: the ledger's accounts are copies, made of what comes with the answers."""
        return None

    def tell(self, order: Order, to: Sequence[int]) -> None:
        """Carry an order at once; see `Transport`."""
        self._carry(order, to)

    def ask(self, order: Do | Read, of: Sequence[int]) -> Answers:
        """Carry an order and its answers; see `Transport`."""
        answers = [answer_of(data) for data in self._carry(order, of)]
        charges: dict[int, Charges] = {}
        for i, (_, charged) in zip(of, answers, strict=True):
            if charged is not None:
                charges[i] = charged if i not in charges else charges[i].and_then(charged)
        return Answers([reply for reply, _ in answers], charges)

    def total(self, order: Do, of: Sequence[int]) -> Total | None:
        """Return None: the server adds the replies."""
        return None

    def close(self) -> None:
        """Nothing to end."""

    def _carry(self, order: Order, to: Sequence[int]) -> list[bytes]:
        sent, answers = order_bytes(order), []
        for i in to:
            site = self.sites[i]
            answers.append(obeyed(site, sent))
            saving.restore(site, saving.saved(site))
            self.carried[0] += len(sent)
            self.carried[1] += len(answers[-1])
        return answers
