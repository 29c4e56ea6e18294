"""Compare an algorithm with a plain implementation, and check when its result must not change."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fedcore import metrics
from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.recorder import Recorder, Recording
from fedcore.testing.asserting import (
    ROUNDING,
    UNLESS_MEANT,
    UNSTABLE,
    check,
    noted,
    only_subspace,
    options_of,
    projection,
    require,
    require_close,
)
from fedcore.testing.cases import Draws, rounded_data
from fedcore.testing.report import Skipped, Unsaid
from fedcore.testing.samples import RANK, cut, sparse_clients, starting_basis
from fedcore.testing.subject import FinishedRun, Subject
from fedcore.user_tables.matrices import check_clients
from fedcore.words import counted


@check
def needs_no_order_of_clients(subject: Subject) -> None:
    """The clients' order does not change the result if each client keeps its random stream."""
    only_subspace(subject)
    if subject.case.sequential:
        raise Skipped("each client passes the iterate to the next client")
    algorithm, clients = subject.algorithm, subject.clients
    settings = subject.settings(clients, {})

    def ordered(order: list[int]) -> tuple[np.ndarray, np.ndarray]:
        own = subject.clients_of([clients[i] for i in order])
        federation = Federation(
            own, 3, ids=order, check=False, labelled=algorithm.labelled,
            noise=np.random.SeedSequence(3),
        )  # fmt: skip
        problem = subject.problem(own)
        recorder = Recorder(problem, federation.ledger, Recording([metrics.get("objective")]))
        output = algorithm.run(federation, settings, federation.rng, recorder)
        components = algorithm.task.components(output)
        assert components is not None
        return projection(components.T), recorder.columns()["objective"]

    rounding = partial(rounding_of_data, subject, list(clients[:]), subject.run(clients))
    straight, objective = ordered([0, 1, 2, 3])
    for order in ([3, 1, 0, 2], [2, 3, 1, 0]):
        what = f"with the clients in the order {order}: {UNLESS_MEANT} (sequential)"
        other, values = ordered(order)
        require_near(other, straight, rounding, f"the result {what}")
        # A method that turns all to the first client's basis may differ on its way to one answer.
        rows = slice(None) if subject.case.depends_on_split is not None else slice(-1, None)
        near = np.abs(values - objective)[rows] <= ROUNDING * np.abs(objective)[rows]
        require(near.all(), f"the objective differs {what}")


@check
def needs_no_split_of_rows(subject: Subject) -> None:
    """The split of the rows into clients does not change the result."""
    only_subspace(subject)
    case = subject.case
    if case.depends_on_split is None:
        raise Unsaid("its case does not say whether the result 'depends_on_split'")
    if case.depends_on_split or case.clients_draw_start:
        raise Skipped("the result depends on the split or on the clients' random numbers")
    S, start = np.vstack(subject.clients[:]), starting_basis()
    whole = subject.run([S], start=start)
    rounding = partial(rounding_of_data, subject, [S], whole, start=start)
    for sizes in ([20, 20], [1, 2, 30, 7], [1] * 40):
        split = subject.run(cut(S, sizes), start=start)
        what = f"with the rows split into {sizes}: {UNLESS_MEANT} (depends_on_split)"
        require_near(
            projection(split.basis), projection(whole.basis), rounding, f"the result {what}"
        )
        apart = split.columns["subspace_distance"] - whole.columns["subspace_distance"]
        require(np.abs(apart).max() <= ROUNDING, f"the distances to the answer differ {what}")


@check
def does_what_its_plain_form_does(subject: Subject) -> None:
    """The result equals the result of the case's oracle, a plain implementation of the method."""
    only_subspace(subject)
    if subject.case.oracle is None:
        raise Unsaid("its case has no 'oracle', a plain implementation of the method")
    uneven = list(subject.clients[:])
    for options in options_of(subject):
        for matrices in ([np.vstack(uneven)], uneven):
            with noted(options, clients=len(matrices)):
                try:
                    found = subject.run(matrices, **options)
                except InputError as error:
                    if len(matrices) > 1 or "clients" not in str(error):
                        raise
                    continue  # it says that it needs more clients than one
                compare_with_oracle(subject, matrices, found, **options)


