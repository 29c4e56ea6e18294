"""The contract of all registered algorithms that learn a subspace; see also `test_networks`."""

from __future__ import annotations

import dataclasses
import inspect
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from contract.cases import CASES, Draws, case_of, labels_of, rounded_once_more

import fedcore
from fedcore import algorithms, metrics
from fedcore.api import execute
from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.federation.in_process import InProcess
from fedcore.federation.ledger import Shape
from fedcore.history import History
from fedcore.parts.params import describe
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder
from fedcore.tasks import TASKS, shared_basis

RANK = 3
NAMES = [n for n in algorithms.names() if algorithms.get(n).task is TASKS["subspace"]]
LABELLED = [name for name in NAMES if algorithms.get(name).labelled]
SUBSPACE = [
    name for name in NAMES if name not in LABELLED
]  # approximate the top space of the samples
EXACT = [name for name in SUBSPACE if not case_of(name).asymptotic]
every_algorithm = pytest.mark.parametrize("name", NAMES)
every_setting = pytest.mark.parametrize(
    ("name", "setting"),
    [
        pytest.param(name, setting, id=f"{name}-{'-'.join(f'{k}={v}' for k, v in setting.items())}")
        for name in NAMES
        for setting in case_of(name).settings
    ],
)


def takes_a_start(setting: Any) -> bool:
    """Return whether the setting allows a start; several samples do not."""
    return setting.get("samples", 1) == 1


every_setting_and_start = pytest.mark.parametrize(
    ("name", "setting", "with_start"),
    [
        pytest.param(*parameters.values, kind == "start", id=f"{kind}-{parameters.id}")
        for parameters in every_setting.args[1]
        for kind in ("drawn", "start")
        if kind == "drawn" or takes_a_start(parameters.values[1])
    ],
)
# Sums in another order and products of other shapes differ by a few hundred roundings (2e-16 each),
# times condition numbers of at most about 1e4 in these settings.
ROUNDING = 1e-9


def run(name: str, clients: list[np.ndarray], seed: int = 5, **options: Any) -> SimpleNamespace:
    """Run an algorithm by the function that library and workflow share."""
    run_options = {
        k: options.pop(k) for k in ("threads", "stop", "iterates", "stack") if k in options
    }
    measure = [metrics.get(m) for m in options.pop("measure", ["objective", "subspace_distance"])]
    algorithm = algorithms.get(name)
    needs = case_of(name).needs(np.vstack(clients), RANK)
    settings = algorithm.params({"n_components": RANK, **needs, **options})
    problem = Problem("contract", Clients(clients, labels=labels_for(name, clients)))
    run_options["noise"] = np.random.SeedSequence(seed)
    recorder, output = execute(algorithm, problem, settings, seed, measure, **run_options)
    return SimpleNamespace(
        recorder=recorder,
        output=output,
        settings=settings,
        ledger=recorder.ledger,
        columns=recorder.columns(),
        history=History.from_runs([recorder], [output], metrics=measure),
        basis=shared_basis(output),
        algorithm=algorithm,
    )


def labels_for(name: str, clients: list[np.ndarray]) -> list[np.ndarray] | None:
    """Labels for algorithms that learn from labels, else None."""
    return labels_of(clients, RANK) if name in LABELLED else None


def starting_basis(d: int, seed: int = 11) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((d, RANK))


def products(V: np.ndarray, U: Any) -> list[np.ndarray]:
    """Products that do not depend on signs or rotations of columns: V Vᵀ, U Vᵀ."""
    return [V @ V.T] + ([] if U is None else [np.vstack(U) @ V.T])


def shared_matrix_of(output: dict[str, Any]) -> np.ndarray:
    """V, or the basis of a method without V."""
    return output["V"] if "V" in output else output["basis"]


def assert_close(actual: np.ndarray, desired: np.ndarray, tolerance: float = ROUNDING) -> None:
    """Compare relative to the largest entry, because single entries may cancel."""
    np.testing.assert_allclose(actual, desired, rtol=0, atol=tolerance * np.abs(desired).max())


# --- results ------------------------------------------------------------------------------------


