"""One organisation's side of a run over NVIDIA FLARE: it obeys the server as far as its rules say.

A `Member` lives for a job and has one `Site` at a time. It reads its data itself, draws noise from
its own entropy, adds up what its records are charged over all jobs, and saves the results that are
its own. Only replies of uploads leave, and with `Rules.policy`'s consent what is for evaluation.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from fedcore.errors import FedcoreError, InputError, RefusedError
from fedcore.federation.execution import name_of
from fedcore.federation.failures import Failure
from fedcore.federation.flare_messages import (
    Answer,
    Begin,
    Carry,
    Drop,
    Fetch,
    Finish,
    Join,
    Joined,
    Look,
)
from fedcore.federation.ledger import payload
from fedcore.federation.member_records import Left, Spent, save_results
from fedcore.federation.mpi_messages import source_of
from fedcore.federation.site import Policy, Site
from fedcore.federation.transport import Do, Protect, Read
from fedcore.privacy.bounded_rows import CLIP
from fedcore.problems.clients import Clients
from fedcore.steps.naming import find_step
from fedcore.steps.values import decode, encode

LOG = logging.getLogger(__name__)
CLIP_OF_A_JOB = (
    "or clip them to it: deploy the job again, the same command and behind it --out NEW_FOLDER "
    "--set clip=true"
)


class Rules(NamedTuple):
    """What an organisation allows.

    Attributes
    ----------
    policy : Policy
        Its ε is the most of all jobs together.
    max_delta : float or None
        The largest δ at which ε may be stated; needed with a bound of ε.
    tell_samples : bool
        Whether it says how many samples it has.
    """

    policy: Policy
    max_delta: float | None = None
    tell_samples: bool = True


class Data(NamedTuple):
    """An organisation's data.

    Attributes
    ----------
    clients : Clients
        One client.
    name : str
        Of the problem in a problem file; empty for a table.
    columns : list of str
        Names of the features; empty if they have none, as in a problem file.
    open_ended : bool
        Whether further columns hold zeros alone.
    require_unwritten : callable
        Refuses data whose file has changed in place since they were read.
    """

    clients: Clients
    name: str = ""
    columns: list[str] = []  # noqa: RUF012
    open_ended: bool = False
    require_unwritten: Callable[[], None] = lambda: None


Reader = Callable[[list[str] | None], Data]
"""Reads the data, with the features in a given order, or in the file's own."""