def compare_with_oracle(
    subject: Subject, matrices: list[np.ndarray], found: FinishedRun, **options: Any
) -> None:
    """Require that the run `found`, with seed 5, has nearly the result of the case's oracle."""
    assert subject.case.oracle is not None
    V, U = subject.case.oracle(matrices, Draws(5, len(matrices)), found.settings)
    held = found.output.get("U", found.output.get("heads"))
    rounding = partial(rounding_of_data, subject, matrices, found, **options)
    require_near(projection(found.shared), projection(V), rounding, "V Vᵀ")
    if U is not None:
        require(held is not None, "the plain form has U, and run returns none")
        assert held is not None
        require_near(np.vstack(held) @ found.shared.T, U @ V.T, rounding, "U Vᵀ")


def require_near(actual: Any, desired: Any, rounding: Callable[[], float], what: str) -> None:
    """Require that two arrays agree up to `ROUNDING` or, if not, up to `rounding()`."""
    try:
        require_close(actual, desired, ROUNDING, what)
    except AssertionError:
        require_close(actual, desired, rounding(), what)


def rounding_of_data(
    subject: Subject, clients: list[np.ndarray], found: FinishedRun, **options: Any
) -> float:
    """Return a tolerance for V Vᵀ, measured by repeating the run `found` on rounded data.

    A change in the order of summation has at least the effect of rounding the data once. A method
    that a stop rule ends amplifies this effect; the algorithm FAPS amplifies it up to 1e7 times on
    centred data. The run is repeated on data rounded in four ways. The tolerance is ten times the
    largest relative change of V Vᵀ, and at least `ROUNDING`.
    """
    plain, moved = projection(found.basis), []
    for seed in range(4):
        moves = rounded_data(clients, np.random.default_rng(seed))
        moved.append(np.abs(projection(subject.run(moves, **options).basis) - plain).max())
    tolerance = 10 * max(moved) / np.abs(plain).max()
    require(
        tolerance <= UNSTABLE,
        f"one rounding of the data moves V Vᵀ by {max(moved):.1g}: no comparison can be made",
    )
    return max(ROUNDING, tolerance)


@check
def takes_sparse_clients(subject: Subject) -> None:
    """Sparse clients give the same result as dense ones, if the algorithm says sparse=True."""
    only_subspace(subject)
    if not subject.algorithm.sparse:
        raise Skipped("it does not say sparse=True")
    case, matrices = subject.case, sparse_clients()
    dense = [matrix.toarray() for matrix in matrices]
    for setting in case.settings:
        ways: list[dict[str, Any]] = [{}]
        settings = subject.settings(subject.clients_of(dense), setting)
        clipped = getattr(settings, "clip", False)  # centred rows that are sparse are not clipped
        if not (clipped or subject.algorithm.private(settings)):
            ways += [{"center": True}]
        for way in ways:
            with noted(setting, **way):
                found = subject.run(check_clients(matrices), **setting, **way)
                plain = subject.run(dense, **setting, **way)
                rounding = partial(rounding_of_data, subject, dense, plain, **setting, **way)
                what = "V Vᵀ on sparse clients, and on the same dense ones"
                require_near(projection(found.shared), projection(plain.shared), rounding, what)
                same = found.ledger.snapshot() == plain.ledger.snapshot()
                require(same, "the ledgers of sparse and of dense clients differ")


@check
def reaches_the_floor(subject: Subject) -> None:
    """With the parameters of the case's `floor`, the loss is the smallest that the rank allows."""
    only_subspace(subject)
    case = subject.case
    if case.asymptotic or subject.algorithm.labelled:
        raise Skipped("the method is not meant to reach the floor")
    if case.floor is None:
        raise Unsaid("its case has no 'floor', the parameters with which it reaches the optimum")
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
            require_close(
                value, floor, 1e-9, f"{what} with {counted(len(parts), 'client')}, and the floor"
            )
