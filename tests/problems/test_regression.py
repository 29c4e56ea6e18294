"""Linear regressions with a shared representation: model, starts, metrics, methods, theory."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import fedcore
from fedcore import algorithms, metrics
from fedcore.errors import InputError
from fedcore.experiments import build
from fedcore.generators import generate
from fedcore.iterates import Iterate
from fedcore.problems import storage
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.problems.regression import least_squares
from fedcore.recorder import Recording
from fedcore.runs import execute
from refused import refused

DISTANCE = "representation_distance"


def draw(seed=0, **params):
    sizes = {"n_clients": 40, "samples": 6, "n_features": 8, "rank": 2, "heads": "assumption"}
    clients, truth = generate("shared_heads", np.random.default_rng(seed), sizes | params)
    return Problem("drawn", clients, truth=truth)


def run(name, problem, measure=(DISTANCE,), seed=0, **params):
    algorithm = algorithms.get(name)
    settings = algorithm.params({"n_components": 2, **params})
    recording = Recording([metrics.get(m) for m in measure])
    return execute(algorithm, problem, settings, seed, recording)


def measured(problem, name, **iterate):
    return metrics.get(name).function(Iterate(**iterate), problem)


# --- least squares ------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(9, 7, 3), (9, 3, 3), (9, 2, 3), (7, 3), (2, 3)])
def test_least_squares_is_numpys_for_each_of_a_stack(shape):
    rng = np.random.default_rng(1)
    A, y = rng.standard_normal(shape), rng.standard_normal(shape[:-1])
    found = least_squares(A, y)
    for a, b, w in zip(A.reshape(-1, *shape[-2:]), y.reshape(-1, shape[-2]),
                       found.reshape(-1, shape[-1]), strict=True):  # fmt: skip
        expected = np.linalg.lstsq(a, b, rcond=None)[0]
        # Rounding, times the condition of the worst of nine Gaussian 3 x 3 matrices.
        np.testing.assert_allclose(w, expected, rtol=1e-9, atol=1e-11)


def test_least_squares_of_columns_that_are_alike_is_that_of_smallest_norm():
    rng = np.random.default_rng(2)
    a, y = rng.standard_normal((4, 5, 1)), rng.standard_normal((4, 5))
    w = least_squares(np.concatenate([a, a], axis=-1), y)
    np.testing.assert_allclose(w[:, 0], w[:, 1], rtol=1e-9)
    np.testing.assert_allclose(w.sum(axis=1), [a[i, :, 0] @ y[i] / (a[i] ** 2).sum() for i in
                                               range(4)], rtol=1e-9)  # fmt: skip


# --- the model ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heads", "gram", "rows"),
    [("scaled", 2.0, None), ("orthonormal", 1.0, None), ("unit_rows", None, 1.0),
     ("assumption", None, np.sqrt(2))],
)  # fmt: skip
def test_heads_are_as_long_as_their_reading_says(heads, gram, rows):
    truth = draw(heads=heads).truth
    if gram:
        np.testing.assert_allclose(truth.heads.T @ truth.heads, gram * np.eye(2), atol=1e-12)
    if rows:
        np.testing.assert_allclose(np.linalg.norm(truth.heads, axis=1), rows, rtol=1e-12)
    B = truth.representation
    np.testing.assert_allclose(B.T @ B, np.eye(2), atol=1e-12)


def test_labels_are_those_of_the_model_with_noise_of_the_given_deviation():
    exact = draw(n_clients=200, samples=50)
    for X, y, theta in zip(exact.clients, exact.clients.labels, exact.truth.models, strict=True):
        np.testing.assert_allclose(y, X @ theta, atol=1e-12)
    noisy = draw(n_clients=200, samples=50, noise=0.3)
    residual = noisy.clients.labels - np.einsum(
        "nmd,nd->nm", noisy.clients.stack, noisy.truth.models
    )
    assert residual.std() == pytest.approx(0.3, rel=0.03)  # 10 000 draws: four standard errors
    assert noisy.clients.stack.std() == pytest.approx(1, rel=0.02)


def test_draws_of_a_problem_differ_and_come_back_from_the_file(tmp_path):
    spec = {
        "generator": "shared_heads",
        "params": {"n_features": 6, "samples": 4, "noise": 0.1, "test_samples": 3},
        "draws": 2,
        "over": {"n_clients": [5, 7]},
    }
    made = build.build_draws("many", spec, raw="", seed=3, surrogate=False)
    assert [len(p.clients) for p in made] == [5, 5, 7, 7]
    assert len({p.checksum for p in made}) == 4
    storage.save(made, tmp_path / "many.h5")
    loaded = storage.load_draws(tmp_path / "many.h5")
    assert [p.setting for p in loaded] == [{"n_clients": n} for n in (5, 5, 7, 7)]
    for ours, theirs in zip(loaded, made, strict=True):
        assert ours.checksum == theirs.checksum
        np.testing.assert_array_equal(ours.clients.stack, theirs.clients.stack)
        np.testing.assert_array_equal(ours.clients.labels, theirs.clients.labels)
        for a, b in zip(ours.truth, theirs.truth, strict=True):
            np.testing.assert_array_equal(a, b)
    # What is loaded has the checksum that its data have.
    again = Problem("x", Clients(loaded[0].clients.stack, labels=loaded[0].clients.labels))
    assert again.checksum == made[0].checksum


# --- metrics ------------------------------------------------------------------------------------


def test_the_distance_of_heads_is_the_mean_over_pairs():
    problem = draw(n_clients=3)
    a, b, c = problem.truth.heads
    pairs = [np.linalg.norm(x - y) for x, y in ((a, b), (a, c), (b, c))]
    iterate = Iterate(problem.truth.representation)
    assert metrics.get("head_distance").function(iterate, problem) == pytest.approx(np.mean(pairs))


def test_the_population_error_is_what_many_test_samples_give():
    problem = draw(test_samples=20_000, n_clients=5, samples=3, noise=0.2, test_noise=0.2)
    rng = np.random.default_rng(5)
    models = problem.truth.models + 0.3 * rng.standard_normal((5, 8))
    iterate = {"basis": rng.standard_normal((8, 2)), "models": models}
    expected = measured(problem, "population_error", **iterate)
    assert expected == pytest.approx(0.5 * np.mean(np.sum((models - problem.truth.models) ** 2, 1)))
    # 100 000 squares of Gaussians: relative standard error √2 / 316 = 0.45 %.
    assert measured(problem, "test_error", **iterate) == pytest.approx(expected, rel=0.02)
    noisy = expected + 0.5 * 0.2**2
    assert measured(problem, "noisy_population_error", **iterate) == pytest.approx(noisy)
    assert measured(problem, "noisy_test_error", **iterate) == pytest.approx(noisy, rel=0.02)


@pytest.mark.parametrize("uneven", [False, True])
def test_losses_are_those_of_plain_loops(uneven):
    problem = draw(noise=0.1)
    if uneven:
        problem = Problem("cut", Clients([c[: 3 + i % 3] for i, c in enumerate(problem.clients)],
                          labels=[y[: 3 + i % 3] for i, y in enumerate(problem.clients.labels)]),
                          truth=problem.truth)  # fmt: skip
    rng = np.random.default_rng(6)
    B, models = rng.standard_normal((8, 2)), rng.standard_normal((40, 8))
    own, best, error = [], [], []
    pairs = zip(problem.clients, problem.clients.labels, strict=True)
    for i, (X, y) in enumerate(pairs):
        own.append(np.mean((X @ models[i] - y) ** 2) / 2)
        w = np.linalg.lstsq(X @ B, y, rcond=None)[0]
        best.append(np.mean((X @ B @ w - y) ** 2) / 2)
        error.append(np.sum((B @ w - problem.truth.models[i]) ** 2) / 2)
    iterate = {"basis": B, "models": models}
    for name, expected in (("training_loss", own), ("fitted_loss", best), ("fitted_error", error)):
        assert measured(problem, name, **iterate) == pytest.approx(np.mean(expected), rel=1e-9)


def test_the_distance_is_the_sine_of_the_largest_principal_angle():
    from scipy.linalg import subspace_angles

    problem, B = draw(), np.random.default_rng(7).standard_normal((8, 2))
    expected = np.sin(subspace_angles(B, problem.truth.representation)[0])
    assert measured(problem, DISTANCE, basis=B) == pytest.approx(expected, rel=1e-9)
    turned = problem.truth.representation @ np.array([[2.0, 1.0], [0.0, 3.0]])
    assert measured(problem, DISTANCE, basis=turned) < 1e-14


@pytest.mark.parametrize("samples", [1, 2, 5])
def test_new_clients_fit_a_head_to_their_first_samples(samples):
    problem = draw(new_clients=7, new_samples=5, noise=0.1)
    truth, B = problem.truth, np.random.default_rng(8).standard_normal((8, 2))
    errors = []
    for X, y, w in zip(truth.new_features, truth.new_labels, truth.new_heads, strict=True):
        found = B @ np.linalg.lstsq(X[:samples] @ B, y[:samples], rcond=None)[0]
        errors.append(np.sum((found - truth.representation @ w) ** 2) / 2)
    name = f"new_client_error_{samples}"
    assert measured(problem, name, basis=B) == pytest.approx(np.mean(errors), rel=1e-9)
    alone = measured(problem, name, basis=B, features=np.eye(8))
    whole = [np.linalg.lstsq(X[:samples], y[:samples], rcond=None)[0]
             for X, y in zip(truth.new_features, truth.new_labels, strict=True)]  # fmt: skip
    expected = np.mean(np.sum((np.array(whole) - truth.new_heads @ truth.representation.T) ** 2, 1))
    assert alone == pytest.approx(expected / 2, rel=1e-9)


def test_new_clients_that_know_the_representation_have_its_error_for_every_iterate():
    problem = draw(new_clients=7, new_samples=5, noise=0.1)
    B = np.random.default_rng(8).standard_normal((8, 2))
    own = measured(problem, "new_client_error_3", basis=problem.truth.representation)
    assert measured(problem, "exact_new_client_error_3", basis=B) == own
    assert measured(problem, "new_client_error_3", basis=B) > 2 * own


def test_the_least_error_of_one_model_is_that_of_section_2_1():
    """(1/2n) Σᵢ ‖(1/n) B* Σ_j (w*_j − w*_i)‖², and no other single model has less."""
    problem = draw()
    B, W = problem.truth.representation, problem.truth.heads
    printed = np.mean([np.sum((B @ (W - w).mean(axis=0)) ** 2) for w in W]) / 2
    found = measured(problem, "single_model_error", basis=B)
    assert found == pytest.approx(printed, rel=1e-12)
    for change in (0.0, 0.1):
        models = np.tile((W.mean(axis=0) + change) @ B.T, (len(W), 1))
        error = measured(problem, "population_error", basis=B, models=models)
        assert error == pytest.approx(found + change**2, rel=1e-12)  # two coordinates, half


@pytest.mark.parametrize(
    "name", ["test_error", "new_client_error_5", DISTANCE, "training_loss", "head_distance"]
)
def test_what_a_problem_lacks_is_said_in_one_sentence(name, problem):
    without = draw() if name in ("test_error", "new_client_error_5") else problem
    iterate = {"basis": np.eye(8)[:, :2], "models": np.zeros((40, 8))}
    refused(lambda: measured(without, name, **iterate), InputError)


# --- methods ------------------------------------------------------------------------------------


def test_moments_find_the_representation_from_many_samples():
    """(1/n) Σ y² x xᵀ has expectation (2 B M Bᵀ + tr M · I), M the heads' second moment."""
    recorder, _ = run("fedrep_linear", draw(n_clients=500, samples=200), rounds=0)
    assert recorder.rows[0][DISTANCE] < 0.05  # √(d / n m) = 0.009 times constants