class Member:
    """One organisation in one job.

    Parameters
    ----------
    name, job : str
    rules : Rules
    read : Reader
    folder : Path
        Its own, for its account over all jobs and its results.
    version : str
        Of fedcore.
    """

    def __init__(
        self, name: str, job: str, rules: Rules, read: Reader, folder: Path, version: str
    ) -> None:
        self.name, self._job, self._rules, self._read = name, job, rules, read
        self._folder, self._version = folder, version
        self._data: Data | None = None
        self._site: Site | None = None
        self._run = -1
        self._held: dict[int, tuple[Any, bool]] = {}  # by number of `Look`, and whether to fetch
        self._spent, self._left = Spent(folder), Left()
        self._one_by_one = threading.Lock()

    def answer(self, message: bytes) -> bytes:
        """Do what a message says, and return the answer; an error becomes an answer."""
        policy = self._rules.policy
        modules = policy.modules
        allowed = None if modules is None else ("fedcore", *modules)
        with self._one_by_one, np.errstate(over="ignore", invalid="ignore"):
            try:
                return encode(self._obey(decode(message, allowed, find_step(modules))))
            except Exception as error:
                told = _of_a_job(error)
                LOG.error("%s could not obey", self.name, exc_info=told)
                return encode(Answer(failure=self._failure(told)))

    def _failure(self, error: Exception) -> Failure:
        """Describe an error without what its text may say about data that are protected."""
        protects = self._rules.policy.max_epsilon is not None
        if isinstance(error, RefusedError) or (isinstance(error, FedcoreError) and not protects):
            return Failure.of(error)
        name = type(error).__name__
        said = f"it has ended with {name}, and keeps why, which may speak of its data: see its log"
        own = ("fedcore.errors", "RefusedError") if isinstance(error, FedcoreError) else None
        return Failure(0, own or ("builtins", name), said)

    def _obey(self, message: Any) -> Answer:
        if isinstance(message, Join):
            return Answer(self._joined())
        if isinstance(message, Begin):
            self._begin(message)
            return Answer()
        if not isinstance(message, Carry | Finish):
            raise RefusedError(f"no message of the kind {type(message).__name__} is expected here")
        if self._site is None or message.run != self._run:
            raise RefusedError(f"run {message.run} is not the one that has begun")
        if isinstance(message, Finish):
            self._own(None).require_unwritten()
            self._finish(self._site, message)
            return Answer()
        replies = self._carry(self._site, message)
        charges = self._site.charges()
        self._spent.keep(self._site)  # before anything leaves
        return Answer(replies, charges)

    def _joined(self) -> Joined:
        data = self._own(None)
        clients = data.clients
        rows, width = clients.shapes[0]
        return Joined(
            data.name, data.columns, data.open_ended, width,
            rows if self._rules.tell_samples else None, clients.dtypes[0].str, clients.sparse,
            clients.labels is not None, self._version,
        )  # fmt: skip

    def _own(self, columns: list[str] | None) -> Data:
        """Return the data, read again where the features have another order."""
        if self._data is None or (columns and columns != self._data.columns):
            self._data = self._read(columns or None)
        return self._data

    def _begin(self, message: Begin) -> None:
        clients, root = self._own(message.columns).clients, source_of(message.root)
        if not isinstance(root, np.random.SeedSequence):
            raise RefusedError("a run begins with a seed")
        if message.labelled and clients.labels is None:
            raise InputError("this method learns from labels: name their column in the site's file")
        self._site = Site(
            clients, 0, message.position, root=root, client_id=message.client_id, noise=None,
            labelled=message.labelled, policy=self._rules.policy,
        )  # fmt: skip
        self._run, self._held, self._left = message.run, {}, Left()

    def _carry(self, site: Site, message: Carry) -> list[Any]:
        """Return the replies that leave."""
        replies = []
        for order in message.orders:
            if isinstance(order, Look):
                self._look(site, order)
            elif isinstance(order, Fetch):
                value, open_to_server = self._held.get(order.number, (None, False))
                if not open_to_server:
                    raise RefusedError(f"client {site.position} has nothing to show for {order}")
                self._left.add(f"evaluation {order.number}", *payload(value))
                replies.append(value)
            elif isinstance(order, Drop):
                self._held.pop(order.number, None)
            elif isinstance(order, Protect):
                self._protect(site, order)
            else:
                reply = site.obey(order)
                if isinstance(order, Do) and order.purpose == "upload":
                    self._left.add(name_of(order.step), *payload(reply))
                    replies.append(reply)
        return replies

    def _look(self, site: Site, look: Look) -> None:
        """Keep what an order for evaluation shows."""
        order = look.order
        if look.fetch:
            value = site.obey(order)  # refused, unless the policy allows evaluation
        elif isinstance(order, Read):
            value = getattr(site.state, order.name)
        else:
            value = site.obey(order._replace(purpose="none"))
        self._held[look.number] = value, look.fetch

    def _protect(self, site: Site, order: Protect) -> None:
        """Begin a run's account with what earlier runs have charged."""
        rules = self._rules
        if rules.policy.max_epsilon is not None:
            if rules.max_delta is None or order.delta > rules.max_delta:
                raise RefusedError(
                    f"client {site.position} refuses δ = {order.delta:g}: its policy allows at "
                    f"most {rules.max_delta or 0:g}; take a smaller delta"
                )
            self._spent.lock()
        site.obey(order)
        assert site.account is not None
        if rules.policy.max_epsilon is not None:
            before = self._spent.events()
            site.account.events.update(before)
            site.told = dict(Counter(before))

    def close(self) -> None:
        """End a run that the server has not ended; what has left is written all the same."""
        with self._one_by_one:
            if self._site is not None:
                self._finish(self._site, Finish(self._run, {}))
            self._spent.unlock()

    def _finish(self, site: Site, message: Finish) -> None:
        results = {name: self._held[number][0] for name, number in message.results.items()}
        save_results(self._folder / "results" / self._job, message.run, results, self._left)
        self._site = None


def _of_a_job(error: Exception) -> Exception:
    """Let an error name what is typed for a job: its parameters stand in it, and not here."""
    if type(error) is not InputError or CLIP not in str(error):
        return error
    found = InputError(str(error).replace(CLIP, CLIP_OF_A_JOB))
    return found.with_traceback(error.__traceback__)
