"""The contract of what an algorithm reads of the clients outside the protocol: it measures only.

`Federation.observe`, `Federation.client_state` and `Federation.clients` cost nothing, so that a
recorder can measure. An algorithm that computes with them would have a ledger without this traffic.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fedcore.federation.federation import Federation
from fedcore.testing.asserting import (
    check,
    noted,
    only_subspace,
    require,
    settings_and_starts,
    with_start,
)
from fedcore.testing.report import Skipped
from fedcore.testing.subject import Subject

LOOKS = ("observe", "client_state")
MAY_READ = ("fedcore.federation.", "fedcore.runs", "fedcore.recorder", "fedcore.testing.")


@check
def learns_by_replies_only(subject: Subject) -> None:
    """What is read of the clients outside the protocol does not change what the server learns."""
    only_subspace(subject)
    sends = False
    for setting, start in settings_and_starts(subject):
        options = {"measure": [], **setting, **with_start(start)}
        plain = subject.run(**options)
        silent = not plain.ledger.rounds  # then the result may be made of what clients keep
        sends = sends or not silent
        looks = LOOKS[:1] if silent else LOOKS
        with noted(setting), _looks_astray(looks) as readers:
            found = subject.run(**options)
            require(
                not readers,
                f"{', '.join(sorted(readers))} reads federation.clients, which no server has: let "
                "a step compute with the data, and take its replies by gather, sum or mean",
            )
            require(
                plain.shared.tobytes() == found.shared.tobytes(),
                f"{'nothing is sent, and ' * silent}the result follows from federation."
                f"{' or '.join(looks)}: such looks are for measures and not charged; take replies "
                "by gather, sum or mean",
            )
    if not sends:
        raise Skipped(
            "nothing is sent, so that no server learns the result: it is made of what the clients "
            "keep (client_state), and only the experimenter sees it"
        )


@contextlib.contextmanager
def _looks_astray(looks: Sequence[str]) -> Iterator[set[str]]:
    """Falsify what is read outside the protocol; yield the modules that read clients' data."""
    readers: set[str] = set()
    real = {name: getattr(Federation, name) for name in (*looks, "clients")}

    def clients(federation: Federation) -> Any:
        reader = sys._getframe(1).f_globals["__name__"]
        if not f"{reader}.".startswith(MAY_READ):
            readers.add(reader)
        return real["clients"].fget(federation)

    def astray(look: Any) -> Any:
        @functools.wraps(look)
        def looked(*arguments: Any, **options: Any) -> list[Any]:
            return [_wrong(reply) for reply in look(*arguments, **options)]

        return looked

    for name in looks:
        setattr(Federation, name, astray(real[name]))
    Federation.clients = property(clients)  # type: ignore[assignment, method-assign]
    try:
        yield readers
    finally:
        for name, own in real.items():
            setattr(Federation, name, own)


def _wrong(reply: Any) -> Any:
    """Return a reply with every number changed, and with other ratios between them."""
    if isinstance(reply, tuple | list):
        return type(reply)(map(_wrong, reply))
    if not isinstance(reply, np.ndarray | np.generic | float | int):
        return reply
    values = np.asarray(reply)
    return values * np.linspace(1.5, 3.0, values.size).reshape(values.shape)
