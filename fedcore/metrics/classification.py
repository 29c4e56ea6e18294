"""Metrics of the clients' classifiers: the share of samples that are classified correctly.

The predicted class is the first class with the highest score. A client's accuracy is the share of
its own samples with a correct prediction. Each metric is the unweighted mean of the clients'
accuracies, as in Table 1 of Collins, Hassani, Mokhtari & Shakkottai (ICML 2021).
"""

from __future__ import annotations

import numpy as np

from fedcore.errors import InputError
from fedcore.iterates import Iterate
from fedcore.metrics import intermediate, metric
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.words import client


@intermediate
def test_accuracies(iterate: Iterate, problem: Problem) -> np.ndarray:
    """Return the accuracy of every client on its held-out samples, shape (n_clients,)."""
    if problem.held_out is None:
        raise InputError(f"problem {problem.name} has no held-out samples: give it 'held_out'")
    return _accuracies(iterate, problem.held_out)


@metric(
    "share of samples",
    "mean over clients of the accuracy on held-out samples",
    each=test_accuracies,
)
def test_accuracy(iterate: Iterate, problem: Problem) -> float:
    """Return the clients' mean accuracy on held-out samples."""
    return float(test_accuracies(iterate, problem).mean())


@intermediate
def training_accuracies(iterate: Iterate, problem: Problem) -> np.ndarray:
    """Return the accuracy of every client on its training samples, shape (n_clients,)."""
    return _accuracies(iterate, problem.clients)


@metric(
    "share of samples",
    "mean over clients of the accuracy on the samples trained on",
    each=training_accuracies,
)
def training_accuracy(iterate: Iterate, problem: Problem) -> float:
    """Return the clients' mean accuracy on training samples."""
    return float(training_accuracies(iterate, problem).mean())


def _accuracies(iterate: Iterate, samples: Clients) -> np.ndarray:
    if iterate.classifiers is None:
        raise InputError(
            "this metric needs classifiers, and the algorithm learns none: take another metric"
        )
    if samples.labels is None:
        raise InputError("this metric needs labels, and the data have none: take another metric")
    scores = iterate.classifiers.scores(samples[:])
    pairs = list(zip(scores, samples.labels, strict=True))
    for i, (found, y) in enumerate(pairs):
        unknown = ~np.isin(y, np.arange(found.shape[1]))
        if unknown.any():
            raise InputError(
                f"{client(i)} is measured on a sample with the label {y[unknown][0]:g}: the "
                f"classes are 0 to {found.shape[1] - 1}"
            )
    return np.array([np.mean(found.argmax(axis=1) == y) for found, y in pairs])


METRICS = (test_accuracy, training_accuracy)
