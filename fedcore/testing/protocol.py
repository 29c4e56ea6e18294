"""Check that messages have the stated costs, and that all exchange is by messages."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools
from typing import Any

import numpy as np

from fedcore.errors import InputError, ReplyError
from fedcore.federation.engine import everywhere
from fedcore.federation.engines.in_process import InProcess
from fedcore.federation.ledger import Cost
from fedcore.problems.clients import Clients
from fedcore.stop_rules import StopRule
from fedcore.testing.asserting import (
    ROUNDING,
    check,
    noted,
    only_subspace,
    options_of,
    require,
    require_close,
)
from fedcore.testing.captures import steps_seen, watched
from fedcore.testing.samples import RANK, short_clients
from fedcore.testing.subject import FinishedRun, Subject, shape_of
from fedcore.words import counted


@check
def ends_when_told(subject: Subject) -> None:
    """After the recorder ends the run, the algorithm sends nothing and changes nothing."""
    for setting in subject.case.settings:
        whole = subject.run(iterates="all", **setting)
        for last in (0, 1, 3):
            with noted(setting, stopped_at=last):
                cut = subject.run(iterates="all", stop=_reached(last), **setting)
                _compare_cut(subject, whole, cut, last)


def _reached(last: int) -> StopRule:
    return lambda row: row["iteration"] >= last


def _compare_cut(subject: Subject, whole: FinishedRun, cut: FinishedRun, last: int) -> None:
    reached = np.append(whole.columns["iteration"], last) >= last
    records = min(int(np.argmax(reached)) + 1, len(whole.columns["iteration"]))
    for name, values in cut.columns.items():
        require(
            np.array_equal(values, whole.columns[name][:records]),
            f"{name} has {counted(len(values), 'record')}, not the {records} until the end, or "
            "other values: use `for k in record.rounds(…)`",
        )
    ledger = {name: cut.columns[name][-1] for name in cut.ledger.snapshot()}
    require(cut.ledger.snapshot() == ledger, "messages were sent after the last record")
    if subject.subspace:
        require(
            np.array_equal(cut.shared, whole.recorder.snapshots.kept[records - 1].shared),
            "what it returns is not its last recorded iterate",
        )
    if "U" in cut.output and "objective" in cut.columns:
        rest = np.vstack(subject.clients[:]) - np.vstack(cut.output["U"]) @ cut.shared.T
        loss, recorded = 0.5 * np.linalg.norm(rest) ** 2, cut.columns["objective"][-1]
        require_close(loss, recorded, ROUNDING, "½‖S − U Vᵀ‖² of what it returns, and the last row")


@check
def charges_what_it_says(subject: Subject) -> None:
    """The traffic is what `communication` states, at eight or four bytes per number."""
    clients = subject.clients
    for options in options_of(subject):
        with noted(options):
            found = subject.run(clients, measure=[], **options)
            cost = _require_cost(subject, found, clients)
            require(
                (found.ledger.privacy is not None) == subject.algorithm.private(found.settings),
                "epsilon and protect() go together",
            )
            if not subject.subspace:
                continue
            _require_width(found.ledger, 8)
            halves = [c.astype(np.float32) for c in clients]
            single = subject.run(halves, measure=[], **options)
            require(single.ledger.cost() == cost, "single precision changes what is sent")
            _require_width(single.ledger, 4)


@check
def charges_short_clients(subject: Subject) -> None:
    """A run with clients of fewer rows than components has the stated cost, or is refused."""
    only_subspace(subject)
    for rows, options in itertools.product(short_clients(), options_of(subject)):
        with noted(options, clients=len(rows)):
            clients = subject.clients_of(rows)
            try:
                found = subject.run(clients, measure=[], **options)
            except ReplyError:
                raise
            except InputError:
                continue
            _require_cost(subject, found, clients)


def _require_cost(subject: Subject, found: FinishedRun, clients: Clients) -> Cost:
    cost = subject.algorithm.communication(found.settings, shape_of(clients))
    told = found.ledger.cost()
    require(told == cost, f"the ledger has {told}, communication() says {cost}")
    return cost


def _require_width(ledger: Any, width: int) -> None:
    for way in ("up", "down"):
        scalars, size = getattr(ledger, f"scalars_{way}"), getattr(ledger, f"bytes_{way}")
        require(
            size == width * scalars,
            f"{scalars} numbers {way} took {size} bytes, not {width} each: keep the data's dtype",
        )


@check
def is_evaluated_for_free(subject: Subject) -> None:
    """The computation of metrics changes neither the counted traffic nor the result."""
    silent, measured = subject.run(measure=[]), subject.run(iterates="all")
    require(silent.ledger == measured.ledger, "metrics change the ledger")
    require(silent.arrays == measured.arrays, "metrics change what it returns")


@check
def shares_no_message(subject: Subject) -> None:
    """Results stay the same if every step gets a copied message and returns a copied reply."""

    def apart(step: Any) -> Any:
        @functools.wraps(step)
        def copied(data: Any, state: Any, message: Any) -> Any:
            return copy.deepcopy(step(data, state, copy.deepcopy(message)))

        return copied

    with everywhere(functools.partial(InProcess, plain=True)):
        plain = subject.run(iterates="all")
        with steps_seen(apart):
            copied = subject.run(iterates="all")
    # Not ε: a private step is known by its identity, and these steps are others.
    same = all(
        np.array_equal(values, copied.columns[name], equal_nan=values.dtype.kind == "f")
        for name, values in plain.columns.items()
        if name != "epsilon"
    )
    same = same and plain.arrays == copied.arrays
    require(same, "a step keeps or changes a message that others hold, too")


@check
def reads_messages_only(subject: Subject) -> None:
    """No client step holds an array or a data-dependent number that the server did not send."""
    given = subject.clients
    needs = subject.case.needs(np.vstack(given[:]), RANK) if subject.subspace else {}
    shorter = [c * np.linspace(0.5, 1.0, len(c), dtype=c.dtype)[:, None] for c in given]
    other = Clients(shorter, labels=given.labels)
    for options in options_of(subject):
        with noted(options):
            first, second = (
                _watched_run(subject, own, {**needs, **options}) for own in (given, other)
            )
            require(
                not first["places"],
                f"a client step reads {', '.join(sorted(first['places']))}, which was never sent: "
                "broadcast it, and read the message",
            )
            for (step, one), (same, two) in zip(first["numbers"], second["numbers"], strict=False):
                if step != same:  # the runs part, as after an early end
                    break
                places = ", ".join(place for place in one if one[place] != two.get(place))
                require(
                    not places,
                    f"the client step {step} reads {places}, which depends on the clients' data "
                    "and was never sent: broadcast it, and read the message",
                )


def _watched_run(subject: Subject, clients: Clients, options: dict[str, Any]) -> dict[str, Any]:
    """Run the algorithm, and return the arrays and numbers that `watched` finds."""
    algorithm = subject.algorithm
    with watched() as seen:

        @functools.wraps(algorithm.run)
        def run(federation: Any, params: Any, rng: Any, record: Any) -> Any:
            seen["params"] = params
            return algorithm.run(federation, params, rng, record)

        own = dataclasses.replace(subject, algorithm=dataclasses.replace(algorithm, run=run))
        found = own.run(clients, measure=[], **options)
    assert seen["params"] is not None and (seen["numbers"] or not found.ledger.rounds)
    return seen
