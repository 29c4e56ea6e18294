"""The contract of an algorithm's parameters and results, one function for each sentence of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcore import metrics
from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.parts.params import describe
from fedcore.problems.clients import check_clients
from fedcore.recorder import Recorder
from fedcore.testing.asserting import (
    ROUNDING,
    SAID_IN_CASE,
    check,
    noted,
    only_subspace,
    projection,
    require,
    require_close,
    settings_and_starts,
    with_start,
)
from fedcore.testing.cases import Case, Draws, rounded_once_more
from fedcore.testing.report import Skipped
from fedcore.testing.samples import RANK, sparse_clients, starting_basis
from fedcore.testing.subject import Found, Subject

# Values that a parameter with a range of this kind refuses.
WRONG: dict[str, list[Any]] = {
    "a whole number": [-1, 1.5, "3", True],
    "a finite number": [np.nan, np.inf, "x", True, 10**400],
    "true or false": ["no", 2, None],
    "one of": ["no such name", 3],
}


@check
def describes_itself(subject: Subject) -> None:
    """It has a title, a paper, and a sentence and a range for every parameter."""
    algorithm = subject.algorithm
    require(algorithm.title.endswith("."), f"its first line is no sentence: '{algorithm.title}'")
    require(algorithm.paper, "PAPER is empty")
    for known in describe(algorithm.module.Params):
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
    """A parameter out of its range, and an unknown one, are refused by their names."""
    good = subject.case.needs(np.vstack(subject.clients[:]), RANK) if subject.subspace else {}
    base = {"n_components": RANK, **good} if subject.subspace else {"model": "tiny_mlp"}
    told = list(subject.case.refused)
    for known in describe(subject.algorithm.module.Params):
        kinds = [values for words, values in WRONG.items() if known.kind.startswith(words)]
        told += [(known.name, value) for values in kinds for value in values]
        if known.kind.endswith("or null"):
            told = [(name, v) for name, v in told if name != known.name or v is not None]
    for name, value in told:
        try:
            subject.algorithm.params({**base, name: value})
        except InputError as error:
            require(name in str(error), f"the error on {name} = {value!r} names it not: {error}")
        else:
            raise AssertionError(f"{name} = {value!r} is accepted")


@check
def repeats_to_the_byte(subject: Subject) -> None:
    """The same seed gives the same bytes, on one thread and on two."""
    first = subject.run(iterates="all").content
    require(first == subject.run(iterates="all").content, "two runs with one seed differ")
    require(
        first == subject.run(iterates="all", threads=2).content,
        "threads change the result: steps share something beside their messages",
    )


@check
def draws_from_the_seed(subject: Subject) -> None:
    """Another seed gives another result where the method is random."""
    if subject.case.random is None:
        raise Skipped("CASE does not say whether the method is 'random'")
    differs = subject.run(seed=1).content != subject.run(seed=2).content
    require(
        differs == subject.case.random,
        f"another seed gives {'another' if differs else 'the same'} result: {SAID_IN_CASE} "
        "(random)",
    )


@check
def leaves_its_input(subject: Subject) -> None:
    """Data and start are as they were after a run."""
    clients, start = subject.clients, starting_basis()
    before = [c.tobytes() for c in clients], start.tobytes()
    subject.run(clients, **(with_start(start) if subject.subspace else {}))
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
    """The history begins at iteration 0, its counts grow, and its values are finite."""
    columns = subject.run().columns
    require(columns["iteration"][0] == 0, "its first record is not iteration 0")
    require((np.diff(columns["iteration"]) > 0).all(), "iterations do not grow")
    for count in ("round", "scalars_up", "scalars_down", "bytes_up", "bytes_down"):
        require((np.diff(columns[count]) >= 0).all(), f"{count} falls")
    for name, values in columns.items():
        require(np.isfinite(values).all(), f"{name} is not finite")


@check
def needs_no_order_of_clients(subject: Subject) -> None:
    """The order of the clients does not matter when their random streams move along."""
    only_subspace(subject)
    if subject.case.sequential:
        raise Skipped("clients pass the iterate from one to the next")
    algorithm, clients = subject.algorithm, subject.clients
    settings = subject.settings(clients, {})

    def ordered(order: list[int]) -> np.ndarray:
        own = subject.clients_of([clients[i] for i in order])
        federation = Federation(
            own, 3, ids=order, check=False, labelled=algorithm.labelled,
            noise=np.random.SeedSequence(3),
        )  # fmt: skip
        problem = subject.problem(own, "ordered")
        recorder = Recorder(problem, federation.ledger, [metrics.get("objective")])
        output = algorithm.run(federation, settings, federation.rng, recorder)
        components = algorithm.task.components(output)
        assert components is not None
        return components.T

    straight = projection(ordered([0, 1, 2, 3]))
    for order in ([3, 1, 0, 2], [2, 3, 1, 0]):
        what = f"the result with the clients in the order {order}: {SAID_IN_CASE} (sequential)"
        require_close(projection(ordered(order)), straight, ROUNDING, what)


@check
def does_what_its_plain_form_does(subject: Subject) -> None:
    """The iterates are those of the plain form on the stacked matrix."""
    only_subspace(subject)
    if subject.case.oracle is None:
        raise Skipped("CASE has no 'oracle', the method in its plainest form")
    uneven = list(subject.clients[:])
    for setting, start in settings_and_starts(subject):
        for matrices in ([np.vstack(uneven)], uneven):
            with noted(setting, clients=len(matrices)):
                if len(matrices) == 1 and setting.get("init") == "pgd":
                    continue  # needs three clients
                found = subject.run(matrices, **setting, **with_start(start))
                compare_with_oracle(subject.case, matrices, found)


def compare_with_oracle(case: Case, matrices: list[np.ndarray], found: Found) -> None:
    """Compare what a run with seed 5 returned with the plain form."""
    assert case.oracle is not None
    V, U = case.oracle(matrices, Draws(5, len(matrices)), found.settings)
    held = found.output.get("U", found.output.get("heads"))
    tolerance = rounding_of(case, matrices, found.settings, V)
    require_close(projection(found.shared), projection(V), tolerance, "V Vᵀ")
    if U is not None:
        require(held is not None, "the plain form has U, and run returns none")
        assert held is not None
        require_close(np.vstack(held) @ found.shared.T, U @ V.T, tolerance, "U Vᵀ")


def rounding_of(case: Case, clients: list[np.ndarray], params: Any, V: np.ndarray) -> float:
    """Tolerance for the projection on V: `ROUNDING`, or a measured effect on the oracle.

    Algorithm and oracle each round about ten times per product, in different orders. The oracle
    runs again with one more rounding per product; ten times the largest change is the tolerance.
    """
    if not case.amplifies_rounding:
        return ROUNDING
    assert case.oracle is not None
    plain, moved = projection(V), []
    for seed in range(8):
        qr = rounded_once_more(seed)
        W, _ = case.oracle(clients, Draws(5, len(clients)), params, qr=qr)
        moved.append(np.abs(projection(W) - plain).max())
    return 10 * max(moved) / np.abs(plain).max()


@check
def takes_sparse_clients(subject: Subject) -> None:
    """Sparse clients give what dense ones give, if the module says SPARSE = True."""
    only_subspace(subject)
    if not subject.algorithm.sparse:
        raise Skipped("the module does not say SPARSE = True")
    case, matrices = subject.case, sparse_clients()
    dense = [matrix.toarray() for matrix in matrices]
    for setting in case.settings:
        ways: list[dict[str, Any]] = [{}]
        settings = subject.settings(subject.clients_of(dense), setting)
        clipped = getattr(settings, "clip", False)  # centred rows that are sparse are not clipped
        if not (case.amplifies_rounding or clipped or subject.algorithm.private(settings)):
            ways += [{"center": True}]
        for way in ways:
            with noted(setting, **way):
                found = subject.run(check_clients(matrices), **setting, **way)
                plain = subject.run(dense, **setting, **way)
                tolerance = rounding_of(case, dense, settings, plain.shared)
                what = "V Vᵀ on sparse clients, and on the same dense ones"
                require_close(projection(found.shared), projection(plain.shared), tolerance, what)
                same = found.ledger.snapshot() == plain.ledger.snapshot()
                require(same, "the ledgers of sparse and of dense clients differ")


@check
def reaches_the_floor(subject: Subject) -> None:
    """One client and many reach the Eckart–Young floor with the parameters that CASE names."""
    only_subspace(subject)
    case = subject.case
    if case.asymptotic or subject.algorithm.labelled:
        raise Skipped("the method is not meant to")
    if case.floor is None:
        raise Skipped("CASE has no 'floor', the parameters with which it reaches the optimum")
    S = np.vstack(subject.clients[:])
    for parts in ([S], [S, S] if case.needs_equal_clients else list(subject.clients[:])):
        S = np.vstack(parts)
        floor = 0.5 * np.sum(np.linalg.svd(S)[1][RANK:] ** 2)
        found = subject.run(parts, measure=["objective"], **case.floor(S, RANK))
        V = found.shared
        U = np.vstack(found.output["U"]) if "U" in found.output else S @ np.linalg.pinv(V).T
        # The distance to the floor is quadratic in the distance to the optimum, which is rounding
        # or, for the descents, the rest after thousands of steps at a linear rate.
        for what, value in (
            ("½‖S − U Vᵀ‖²", 0.5 * np.linalg.norm(S - U @ V.T) ** 2),
            ("the last recorded objective", found.columns["objective"][-1]),
        ):
            require_close(value, floor, 1e-9, f"{what} with {len(parts)} clients, and the floor")