@every_algorithm
def test_the_same_seed_gives_the_same_bytes(name, clients, tmp_path):
    first, second = run(name, clients, iterates="all"), run(name, clients, iterates="all")
    first.history.save(tmp_path / "first.h5")
    second.history.save(tmp_path / "second.h5")
    assert (tmp_path / "first.h5").read_bytes() == (tmp_path / "second.h5").read_bytes()
    assert first.basis.tobytes() == second.basis.tobytes()


@every_algorithm
def test_another_seed_gives_another_result_where_the_method_is_random(name, clients):
    first, second = run(name, clients, seed=1), run(name, clients, seed=2)
    assert (first.basis.tobytes() != second.basis.tobytes()) == case_of(name).random


@every_algorithm
def test_threads_do_not_change_a_byte(name, clients, tmp_path):
    one, two = run(name, clients, threads=1), run(name, clients, threads=2)
    one.history.save(tmp_path / "one.h5")
    two.history.save(tmp_path / "two.h5")
    assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()
    for U_one, U_two in zip(one.output.get("U", []), two.output.get("U", []), strict=True):
        assert U_one.tobytes() == U_two.tobytes()


@every_algorithm
def test_a_run_leaves_the_data_and_the_start_as_they_were(name, clients):
    start = starting_basis(clients[0].shape[1])
    before = [client.tobytes() for client in clients], start.tobytes()
    run(name, clients, start=start)
    assert ([client.tobytes() for client in clients], start.tobytes()) == before


@every_algorithm
def test_components_are_orthonormal_rows(name, clients):
    needs = case_of(name).needs(np.vstack(clients), RANK)
    labels = labels_for(name, clients)
    components = fedcore.run(name, clients, RANK, labels=labels, **needs).components
    assert components.shape == (RANK, clients[0].shape[1])
    # Householder QR is orthonormal to a small multiple of the rounding unit.
    np.testing.assert_allclose(components @ components.T, np.eye(RANK), rtol=0, atol=1e-14)


@every_algorithm
def test_the_history_counts_up_and_is_finite(name, clients):
    columns = run(name, clients).columns
    assert columns["iteration"][0] == 0
    assert (np.diff(columns["iteration"]) > 0).all()
    for count in ("round", "scalars_up", "scalars_down", "bytes_up", "bytes_down"):
        assert (np.diff(columns[count]) >= 0).all()
    for values in columns.values():
        assert np.isfinite(values).all()


@every_algorithm
def test_a_run_ends_when_the_recorder_says_so(name, clients):
    whole = run(name, clients).columns["iteration"]
    cut = run(name, clients, stop=lambda row: row["iteration"] >= 2).columns["iteration"]
    np.testing.assert_array_equal(cut, whole[whole <= 2])


@every_setting
@pytest.mark.parametrize("last", [0, 1, 3])
def test_nothing_is_done_or_charged_after_the_recorder_has_said_so(name, setting, last, clients):
    measure = ["objective", "subspace_distance"]
    whole = run(name, clients, measure=measure, iterates="all", **setting)
    cut = run(
        name, clients, measure=measure, iterates="all",
        stop=lambda row: row["iteration"] >= last, **setting,
    )  # fmt: skip
    reached = np.append(whole.columns["iteration"], last) >= last
    records = min(int(np.argmax(reached)) + 1, len(whole.columns["iteration"]))
    for column, values in cut.columns.items():
        np.testing.assert_array_equal(values, whole.columns[column][:records])
    # The output is the last recorded iterate, and the ledger has its last recorded totals.
    assert cut.ledger.snapshot() == {
        column: cut.columns[column][-1] for column in cut.ledger.snapshot()
    }
    shared = cut.output["V"] if "V" in cut.output else cut.output["basis"]
    np.testing.assert_array_equal(shared, whole.recorder.kept[records - 1][1])
    if "U" in cut.output:
        residual = np.vstack(clients) - np.vstack(cut.output["U"]) @ shared.T
        recorded = cut.columns["objective"][-1]
        assert 0.5 * np.linalg.norm(residual) ** 2 == pytest.approx(recorded, rel=ROUNDING)