@pytest.mark.parametrize("name", ["fedrep_linear", "fedsgd_linear"])
@pytest.mark.parametrize("scale", [1e80, 1e-80, 1e-100])
def test_moments_that_leave_the_range_are_refused(name, scale):
    """Fourth powers: 1e80 ended in a traceback, 1e-100 in an arbitrary start."""
    problem = draw()
    clients = [scale * x for x in problem.clients]
    labels = [scale * y for y in problem.clients.labels]
    refused(lambda: fedcore.run(name, clients, 2, labels=labels, rounds=1), InputError, "float64")


def test_projected_descent_solves_the_unfactored_problem_when_samples_determine_it():
    problem = draw(n_clients=30, samples=60)
    recorder, _ = run("fedrep_linear", problem, ("population_error", DISTANCE), rounds=0,
                           init="pgd", init_rounds=150, init_step=0.5)  # fmt: skip
    assert recorder.rows[0][DISTANCE] < 1e-10
    assert recorder.rows[0]["population_error"] < 1e-20  # the heads, too


@pytest.mark.parametrize("participation", [1.0, 0.3])
def test_fedrep_solves_labels_without_noise(participation):
    problem = draw(n_clients=100, samples=8)
    recorder, _ = run("fedrep_linear", problem, (DISTANCE, "fitted_error"), rounds=300, step=0.5,
                      participation=participation)  # fmt: skip
    assert recorder.rows[-1][DISTANCE] < 1e-8
    assert recorder.rows[-1]["fitted_error"] < 1e-16


