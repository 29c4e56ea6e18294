"""Metrics of linear regressions with a shared representation.

An iterate (the current result of an algorithm) has the representation B as ``basis``, and the
coefficients θᵢ of every client as rows of ``models``. ``training_loss``, ``population_error`` and
``test_error`` measure the models θᵢ. The ``fitted_…`` metrics replace each client's model by B wᵢ,
where wᵢ is the best head for B on the client's training samples. Once a method has converged, each
``fitted_…`` metric agrees with the metric of the clients' own models, unless the method trains one
head for all clients. Every loss is half a mean square, as in equations (7) and (8) of Collins,
Hassani, Mokhtari & Shakkottai (ICML 2021).
"""

from __future__ import annotations

import numpy as np

from fedcore.errors import InputError
from fedcore.iterates import Iterate
from fedcore.linalg import column_space, sin_theta
from fedcore.metrics import Metric, intermediate, metric
from fedcore.problems.clients import Labelled
from fedcore.problems.problem import Problem
from fedcore.problems.regression import Truth, least_squares, predict
from fedcore.words import counted

LOSS = "label units squared"
NEW_SAMPLES = (1, 2, 3, 5, 10, 15, 20, 30, 40)  # samples of a new client in Figure 4


@metric("1", "sine of the largest principal angle between range(B) and range(B*)")
def representation_distance(iterate: Iterate, problem: Problem) -> float:
    """Return the sine of the largest principal angle between range(B) and range(B*).

    B* is the true representation. The metric is Definition 1 of Collins et al. (ICML 2021).
    """
    return sin_theta(column_space(iterate.shared), _truth(problem).representation)


@metric(LOSS, "loss (8) of the clients' models")
def training_loss(iterate: Iterate, problem: Problem) -> float:
    """Return the mean of the clients' losses, for their models on their own samples.

    This mean is the global loss (8) of Collins et al. (ICML 2021).
    """
    return _loss(_models(iterate), problem)


@metric(LOSS, "smallest loss (8) over the heads, at B")
def fitted_loss(iterate: Iterate, problem: Problem) -> float:
    """Return the `training_loss` that results if every client uses its best head for B."""
    return _loss(_fitted(iterate, problem), problem)


@metric(LOSS, "‖Θ − W* B*ᵀ‖²_F / 2n")
def population_error(iterate: Iterate, problem: Problem) -> float:
    """Return ``‖Θ − W* B*ᵀ‖²_F / 2n``, the expected test error for labels without noise.

    The rows of Θ are the clients' n models, and the rows of W* B*ᵀ are the true models. The
    notebook of Collins et al. calls this error F.
    """
    return _half_mean_square(_models(iterate) - _truth(problem).models)


@metric(LOSS, "‖Θ − W* B*ᵀ‖²_F / 2n + σ²/2")
def noisy_population_error(iterate: Iterate, problem: Problem) -> float:
    """Return the clients' expected test error, if test labels are as noisy as training labels."""
    return population_error.value(iterate, problem) + 0.5 * float(_truth(problem).noise) ** 2


@metric(LOSS, "population error with heads fitted at B")
def fitted_error(iterate: Iterate, problem: Problem) -> float:
    """Return `population_error` with heads refitted to the training samples for B."""
    return _half_mean_square(_fitted(iterate, problem) - _truth(problem).models)


@metric(LOSS, "half mean square on test samples, no noise")
def test_error(iterate: Iterate, problem: Problem) -> float:
    """Return half the mean squared error of the clients' models on noise-free test samples."""
    return _test_error(_models(iterate), problem, noise=False)


@metric(LOSS, "half mean square on noisy test labels")
def noisy_test_error(iterate: Iterate, problem: Problem) -> float:
    """Return half the mean squared error of the clients' models on noisy test samples."""
    return _test_error(_models(iterate), problem, noise=True)


@metric(LOSS, "half mean square on test samples, no noise, heads fitted at B")
def fitted_test_error(iterate: Iterate, problem: Problem) -> float:
    """Return `test_error` with heads refitted to the training samples for B."""
    return _test_error(_fitted(iterate, problem), problem, noise=False)


@metric(LOSS, "half mean square on noisy test labels, heads fitted at B")
def fitted_noisy_test_error(iterate: Iterate, problem: Problem) -> float:
    """Return `noisy_test_error` with heads refitted to the training samples for B."""
    return _test_error(_fitted(iterate, problem), problem, noise=True)