@every_setting
@pytest.mark.parametrize("parts", ["one client", "uneven clients"])
def test_the_iterates_are_those_of_the_plain_method_on_the_stacked_matrix(
    name, setting, parts, clients
):
    case = case_of(name)
    if case.oracle is None:
        pytest.fail(f"{name} has no oracle: write its plain form into tests/contract/cases.py")
    # If all of these fail, check that the oracle draws its start as `run` does, in the same order.
    clients = [np.vstack(clients)] if parts == "one client" else clients
    starts = [None, starting_basis(clients[0].shape[1])]
    if parts == "one client" and setting.get("init") == "pgd":
        with pytest.raises(InputError, match="needs at least 3 clients, got 1"):
            run(name, clients, **setting)
        return
    for start in starts[: 1 + takes_a_start(setting)]:
        found = run(name, clients, start=start, **setting)
        V, U = case.oracle(clients, Draws(5, len(clients)), found.settings)
        held = found.output.get("U", found.output.get("heads"))
        U_found = held if U is not None else None
        actual = products(shared_matrix_of(found.output), U_found)
        tolerance = rounding_of(case, clients, found.settings, V)
        for ours, plain in zip(actual, products(V, U), strict=True):
            assert_close(ours, plain, tolerance)


def rounding_of(case: Any, clients: list[np.ndarray], params: Any, V: np.ndarray) -> float:
    """Tolerance for the projection on V: `ROUNDING`, or a measured effect on the oracle.

    Algorithm and oracle each round about ten times per product, in different orders. The oracle
    runs again with one more rounding per product; ten times the largest change is the tolerance.
    """
    if not case.amplifies_rounding:
        return ROUNDING
    plain, moved = V @ V.T, []
    for seed in range(8):
        qr = rounded_once_more(seed)
        W, _ = case.oracle(clients, Draws(5, len(clients)), params, qr=qr)
        moved.append(np.abs(W @ W.T - plain).max())
    return 10 * max(moved) / np.abs(plain).max()


@pytest.mark.parametrize("setting", [s for s in case_of("faps").settings if s["rounds"]])
@pytest.mark.parametrize("wrong", ["penalty", "rounds"])
def test_a_wrong_step_is_not_taken_for_rounding(wrong, setting, clients):
    """The oracle has a penalty with an error of 1e-4, or one round too few."""
    case, start = case_of("faps"), starting_basis(clients[0].shape[1])
    found = run("faps", clients, start=start, **setting)
    right = found.settings
    other = dataclasses.replace(
        right,
        beta_factor=right.beta_factor * (1 + 1e-4 * (wrong == "penalty")),
        rounds=right.rounds - (wrong == "rounds"),
    )
    V, _ = case.oracle(clients, Draws(5, len(clients)), other)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        assert_close(found.basis @ found.basis.T, V @ V.T, rounding_of(case, clients, other, V))


@pytest.mark.parametrize("name", EXACT)
def test_one_client_and_many_reach_the_centralised_answer(name, clients):
    case, S = case_of(name), np.vstack(clients)
    if case.floor is None:
        pytest.fail(f"{name}: say in tests/contract/cases.py when it reaches the optimum")
    for parts in ([S], [S, S] if case.needs_equal_clients else clients):
        S = np.vstack(parts)
        floor = 0.5 * np.sum(np.linalg.svd(S)[1][RANK:] ** 2)
        found = run(name, parts, measure=["objective"], **case.floor(S, RANK))
        V = shared_matrix_of(found.output)
        U = np.vstack(found.output["U"]) if "U" in found.output else S @ np.linalg.pinv(V).T
        # The distance to the floor is quadratic in the distance to the optimum, which is rounding
        # or, for the descents, the rest after thousands of steps at a linear rate.
        assert 0.5 * np.linalg.norm(S - U @ V.T) ** 2 == pytest.approx(floor, rel=1e-9)
        assert found.columns["objective"][-1] == pytest.approx(floor, rel=1e-9)


@pytest.mark.parametrize("name", [name for name in EXACT if not case_of(name).needs_equal_clients])
def test_a_start_that_spans_the_top_space_is_never_left(name, clients):
    S = np.vstack(clients)
    top = np.linalg.svd(S)[2][:RANK].T
    case = case_of(name)
    if case.floor is None:
        pytest.fail(f"{name}: say in tests/contract/cases.py when it reaches the optimum")
    settings = {**case.floor(S, RANK), "start": top}
    settings |= {"power": 0} if "power" in settings else {}
    basis = run(name, clients, measure=[], **settings).basis
    # Sine of the angle: rounding for the power methods; 1e-4 for the descents, the rest after their
    # steps at a linear rate. The objective depends on its square.
    assert np.linalg.norm(top - basis @ (basis.T @ top), 2) < 1e-4