def test_fedreps_rate_is_at_least_that_of_theorem_1():
    problem = draw(n_clients=50, samples=10 * 41, n_features=10)
    sigma = problem.truth.head_singular_values
    recorder, _ = run("fedrep_linear", problem, rounds=40, step=0.25, head_sigma=float(sigma[0]),
                      batch=10, fresh=True)  # fmt: skip
    distance = recorder.columns()[DISTANCE]
    eta = 0.25 / sigma[0] ** 2
    factor = 1 - eta * (1 - distance[0] ** 2) * sigma[-1] ** 2 / 2
    bound = factor ** (np.arange(41) / 2) * distance[0]
    assert (distance <= bound).all()
    assert distance[-1] < 0.1 * bound[-1]  # so that the bound could have been missed


def test_local_only_knows_all_when_samples_determine_its_coefficients():
    recorder, _ = run("local_linear", draw(samples=9), ("population_error",))
    assert recorder.rows[0]["population_error"] < 1e-20
    assert recorder.ledger.snapshot()["bytes_up"] == 0
    recorder, _ = run("local_linear", draw(samples=7), ("population_error",))
    assert recorder.rows[0]["population_error"] > 0.01  # one of eight directions is unknown


def test_fedsgd_learns_a_model_that_all_share_and_no_other():
    same = draw(n_clients=30, samples=20)
    labels = np.einsum("nmd,d->nm", same.clients.stack, same.truth.models[0])
    truth = same.truth._replace(heads=np.tile(same.truth.heads[0], (30, 1)))
    shared = Problem("same", Clients(same.clients.stack, labels=labels), truth=truth)
    last = run("fedsgd_linear", shared, ("population_error",), rounds=500, step=0.3)[0].rows[-1]
    assert last["population_error"] < 1e-12
    last = run("fedsgd_linear", same, ("population_error",), rounds=500, step=0.3)[0].rows[-1]
    mean = same.truth.models.mean(axis=0)
    spread = 0.5 * np.mean(np.sum((same.truth.models - mean) ** 2, axis=1))
    assert last["population_error"] > 0.9 * spread


