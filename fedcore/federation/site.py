"""One client's side of the protocol, with the client's data, state and privacy account.

A `Site` runs the client's steps, which are functions ``step(data, state, message) -> reply``, under
every engine. In a private run, the `Site` checks whether the values of each upload come from
privacy mechanisms, and keeps the client's privacy account. The ledger has a copy of this account,
or the account itself if ledger and `Site` are in one process.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcore.federation.centring import centred, scaled
from fedcore.federation.execution import Step, name_of
from fedcore.federation.ledger import payload
from fedcore.federation.messages import narrow, opened
from fedcore.federation.state import State
from fedcore.federation.transport import (
    Centre,
    Change,
    Do,
    Read,
    Scale,
    Setup,
)
from fedcore.privacy.bounded_rows import clip_rows, require_rows
from fedcore.privacy.mechanisms import Account, Mechanisms
from fedcore.privacy.noise import stream
from fedcore.problems.clients import Clients, Labelled


class Site:
    """One client's side of the protocol.

    Parameters
    ----------
    setup : Setup
        Clients, random seeds and options of the run.
    position : int
        Position of the client among all clients.

    Attributes
    ----------
    state : State
        Values that the client keeps between rounds.
    message : object
        Last message to the client.
    account : Account or None
        The account of the client's privacy loss; None before `protect`.
    """

    def __init__(self, setup: Setup, position: int) -> None:
        self.position = position
        self.noise, self._labelled = setup.noise, setup.labelled
        self.state = State(_root=setup.root, _id=setup.ids[position])
        self.message: Any = None
        self.account: Account | None = None
        self.go_on_with(setup.clients, position)

    def go_on_with(self, clients: Clients, at: int) -> None:
        """Replace the samples, and drop all values that were computed from the old samples."""
        self._clients, self._at = clients, at
        self._data: Any = None
        self.state.kept = clients.kept_of[at]

    @property
    def data(self) -> Any:
        """The samples that client steps get, read-only, with labels if the run has labels."""
        if self._data is None:
            at = self._at
            data = self._clients.labelled(at) if self._labelled else self._clients[at]
            self._data = read_only_view(data)
        return self._data

    def change(self, change: Change) -> None:
        """Apply a change, such as the subtraction of a mean, to the samples."""
        new = changed(change, self._clients[self._at], self.position)
        if new is not None:
            labels = self._clients.labels
            own = None if labels is None else [labels[self._at]]
            self.go_on_with(Clients([new], labels=own), 0)

    def answer(self, order: Do | Read) -> Any:
        """Run a step or read a state's value; return the result, or None for purpose "none"."""
        if isinstance(order, Read):
            return getattr(self.state, order.name)
        reply = self.do(order)
        return None if order.purpose == "none" else reply

    def do(self, order: Do) -> Any:
        """Run a client step and return its reply."""
        if self.account is None:
            message = order.message[0] if order.message else self.message
            reply = order.step(self.data, self.state, opened(message))
        else:
            reply = self._do_privately(order)
        return narrow(reply) if order.narrow else reply

    def _do_privately(self, order: Do) -> Any:
        before = self.charged()
        message = order.message[0] if order.message else self.message
        reply = order.step(self.data, self.state, opened(message))
        if order.purpose == "upload":
            self.judge(order.step, reply, before)
        return reply

    def protect(self) -> None:
        """Begin the privacy account, and give client steps the mechanisms ``state.privacy``."""
        self.account = Account()
        self.state.privacy = Mechanisms(stream(self.noise, self.state._id), self.account)

    def charged(self) -> int:
        """Return the number of charged privacy events (noisy releases); forget released values.

        A private run calls this method before each step, because every value of an upload must come
        from a mechanism in the same step.
        """
        assert self.account is not None
        self.state.privacy.released.clear()
        return self.account.events.total()

    def judge(self, step: Step, reply: Any, before: int) -> None:
        """Record a step as unprotected if it uploads values that no privacy mechanism returned."""
        assert self.account is not None
        grown = self.account.events.total() > before
        if grown and self.state.privacy.covers(reply):
            return
        if not getattr(step, "post_processing", False) and payload(reply)[0]:
            self.expose(step)

    def expose(self, step: Step) -> None:
        """Record that a step uploads values that no privacy mechanism returned."""
        assert self.account is not None
        self.account.unprotected.add(name_of(step))


def changed(order: Change, samples: np.ndarray, position: int) -> np.ndarray | None:
    """Return a client's samples after a change, or None if the samples stay the same.

    Raises
    ------
    InputError
        If a row has a norm above the bound, and the change does not clip rows.
    """
    if isinstance(order, Centre):
        return centred(samples, order.mean)
    if isinstance(order, Scale):
        return scaled(samples, order.scales)
    if order.clip:
        return clip_rows(samples, order.bound)
    require_rows(samples, position, order.bound)
    return None


def read_only_view(data: Any) -> Any:
    """Return views of dense samples and labels to which steps cannot write; nothing is copied."""
    if isinstance(data, Labelled):
        return Labelled(*map(read_only_view, data))
    if not isinstance(data, np.ndarray):
        return data
    view = data.view()
    view.flags.writeable = False
    return view


def samples_of(data: Any) -> np.ndarray:
    """Return the samples, without labels, from the data that a client step gets."""
    return data.X if isinstance(data, Labelled) else data
