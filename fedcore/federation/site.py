"""The client's side: data, state, noise and accountant of one client, under every engine.

A site obeys orders (`fedcore.federation.transport`). Its `Policy` says what it refuses: the ε that
it spends at most, the modules whose steps it runs, and looks from outside the protocol. It judges
an upload before it leaves, and keeps its own account; the ledger's is a copy, or the same one where
both are in one process.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fedcore.errors import RefusedError
from fedcore.federation.centring import centred
from fedcore.federation.crossing import narrow, opened
from fedcore.federation.execution import Step, module_of, name_of
from fedcore.federation.ledger import payload
from fedcore.federation.state import State
from fedcore.federation.transport import (
    Bound,
    Centre,
    Charges,
    Do,
    Hold,
    Order,
    Protect,
    Read,
    Setup,
)
from fedcore.privacy import accounting
from fedcore.privacy.bounded_rows import clip_rows, require_rows
from fedcore.privacy.mechanisms import Account, Mechanisms
from fedcore.privacy.noise import Source, stream
from fedcore.problems.clients import Clients, Labelled


class Policy(NamedTuple):
    """What a client allows.

    Attributes
    ----------
    max_epsilon : float, optional
        The most ε that its records may be charged in this run. With it, uploads must come from
        mechanisms. Without it there is no bound.
    modules : tuple of str, optional
        Packages or modules whose steps it runs, such as ``("fedcore",)``; any without it.
    evaluation : bool, default=True
        Whether it answers what is asked outside the protocol, for evaluation.
    """

    max_epsilon: float | None = None
    modules: tuple[str, ...] | None = None
    evaluation: bool = True


OPEN = Policy()


class Site:
    """One client.

    Parameters
    ----------
    clients : Clients
    at : int
        Index of its samples in `clients`.
    position : int
        Its position among all clients of the run.
    root : numpy.random.SeedSequence
    client_id : int
        With `root`, selects its random stream.
    noise : SeedSequence, Weakened or None
    labelled : bool
    policy : Policy

    Attributes
    ----------
    state : State
    message : object
        The last one.
    account : Account or None
        What its records were charged; None without `Protect`.
    delta : float
        δ at which the account's ε is stated.
    told : dict of Event to int
        The part of the account that the server knows.
    unprotected : list of str
        Steps whose uploads had no noise and of which the server does not know yet.
    """

    def __init__(
        self,
        clients: Clients,
        at: int,
        position: int,
        *,
        root: np.random.SeedSequence,
        client_id: int,
        noise: Source | None,
        labelled: bool,
        policy: Policy = OPEN,
    ) -> None:
        self.position, self.policy = position, policy
        self.noise, self._labelled = noise, labelled
        self.state = State(_root=root, _id=client_id)
        self.message: Any = None
        self.account: Account | None = None
        self.told: dict[Any, int] = {}
        self.unprotected: list[str] = []
        self.delta = 0.0
        self.go_on_with(clients, at)

    def go_on_with(self, clients: Clients, at: int) -> None:
        """Replace the samples, and drop what was derived from the old ones."""
        self._clients, self._at = clients, at
        self._data: Any = None
        self.state.kept = clients.kept_of[at]

    @property
    def data(self) -> Any:
        """What steps get: the samples, with labels where the run has them."""
        if self._data is None:
            at = self._at
            self._data = self._clients.labelled(at) if self._labelled else self._clients[at]
        return self._data

    @property
    def samples(self) -> np.ndarray:
        """Its current samples."""
        return self._clients[self._at]

    def follows(self, clients: Clients) -> bool:
        """Return whether its samples are those of `clients`."""
        return self._clients is clients

    def obey(self, order: Order) -> Any:
        """Do what an order says and return the reply, None if it has none.

        Raises
        ------
        RefusedError
            When the policy forbids it.
        """
        kind = type(order)
        if kind is Do:
            return self.do(order)  # type: ignore[arg-type]
        if isinstance(order, Hold):
            self.message = order.message
        elif isinstance(order, Read):
            self._require_evaluation()
            return getattr(self.state, order.name)
        elif isinstance(order, Protect):
            self.protect(order.delta)
        elif isinstance(order, Bound | Centre):
            new = changed(order, self.samples, self.position)
            if new is not None:
                labels = self._clients.labels
                own = None if labels is None else [labels[self._at]]
                self.go_on_with(Clients([new], labels=own), 0)
        return None

    def do(self, order: Do) -> Any:
        """Run a step and return its reply; see `obey`."""
        if self.policy is not OPEN:
            self._require_allowed(order)
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
        if self.policy.max_epsilon is not None:
            self._require_budget(self.policy.max_epsilon)
        return reply

    def protect(self, delta: float) -> None:
        """Begin the account, and give steps ``state.privacy``."""
        self.account, self.delta = Account(), delta
        self.state.privacy = Mechanisms(stream(self.noise, self.state._id), self.account)

    def charged(self) -> int:
        """Forget earlier releases and return the number of events; before a step that may upload.

        A reply may consist of what mechanisms returned in the same call only.
        """
        assert self.account is not None
        self.state.privacy.released.clear()
        return self.account.events.total()

    def judge(self, step: Step, reply: Any, before: int) -> None:
        """Note an upload that no mechanism returned; see `fedcore.privacy.mechanisms`."""
        assert self.account is not None
        grown = self.account.events.total() > before
        if grown and self.state.privacy.covers(reply):
            return
        if not getattr(step, "post_processing", False) and payload(reply)[0]:
            self.expose(step)

    def expose(self, step: Step) -> None:
        """Note that a step uploads something that no mechanism returned."""
        assert self.account is not None
        if self.policy.max_epsilon is not None:
            raise RefusedError(
                f"client {self.position} does not upload what the step {name_of(step)} returned "
                "without noise: its policy bounds ε; choose a method with a mechanism, or ask its "
                "owner"
            )
        self.account.exposed = True
        self.unprotected.append(name_of(step))

    def charges(self) -> Charges | None:
        """Return what was charged since the last call; None if nothing was."""
        if self.account is None:
            return None
        told = self.told
        events = {e: n - told.get(e, 0) for e, n in self.account.events.items()}
        events = {e: n for e, n in events.items() if n}
        if not events and not self.unprotected:
            return None
        self.told = dict(self.account.events)
        found, self.unprotected = Charges(events, tuple(self.unprotected)), []
        return found

    def _require_allowed(self, order: Do) -> None:
        if order.purpose == "look":
            self._require_evaluation()
        if order.purpose == "upload" and self.policy.max_epsilon is not None:
            if self.account is None:
                raise RefusedError(
                    f"client {self.position} uploads nothing in a run without privacy: its policy "
                    f"allows ε up to {self.policy.max_epsilon:g}; choose a private method"
                )
        require_module(module_of(order.step), self.policy, self.position)

    def _require_evaluation(self) -> None:
        if not self.policy.evaluation:
            raise RefusedError(
                f"client {self.position} shows nothing for evaluation, as its policy says: run "
                "without measures of what clients keep (measure=[])"
            )

    def _require_budget(self, most: float) -> None:
        assert self.account is not None
        spent = accounting.epsilon(dict(self.account.events), self.delta)
        if spent > most:
            raise RefusedError(
                f"client {self.position} refuses to go on: its records would be charged ε = "
                f"{spent:.4g} at δ = {self.delta:g}, and its policy allows {most:g}; take more "
                "noise or fewer rounds"
            )


def require_module(module: str, policy: Policy, position: int) -> None:
    """Refuse a step of a module that the policy does not name.

    Raises
    ------
    RefusedError
    """
    allowed = policy.modules
    if allowed is not None and not any(f"{module}.".startswith(f"{name}.") for name in allowed):
        raise RefusedError(
            f"client {position} does not run a step of the module {module}: its policy allows "
            f"{', '.join(allowed)}; ask its owner to install and to allow {module}"
        )


def changed(order: Bound | Centre, samples: np.ndarray, position: int) -> np.ndarray | None:
    """Return a client's samples after an order that changes them; None if they stay.

    Raises
    ------
    InputError
        For a longer row that may not be clipped.
    """
    if isinstance(order, Centre):
        return centred(samples, order.mean)
    if order.clip:
        return clip_rows(samples, order.bound)
    require_rows(samples, position, order.bound)
    return None


def samples_of(data: Any) -> np.ndarray:
    """Return the samples of what a step gets."""
    return data.X if isinstance(data, Labelled) else data


def sites_of(
    setup: Setup, positions: Sequence[int] | None = None, policy: Policy = OPEN
) -> list[Site]:
    """Return the sides of the clients at `positions`, or of all."""
    everyone = range(len(setup.clients)) if positions is None else positions
    return [
        Site(
            setup.clients, i, i, root=setup.root, client_id=setup.ids[i], noise=setup.noise,
            labelled=setup.labelled, policy=policy,
        )
        for i in everyone
    ]  # fmt: skip
