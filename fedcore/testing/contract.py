"""Check that an algorithm's parameters and results keep the contract of `fedcore.algorithms`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from unittest import mock

import numpy as np

from fedcore import metrics
from fedcore.errors import InputError
from fedcore.parts.params import describe
from fedcore.recorder import COLUMNS, Recorder
from fedcore.reports.curve_styles import require_look
from fedcore.testing.asserting import UNLESS_MEANT, check, noted, only_subspace, require
from fedcore.testing.report import Unsaid
from fedcore.testing.samples import RANK, starting_basis
from fedcore.testing.subject import Subject

# Values that a parameter with a range of this kind refuses.
WRONG: dict[str, list[Any]] = {
    "a whole number": [-1, 1.5, "3", True],
    "a finite number": [np.nan, np.inf, "x", True, 10**400],
    "true or false": ["no", 2, None],
    "one of": ["no such name", 3],
}


@check
def describes_itself(subject: Subject) -> None:
    """The algorithm has a title, and each of its parameters has a description and a range."""
    algorithm = subject.algorithm
    require_look(algorithm)
    require(algorithm.title.endswith("."), f"its first line is no sentence: '{algorithm.title}'")
    for known in describe(algorithm.parameters):
        require(
            known.sentence.endswith("."),
            f"parameter {known.name} has no sentence in the docstring of Params, under Attributes",
        )
        stated = known.kind.startswith(tuple(WRONG)) or known.name == "start"
        require(
            stated or known.kind.startswith("a list") or "_counts" in known.kind,
            f"parameter {known.name} has no range, but the type {known.kind}: annotate it, as "
            "Annotated[int, whole(0)], in a subclass of fedcore.parts.params.Parameters",
        )


@check
def refuses_wrong_parameters(subject: Subject) -> None:
    """The error for an unknown parameter or a value out of range names the parameter."""
    good = subject.case.needs(np.vstack(subject.clients[:]), RANK) if subject.subspace else {}
    base = {"n_components": RANK, **good} if subject.subspace else {"model": "tiny_mlp"}
    told = [("no_such_parameter", 1), *subject.case.refused]
    for known in describe(subject.algorithm.parameters):
        kinds = [values for words, values in WRONG.items() if known.kind.startswith(words)]
        told += [(known.name, value) for values in kinds for value in values]
        if known.kind.endswith("or null"):
            told = [(name, v) for name, v in told if name != known.name or v is not None]
    for name, value in told:
        try:
            subject.algorithm.params({**base, name: value})
        except InputError as error:
            said = str(error)
            require(name in said, f"the error on {name} = {value!r} names it not: {said}")
            require(
                "\n" not in said, f"the error on {name} = {value!r} is more than a line: {said}"
            )
        else:
            raise AssertionError(f"{name} = {value!r} is accepted")


@check
def repeats_to_the_byte(subject: Subject) -> None:
    """Two runs with the same seed give the same bytes."""
    first, again = subject.run(iterates="all"), subject.run(iterates="all")
    same = (again.content, again.arrays) == (first.content, first.arrays)
    require(
        same,
        "two runs with one seed differ: the server draws from rng and a step from state.rng alone; "
        "mend this first, for other checks compare two runs, too",
    )


@check
def draws_from_the_seed(subject: Subject) -> None:
    """Another seed gives another result if and only if the method is random."""
    if subject.case.random is None:
        raise Unsaid("its case does not say whether it is random: give random=True or False")
    first, second = subject.run(seed=1), subject.run(seed=2)
    if subject.subspace:
        differs = first.shared.tobytes() != second.shared.tobytes()
    else:
        differs = first.arrays != second.arrays
    require(
        differs == subject.case.random,
        f"another seed gives {'another' if differs else 'the same'} result: {UNLESS_MEANT} "
        "(random)",
    )


@check
def leaves_its_input(subject: Subject) -> None:
    """A run changes neither the clients' data nor the starting matrix."""
    clients, start = subject.clients, starting_basis()
    before = [c.tobytes() for c in clients], start.tobytes()
    asked: dict[str, Any] = {"start": start} if subject.subspace else {}
    subject.run(clients, **asked)
    require([c.tobytes() for c in clients] == before[0], "the run wrote into the clients' data")
    require(start.tobytes() == before[1], "the run wrote into the start")


@check
def shows_orthonormal_rows(subject: Subject) -> None:
    """The components have the right shape and are orthonormal."""
    only_subspace(subject)
    found = subject.algorithm.task.components(subject.run().output)
    components, d = np.asarray(found), subject.clients.n_features
    require(components.shape == (RANK, d), f"shape {components.shape}, not {(RANK, d)}")
    # Householder QR is orthonormal to a small multiple of the rounding unit.
    error = np.abs(components @ components.T - np.eye(RANK)).max()
    require(error <= 1e-14, f"rows are orthonormal only to {error:.3g}: return orth(V) as basis")


@check
def records_counts_that_grow(subject: Subject) -> None:
    """The history begins at iteration 0, counts of traffic never fall, and values are finite."""
    columns = subject.run().columns
    require(columns["iteration"][0] == 0, "its first record is not iteration 0")
    require(columns["iteration"].dtype.kind in "iu", "its iterations are not whole numbers")
    require((np.diff(columns["iteration"]) > 0).all(), "iterations do not grow")
    for count in ("round", "scalars_up", "scalars_down", "bytes_up", "bytes_down"):
        require((np.diff(columns[count]) >= 0).all(), f"{count} falls")
    for name, values in columns.items():
        require(np.isfinite(values).all(), f"{name} is not finite")


@check
def fills_its_own_columns(subject: Subject) -> None:
    """At each recorded iteration, the algorithm gives values for exactly its declared columns."""
    declared = subject.algorithm.columns.keys()
    families, _ = metrics.families()
    taken = {*COLUMNS, *(metric.name for family in families.values() for metric in family)}
    call = Recorder.__call__

    def counted(
        record: Recorder, iteration: int, *, counts: Mapping[str, int] | None = None, **shown: Any
    ) -> bool:
        filled = (counts or {}).keys()
        for name in sorted(declared | filled):
            require(name not in taken, f"'{name}' is a column or metric of others: rename yours")
            require(name in filled, f"record {iteration} has no counts for the column '{name}'")
            require(name in declared, f"'{name}' has counts: declare it in columns of ALGORITHM")
        return call(record, iteration, counts=counts, **shown)

    for setting in subject.case.settings:
        with noted(setting), mock.patch.object(Recorder, "__call__", counted):
            subject.run(measure=[], **setting)