@pytest.mark.parametrize(
    "name",
    [
        name
        for name in NAMES
        if not (case_of(name).clients_draw_start or case_of(name).depends_on_split)
    ],
)
def test_the_split_of_the_rows_into_clients_does_not_matter(name, clients):
    S, start = np.vstack(clients), starting_basis(clients[0].shape[1])
    whole = run(name, [S], start=start, **case_of(name).needs(S, RANK))
    for sizes in ([20, 20], [1, 2, 30, 7], [1] * 40):
        parts = np.split(S, np.cumsum(sizes)[:-1])
        split = run(name, parts, start=start, **case_of(name).needs(S, RANK))
        assert_close(split.basis @ split.basis.T, whole.basis @ whole.basis.T)
        distances = split.columns["subspace_distance"], whole.columns["subspace_distance"]
        np.testing.assert_allclose(*distances, rtol=0, atol=ROUNDING)


@pytest.mark.parametrize("name", [name for name in NAMES if not case_of(name).sequential])
def test_the_order_of_clients_does_not_matter_when_their_ids_move_along(name, clients):
    case, S = case_of(name), np.vstack(clients)
    algorithm = algorithms.get(name)
    settings = algorithm.params({"n_components": RANK, **case.needs(S, RANK)})

    def ordered(order: list[int]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        matrices = [clients[i] for i in order]
        problem = Problem("ordered", Clients(matrices, labels=labels_for(name, matrices)))
        federation = Federation(
            problem.clients, 3, ids=order, check=False, labelled=algorithm.labelled,
            noise=np.random.SeedSequence(3),
        )  # fmt: skip
        recorder = Recorder(problem, federation.ledger, [metrics.get("objective")])
        output = algorithm.run(federation, settings, federation.rng, recorder)
        return shared_basis(output), recorder.columns()

    basis, columns = ordered([0, 1, 2, 3])
    for order in ([3, 1, 0, 2], [2, 3, 1, 0]):
        other, other_columns = ordered(order)
        assert_close(other @ other.T, basis @ basis.T)
        np.testing.assert_allclose(
            other_columns["objective"], columns["objective"], rtol=ROUNDING, atol=0
        )


@pytest.mark.parametrize("name", SUBSPACE)
def test_labels_that_are_not_asked_for_change_nothing(name, clients):
    plain = run(name, clients, iterates="all")
    problem = Problem("contract", Clients(clients, labels=labels_of(clients, RANK)))
    measure = [metrics.get(m) for m in ("objective", "subspace_distance")]
    noise = np.random.SeedSequence(5)
    recorder, output = execute(plain.algorithm, problem, plain.settings, 5, measure, noise=noise)
    assert shared_basis(output).tobytes() == plain.basis.tobytes()
    for column, values in recorder.columns().items():
        np.testing.assert_array_equal(values, plain.columns[column])


@pytest.mark.parametrize("name", LABELLED)
def test_an_algorithm_that_learns_from_labels_asks_for_them(name, clients):
    with pytest.raises(InputError, match=f"{name} learns from labels and these data have none"):
        fedcore.run(name, clients, RANK)


@pytest.mark.parametrize(
    ("name", "setting"),
    [
        pytest.param(name, setting, id=f"{name}-{'-'.join(f'{k}={v}' for k, v in setting.items())}")
        for name in LABELLED
        for setting in case_of(name).settings
    ],
)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.in_process
def test_the_stacked_form_gives_what_the_plain_form_gives(
    name, setting, dtype, clients, monkeypatch
):
    """For clients of equal size."""
    alike = [part.astype(dtype) for part in np.split(np.vstack(clients), 8)]
    calls = []
    real = InProcess._run_stacked
    monkeypatch.setattr(
        InProcess, "_run_stacked", lambda self, *a: calls.append(1) or real(self, *a)
    )
    plain = run(name, alike, iterates="all", stack=False, **setting)
    assert not calls
    stacked = run(name, alike, iterates="all", **setting)
    assert calls
    assert stacked.ledger == plain.ledger
    tolerance = ROUNDING if dtype == np.float64 else 1e-3
    held = [
        [
            shared_matrix_of(found.output),
            *([found.output["heads"]] if "heads" in plain.output else []),
        ]
        for found in (stacked, plain)
    ]
    for ours, theirs in zip(*held, strict=True):
        assert ours.dtype == theirs.dtype
        assert_close(ours, theirs, tolerance)
    for column in ("objective", "subspace_distance"):
        np.testing.assert_allclose(
            stacked.columns[column], plain.columns[column], rtol=0, atol=100 * tolerance
        )


# --- communication ------------------------------------------------------------------------------


@every_setting_and_start
def test_the_ledger_says_what_the_closed_form_says(name, setting, with_start, clients):
    start = starting_basis(clients[0].shape[1]) if with_start else None
    found = run(name, clients, start=start, measure=[], **setting)
    shape = Shape(len(clients), sum(map(len, clients)), clients[0].shape[1])
    assert found.ledger.cost() == found.algorithm.communication(found.settings, shape)
    assert (found.ledger.privacy is not None) == found.algorithm.private(found.settings)
    assert found.ledger.bytes_up == 8 * found.ledger.scalars_up
    assert found.ledger.bytes_down == 8 * found.ledger.scalars_down


@every_setting_and_start
def test_single_precision_data_halve_the_bytes_and_nothing_else(name, setting, with_start, clients):
    start = starting_basis(clients[0].shape[1]) if with_start else None
    single = [client.astype(np.float32) for client in clients]
    found = run(name, single, start=start, measure=[], **setting)
    shape = Shape(len(clients), sum(map(len, clients)), clients[0].shape[1])
    assert found.ledger.cost() == found.algorithm.communication(found.settings, shape)
    assert found.ledger.bytes_up == 4 * found.ledger.scalars_up
    assert found.ledger.bytes_down == 4 * found.ledger.scalars_down


@every_algorithm
def test_single_precision_data_give_the_same_subspace_to_single_precision(name, clients):
    single = run(name, [client.astype(np.float32) for client in clients])
    double = run(name, clients)
    # 6e-8 per operation, times the condition number of V, below 1e3 at the defaults.
    assert_close(single.basis @ single.basis.T, double.basis @ double.basis.T, 2e-4)


@every_algorithm
def test_evaluation_is_free(name, clients):
    silent, measured = run(name, clients, measure=[]), run(name, clients, iterates="all")
    assert silent.ledger == measured.ledger
    assert silent.basis.tobytes() == measured.basis.tobytes()


# --- bad input ----------------------------------------------------------------------------------


def refuse(name: str, clients: Any, n_components: Any = RANK, **params: Any) -> str:
    """Return the message, one line, with which a run is refused."""
    needs = {"sigma_max": 1.0, "sigma_r": 1.0}
    fields = [field.name for field in dataclasses.fields(algorithms.get(name).module.Params)]
    known = {key: value for key, value in needs.items() if key in fields}
    with pytest.raises(InputError) as caught:
        fedcore.run(name, clients, n_components, **{**known, **params})
    message = str(caught.value)
    assert "\n" not in message
    return message


@every_algorithm
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_number_that_is_none_is_refused_with_its_place(name, value, clients):
    clients[1][4, 2] = value
    message = refuse(name, clients)
    assert f"client 1 has {value}" in message and "row 4, feature 2" in message


@every_algorithm
def test_unfit_client_data_are_refused_by_the_name_of_the_client(name, clients):
    assert "client 2 has 8 features, client 0 has 9" in refuse(
        name, [*clients[:2], clients[2][:, :8]]
    )
    assert "client 1 is empty" in refuse(name, [clients[0], np.empty((0, 9))])
    assert "client 0: expected a 2-D" in refuse(name, [clients[0][0]])
    assert "client 0: dtype <U1 is not numeric" in refuse(name, [np.full((9, 9), "a")])
    assert "client 0: dtype object is not numeric" in refuse(name, [np.full((9, 9), None)])
    assert "client 0: dtype complex128 is not numeric" in refuse(name, [np.full((9, 9), 1j)])
    assert "at least one client" in refuse(name, [])
    assert "pass [matrix]" in refuse(name, clients[0])


@every_algorithm
def test_data_that_are_all_zero_are_refused_unless_that_would_tell(name):
    """A private run may not reveal that all rows are zero: a neighbour has a non-zero row."""
    zeros = [np.zeros((30, 9)), np.zeros((30, 9))]
    if getattr(algorithms.get(name).module.Params, "epsilon", None) is not None:  # by default
        assert np.isfinite(fedcore.run(name, zeros, RANK).components).all()
    else:
        assert "zero" in refuse(name, zeros)


@every_algorithm
def test_a_rank_that_the_data_cannot_have_is_refused(name, clients):
    message = refuse(name, clients, 10)
    assert "n_components = 10" in message and "= 9" in message
    message = refuse(name, [clients[0][:2]], 3)
    assert "n_components = 3" in message and "= 2" in message
    for value in (0, -1, 2.0, "3", True, None):
        assert "n_components" in refuse(name, clients, value)


@every_algorithm
def test_a_start_that_does_not_fit_is_refused(name, clients):
    good = starting_basis(9)
    assert "start has shape (9, 2), expected (9, 3)" in refuse(name, clients, start=good[:, :2])
    assert "start has shape (3, 9), expected (9, 3)" in refuse(name, clients, start=good.T)
    assert "start contains NaN" in refuse(name, clients, start=good * np.nan)
    assert "start has rank 2" in refuse(name, clients, start=good[:, [0, 1, 1]])
    assert "start must hold numbers" in refuse(name, clients, start="top")


@every_algorithm
def test_unknown_names_get_a_suggestion(name, clients):
    assert f"{name} has no parameter 'strat': did you mean 'start'?" in refuse(
        name, clients, strat=1
    )
    message = refuse_name(name + "x", clients)
    assert f"unknown algorithm '{name}x': did you mean '{name}'?" in message


def refuse_name(name: str, clients: list[np.ndarray]) -> str:
    with pytest.raises(InputError) as caught:
        fedcore.run(name, clients, RANK)
    return str(caught.value)


WRONG = {
    "a whole number": [-1, 1.5, "3", True],
    "a finite number": [np.nan, np.inf, "x", True, 10**400],
    "true or false": ["no", 2, None],
    "one of": ["no such name", 3],
}
DESCRIBED = {name: describe(algorithms.get(name).module.Params) for name in NAMES}


@pytest.mark.parametrize(
    ("name", "parameter", "value"),
    [
        pytest.param(name, known.name, value, id=f"{name}-{known.name}={str(value)[:9]}")
        for name in NAMES
        for known in DESCRIBED[name]
        for value in [
            *(v for words, wrong in WRONG.items() if known.kind.startswith(words) for v in wrong),
            *(v for parameter, v in case_of(name).refused if parameter == known.name),
        ]
    ],
)
def test_a_parameter_out_of_range_is_refused_by_its_name(name, parameter, value, clients):
    params = {"n_components": RANK, parameter: value}
    assert parameter in refuse(name, clients, **params)


@every_algorithm
def test_every_parameter_is_declared_and_described_and_states_no_default(name):
    for known in DESCRIBED[name]:
        assert known.sentence.endswith("."), known
        assert "default" not in known.sentence, known
        assert known.kind.startswith(tuple(WRONG)) or known.name == "start", known
    for owner in algorithms.get(name).module.Params.__mro__:
        assert "default" not in (inspect.getdoc(owner) or "") or owner is object


@every_algorithm
def test_a_missing_parameter_is_named(name):
    with pytest.raises(InputError, match=f"{name} needs the parameter 'n_components'"):
        algorithms.get(name).params({})


def test_the_table_of_cases_names_no_algorithm_that_is_gone():
    assert set(CASES) <= set(NAMES)


@every_algorithm
def test_an_algorithm_says_what_it_is(name):
    algorithm = algorithms.get(name)
    assert algorithm.title.endswith(".") and "\n" not in algorithm.title
    assert algorithm.paper
    assert {"n_components", "start"} <= {
        f.name for f in dataclasses.fields(algorithm.module.Params)
    }
