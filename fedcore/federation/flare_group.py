"""Members of a run over NVIDIA FLARE: how the server speaks to them, and what it knows of them."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Protocol

import numpy as np

from fedcore import errors
from fedcore.errors import FedcoreError, InputError, RefusedError
from fedcore.federation.failures import Failure
from fedcore.federation.flare_messages import Answer, Join, Joined
from fedcore.problems.clients import Clients
from fedcore.steps.naming import name_step
from fedcore.steps.values import decode, encode
from fedcore.words import counted

PLAIN = ("fedcore",)  # packages whose classes an answer may name


class LostError(FedcoreError):
    """A member does not answer any more."""


class Link(Protocol):
    """Carries bytes to members, which it knows by their positions, and their answers back."""

    def call(self, messages: Mapping[int, bytes]) -> Mapping[int, bytes]:
        """Send a message to each of some members at the same time, and wait for all answers.

        Raises
        ------
        LostError
        """
        ...


class Group:
    """All members, as the server speaks to them.

    Parameters
    ----------
    names : sequence of str
        The members in the order of the clients.
    link : Link
    evaluation : bool
        Whether the run asks for what clients show for evaluation.

    Attributes
    ----------
    carried : list of int
        Bytes of orders and of answers, as the link gets and gives them.
    seconds : list of float
        Of each exchange.
    columns : list of list of str
        For each member the order of its features, empty where it is its own.
    transport : Flare or None
        Of the last run.
    """

    def __init__(self, names: Sequence[str], link: Link, *, evaluation: bool = False) -> None:
        self.names, self.evaluation, self._link = list(names), evaluation, link
        self.carried, self.seconds = [0, 0], list[float]()
        self.columns: list[list[str]] = [[] for _ in names]
        self.runs = itertools.count()
        self.transport: Any = None

    def join(self) -> Remote:
        """Ask all members about their data, and return what the server knows of the clients.

        Raises
        ------
        InputError
            When they do not fit together.
        """
        answers = self.exchange({i: Join() for i in range(len(self.names))})
        joined = [answers[i].value for i in range(len(self.names))]
        common = _common(joined)
        self.columns = [[] if one.columns == common else common for one in joined]
        width = len(common) or joined[0].n_features
        for name, one in zip(self.names, joined, strict=True):
            self._require_alike(name, one, joined[0], width)
        return Remote(joined, width)

    def _require_alike(self, name: str, one: Joined, first: Joined, width: int) -> None:
        for what, own, other in (
            ("fedcore", one.version, first.version),
            ("labels", one.labelled, first.labelled),
            ("sparse matrices", one.sparse, first.sparse),
            ("names of columns", bool(one.columns), bool(first.columns)),
        ):
            if own != other:
                raise InputError(
                    f"{name} and {self.names[0]} differ in {what}: {own} and {other}; all members "
                    "need the same"
                )
        if not one.columns and one.n_features != width:
            raise InputError(
                f"{name} has {counted(one.n_features, 'feature')}, {self.names[0]} has {width}: "
                "give all members the same columns"
            )

    def exchange(self, messages: Mapping[int, Any]) -> dict[int, Answer]:
        """Tell each of some members a message and return their answers.

        Raises
        ------
        FedcoreError
            The first error in the order of the clients, with the member's name.
        """
        if not messages:
            return {}
        same: dict[int, bytes] = {}  # a message to several is written once
        for message in messages.values():
            if id(message) not in same:
                same[id(message)] = encode(message, name_step)
        sent = {i: same[id(message)] for i, message in messages.items()}
        began = time.perf_counter()
        got = self._link.call(sent)
        self.seconds.append(time.perf_counter() - began)
        self.carried[0] += sum(map(len, sent.values()))
        self.carried[1] += sum(map(len, got.values()))
        answers = {i: decode(got[i], PLAIN) for i in sorted(sent)}
        for i, answer in answers.items():
            if answer.failure is not None:
                raise _error(self.names[i], answer.failure)
        return answers

    def traffic(self) -> dict[str, Any]:
        """Return how many exchanges there were, their bytes and their median seconds."""
        down, up = self.carried
        middle = statistics.median(self.seconds) if self.seconds else 0.0
        return {
            "exchanges": len(self.seconds), "bytes_down": down, "bytes_up": up,
            "median_seconds": round(middle, 6),
        }  # fmt: skip


class Remote(Clients):
    """The clients' data as the server knows them: widths and types, and rows if members say them.

    Where a member does not say how many samples it has, as many as features stand there: ranks are
    then checked against the features alone.

    Attributes
    ----------
    told : bool
        Whether all members have said how many samples they have.
    name : str
        Of the problem, if all members have a client of a problem file of one name; else empty.
    """

    def __init__(self, joined: Sequence[Joined], width: int) -> None:
        rows = [width if one.n_samples is None else one.n_samples for one in joined]
        shapes, dtypes = [(n, width) for n in rows], [np.dtype(one.dtype) for one in joined]
        super().__init__(_refuse, shapes, dtypes)
        self.sparse, self.told = joined[0].sparse, all(one.n_samples is not None for one in joined)
        self.name = joined[0].name if len({one.name for one in joined}) == 1 else ""
        self.labels = [_Unseen()] * len(rows) if joined[0].labelled else None
        # Nobody sees all data: what overflows is found where it is recorded.
        self.largest = 1.0

    @property
    def zero(self) -> bool:
        """Whether all entries are zero, which the server does not know."""
        return False


class _Unseen:
    """Labels of a client, which the server cannot read."""

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _refuse()


def _refuse() -> NoReturn:
    raise RefusedError(
        "the clients' data stay with their owners, and the server asked for them: take no measure "
        "that reads them (no --metric), and no method that needs them in one place"
    )


def _error(name: str, failure: Failure) -> Exception:
    """Return what a member could not do; it chooses the class among fedcore's own errors only."""
    if failure.kind[0] == errors.__name__:
        error = failure.error(f"at {name}")
        if isinstance(error, FedcoreError):
            return type(error)(f"{name}: {error}")
    return RuntimeError(f"{name}: {failure.kind[1]}: {failure.said}")


def _common(joined: Sequence[Joined]) -> list[str]:
    """Return the columns in the order of the first member; the longest, where they may go on."""
    widest = max(joined, key=lambda one: len(one.columns)).columns
    first = joined[0]
    return widest if first.open_ended and widest[: len(first.columns)] == first.columns else (
        first.columns
    )  # fmt: skip