def test_a_run_that_diverges_ends_there_and_says_so():
    wild = {"step": 50.0, "orthonormalise": False, "head_steps": 1, "head_step": 5.0}

    def ended(*measures):
        recorder, output = run("fedrep_linear", draw(), measures, rounds=300, **wild)
        columns = recorder.columns()
        records = len(columns["round"])
        assert records < 300
        np.testing.assert_array_equal(columns["diverged"], [0] * (records - 1) + [1])
        for measure in measures:
            assert np.isfinite(columns[measure][:-1]).all()
        return columns, output["V"], records

    columns, V, by_iterate = ended(DISTANCE)
    assert np.isnan(columns[DISTANCE][-1]) and not np.isfinite(V).all()
    columns, V, by_measure = ended(DISTANCE, "training_loss")  # overflows sooner: a square
    assert by_measure < by_iterate
    assert not np.isfinite(columns["training_loss"][-1]) and np.isfinite(V).all()


def test_samples_that_run_out_are_refused():
    call = partial(run, "fedrep_linear", draw(samples=6), rounds=9, fresh=True)
    refused(partial(call, batch=2), InputError, "round 3", "8 samples", "6")
    refused(call, InputError, "batch")


REST = [np.zeros(8), np.zeros(12)]


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ([np.zeros(3)], "4 clients"),
        ([np.zeros(3), np.zeros(16), *REST], "client 1"),
        ([np.zeros(3), np.full(17, np.nan), *REST], "client 1"),
        ([np.array(["a"] * 3), np.zeros(17), *REST], "client 0"),
        (7, "labels"),
        ({"a": np.zeros(3)}, "clients"),
    ],
)
def test_unfit_labels_are_refused_with_their_place(clients, labels, name):
    refused(lambda: fedcore.run("fedrep_linear", clients, 2, labels=labels), InputError, name)


def test_the_library_takes_labels(clients):
    labels = [c @ np.arange(1.0, 10.0) for c in clients]
    result = fedcore.run("fedrep_linear", clients, 2, labels=labels, measure=["training_loss"])
    assert result.components.shape == (2, 9)
    loss = result.history["training_loss"]
    assert loss[-1] < loss[0]
    again = fedcore.run("fedrep_linear", clients, 2, labels=iter(labels))
    np.testing.assert_array_equal(again.components, result.components)