def new_client_error(samples: int) -> Metric:
    """Make a metric of the error of clients that join after training.

    Each new client fits its head to `samples` samples. The metric is the expected test error,
    averaged over the new clients. If the algorithm's result has a matrix ``features``, new clients
    use this matrix in place of the representation B.
    """

    def measure(iterate: Iterate, problem: Problem) -> float:
        truth = _truth(problem)
        if truth.new_features.shape[1] < samples or not len(truth.new_heads):
            raise InputError(
                f"new_client_error_{samples} needs new clients with {counted(samples, 'sample')}, "
                f"but problem {problem.name} has {counted(len(truth.new_heads), 'new client')} "
                f"with {counted(truth.new_features.shape[1], 'sample')}"
            )
        features = iterate.shared if iterate.features is None else iterate.features
        X, y = truth.new_features[:, :samples], truth.new_labels[:, :samples]
        found = least_squares(X @ features, y) @ features.T
        return _half_mean_square(found - truth.new_heads @ truth.representation.T)

    text = f"population error of new clients with {samples} samples"
    return Metric(f"new_client_error_{samples}", LOSS, text, measure)


def exact_new_client_error(samples: int) -> Metric:
    """Make the metric `new_client_error` for new clients that know the true representation B*.

    The metric does not depend on what the algorithm learns. The error is not zero, because a
    client's samples do not determine its head exactly.
    """
    own = new_client_error(samples)

    def measure(iterate: Iterate, problem: Problem) -> float:
        return own.function(Iterate(_truth(problem).representation), problem)

    text = f"population error of new clients with {samples} samples that know B*"
    return Metric(f"exact_new_client_error_{samples}", LOSS, text, measure)


@metric(LOSS, "least population error of one model")
def single_model_error(iterate: Iterate, problem: Problem) -> float:
    """Return ``Σᵢ ‖W̄ − w*ᵢ‖² / 2n`` for the true heads w*ᵢ of n clients and their mean W̄.

    No single model for all clients can have a smaller population error (Collins et al., ICML 2021,
    Section 2.1).
    """
    heads = _truth(problem).heads
    return _half_mean_square(heads - heads.mean(axis=0))


def _models(iterate: Iterate) -> np.ndarray:
    if iterate.models is None:
        raise InputError(
            "this metric needs models of labels, and the algorithm learns none: take another metric"
        )
    return iterate.models


def _truth(problem: Problem) -> Truth:
    if problem.truth is None:
        raise InputError(
            f"the model behind the labels of problem {problem.name} is not known: take another "
            "metric"
        )
    return problem.truth


def _samples(problem: Problem) -> list[Labelled]:
    """Return the training samples as one stack if all clients have equal size, else per client."""
    clients = problem.clients
    if clients.labels is None:
        raise InputError(f"problem {problem.name} has no labels: take another metric")
    if clients.uniform:
        return [clients.labelled_stack]
    return [Labelled(*(part[None] for part in clients.labelled(i))) for i in range(len(clients))]


@intermediate
def _fitted(iterate: Iterate, problem: Problem) -> np.ndarray:
    """Return the coefficients ``B wᵢ`` with each client's best head wᵢ, shape (n_clients, d)."""
    B = iterate.shared
    return np.concatenate([least_squares(X @ B, y) for X, y in _samples(problem)]) @ B.T


def _loss(models: np.ndarray, problem: Problem) -> float:
    """Return half the mean of the clients' mean squared residuals."""
    found, done = [], 0
    for X, y in _samples(problem):
        residual = predict(X, models[done : done + len(X)]) - y
        found.append((residual**2).mean(axis=-1))
        done += len(X)
    return 0.5 * float(np.concatenate(found).mean())


def _test_error(models: np.ndarray, problem: Problem, *, noise: bool) -> float:
    truth = _truth(problem)
    if not truth.test_noise.size:
        raise InputError(f"problem {problem.name} has no test samples: take another metric")
    wrong = predict(truth.test_features, models - truth.models)
    return 0.5 * float(np.mean((wrong - noise * truth.test_noise) ** 2))


def _half_mean_square(rows: np.ndarray) -> float:
    """Return half the mean of the rows' squared lengths."""
    return 0.5 * float(np.sum(rows**2) / len(rows))


METRICS = (
    representation_distance,
    training_loss,
    fitted_loss,
    population_error,
    noisy_population_error,
    fitted_error,
    test_error,
    noisy_test_error,
    fitted_test_error,
    fitted_noisy_test_error,
    *map(new_client_error, NEW_SAMPLES),
    *map(exact_new_client_error, NEW_SAMPLES),
    single_model_error,
)
