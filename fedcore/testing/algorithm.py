"""Run all checks of one algorithm.

A run's ledger, which counts its traffic, counts nothing for `Federation.observe`,
`Federation.client_state` and `Federation.clients`, because recorders use these three for metrics.
An algorithm that computed its result with them would communicate without cost. The check
`learns_by_replies_only` finds such algorithms.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import numpy as np

from fedcore import algorithms
from fedcore.algorithms import Algorithm
from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.testing import answers, contract, protocol  # they fill CHECKS
from fedcore.testing.asserting import (
    CHECKS,
    check,
    noted,
    only_subspace,
    options_of,
    require,
)
from fedcore.testing.cases import case_of
from fedcore.testing.report import CheckFailed, Report, Skipped, examine
from fedcore.testing.subject import Subject

__all__ = ["answers", "check_algorithm", "contract", "find_algorithm", "protocol"]


def find_algorithm(algorithm: str | ModuleType) -> Algorithm:
    """Return an algorithm by its name in the registry, its import path, or its module.

    Raises
    ------
    InputError
        Raised if the name is unknown or is the name of a file, or if the module cannot be imported
        or has no algorithm.
    """
    if isinstance(algorithm, ModuleType):
        return algorithms.from_module(algorithm.__name__.rpartition(".")[2], algorithm)
    if algorithm.endswith(".py"):
        path = Path(algorithm).resolve().with_suffix("")
        packages = itertools.takewhile(lambda up: (up / "__init__.py").is_file(), path.parents)
        # A name without a dot is a registered algorithm; any folder of a module is a package.
        parts = [path.name, *([up.name for up in packages] or [path.parent.name])]
        raise InputError(
            f"{algorithm} is a file: name its module, {'.'.join(reversed(parts))}, and run in the "
            f"folder {path.parents[len(parts) - 1]} or install the module's package"
        )
    if algorithm in algorithms.names() or "." not in algorithm:
        return algorithms.get(algorithm)
    try:
        module = importlib.import_module(algorithm)
    except (Exception, SystemExit) as error:
        raise InputError(
            f"{algorithm} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    return algorithms.from_module(algorithm.rpartition(".")[2], module)


def check_algorithm(algorithm: str | ModuleType, *, raising: bool = True) -> Report:
    """Check that an algorithm keeps the contract of `fedcore.algorithms`.

    Every parameter must declare its range and refuse values outside this range. Runs with equal
    seeds must return equal bytes. Components must be orthonormal. The counted traffic of a run must
    equal the costs that the algorithm's function ``communication`` returns. A client step (a
    function that runs at a client) may read only the client's data and state and the server's
    messages. The server may read only replies. If the algorithm's `Case` names an oracle, a plain
    implementation of the method, the results of both must agree up to rounding. If the `Case` names
    a function `floor`, the algorithm must reach the optimum with the parameters that `floor`
    returns.

    Parameters
    ----------
    algorithm : str or module
        Name of a registered algorithm, import path of a module, or the module itself.
    raising : bool, default=True
        Whether to raise `CheckFailed` if a check fails.

    Returns
    -------
    Report
        Outcomes of all checks; ``print`` shows the outcomes as text.

    Raises
    ------
    CheckFailed
        Raised if a check fails; the message is the report.
    InputError
        Raised if the algorithm cannot be imported, or if the object is not an algorithm.

    Examples
    --------
    >>> from fedcore.testing import check_algorithm
    >>> check_algorithm("one_shot").failed
    []
    """
    chosen = find_algorithm(algorithm)
    subject = Subject(chosen, case_of(chosen))
    file = getattr(chosen.module, "__file__", None)
    findings = [examine(check, subject, file) for check in CHECKS.values()]
    report = Report(f"algorithm {chosen.name}", findings)
    if raising and report.failed:
        raise CheckFailed(str(report))
    return report


LOOKS = ("observe", "client_state")
MAY_READ = (
    "fedcore.federation.",
    "fedcore.runs",
    "fedcore.user_runs",
    "fedcore.recorder",
    "fedcore.testing.",
)


@check
def learns_by_replies_only(subject: Subject) -> None:
    """The result does not depend on values that the server reads outside the protocol."""
    only_subspace(subject)
    sends = False
    for options in options_of(subject):
        plain = subject.run(measure=[], **options)
        silent = not plain.ledger.rounds  # then the result may be made of what clients keep
        sends = sends or not silent
        looks = LOOKS[:1] if silent else LOOKS
        with noted(options), _looks_astray(looks) as readers:
            found = subject.run(measure=[], **options)
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
            "nothing is sent, so no server learns the result: it is computed from the clients' "
            "states (client_state), which only the experimenter sees"
        )


@contextlib.contextmanager
def _looks_astray(looks: Sequence[str]) -> Iterator[set[str]]:
    """Falsify what the methods `looks` return; yield the modules that read the clients' data."""
    readers: set[str] = set()
    read = Federation.clients.fget  # type: ignore[attr-defined]

    def clients(federation: Federation) -> Any:
        reader = sys._getframe(1).f_globals["__name__"]
        if not f"{reader}.".startswith(MAY_READ):
            readers.add(reader)
        return read(federation)

    def astray(look: Any) -> Any:
        @functools.wraps(look)
        def looked(*arguments: Any, **options: Any) -> list[Any]:
            return [_wrong(reply) for reply in look(*arguments, **options)]

        return looked

    changed = {name: astray(getattr(Federation, name)) for name in looks}
    with mock.patch.multiple(Federation, clients=property(clients), **changed):
        yield readers


def _wrong(reply: Any) -> Any:
    """Return a reply with falsified numbers: each number in an array gets a factor of its own."""
    if isinstance(reply, tuple | list):
        return type(reply)(map(_wrong, reply))
    if not isinstance(reply, np.ndarray | np.generic | float | int):
        return reply
    values = np.asarray(reply)
    return values * np.linspace(1.5, 3.0, values.size).reshape(values.shape)
