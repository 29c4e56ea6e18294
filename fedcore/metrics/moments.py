"""Metrics of what clients reveal about their samples with the hyper-parameter ``init: moments``.

The metrics do not depend on what the algorithm learns. With ``init: moments``, a client with
samples (x, y) sends, at the start of a run, ``M = Σ y² x xᵀ`` (Collins, Hassani, Mokhtari &
Shakkottai, ICML 2021, Section 4.2). For each sample of the client, ``M − v vᵀ`` with v = y x is
positive semidefinite. In other words, v lies in the range of M, and ``vᵀ M⁺ v ≤ 1``. The server can
therefore rule out any sample for which ``M − v vᵀ`` has a negative eigenvalue.
"""

from __future__ import annotations

import numpy as np

from fedcore.errors import InputError
from fedcore.iterates import Iterate
from fedcore.metrics import metric
from fedcore.problems.clients import Labelled
from fedcore.problems.problem import Problem

NO_RANGE = 1e-13  # eigenvalues below this share of the largest one count as zero
ROUNDING = 1e-6  # tolerance for the part of v outside the range (relative), and for vᵀ M⁺ v ≤ 1


@metric("1", "others' samples that Σ y² x xᵀ rules out, less the client's own")
def membership_advantage(iterate: Iterate, problem: Problem) -> float:
    """Return how much more often a client's message M rules out others' samples than its own.

    For one client, the value is the share of all other clients' samples that M rules out, minus the
    share of the client's own samples that M rules out. The metric is the mean over the clients. The
    metric is 0 if messages do not reveal who has a sample, and 1 if messages fully reveal who has a
    sample. Under (ε, 0)-privacy, the metric is at most ``tanh(ε/2)``.
    """
    clients = _clients(problem)
    vectors = [data.y[:, None] * data.X for data in clients]
    found = []
    for i, own in enumerate(vectors):
        others = np.concatenate([*vectors[:i], *vectors[i + 1 :]])
        message = own.T @ own
        found.append(ruled_out(message, others).mean() - ruled_out(message, own).mean())
    return float(np.mean(found))


@metric("1", "|cos| of a sample with Σ y² x xᵀ's eigenvector")
def rebuilt_sample(iterate: Iterate, problem: Problem) -> float:
    """Return how well the leading eigenvector of a client's message M matches one of its samples.

    The match is ``|cos|`` of the angle to the nearest sample x, averaged over the clients.
    """
    found = []
    for X, y in _clients(problem):
        guess = np.linalg.eigh((y[:, None] * X).T @ (y[:, None] * X))[1][:, -1]
        found.append(np.max(np.abs(X @ guess) / np.linalg.norm(X, axis=1)))
    return float(np.mean(found))


def ruled_out(message: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return for each row v of `vectors` whether ``message − v vᵀ`` has a negative eigenvalue."""
    values, basis = np.linalg.eigh(message)
    inside = values > NO_RANGE * values[-1]
    parts = vectors @ basis
    missed = np.linalg.norm(parts[:, ~inside], axis=1)
    outside = missed > ROUNDING * np.linalg.norm(vectors, axis=1)
    return outside | ((parts[:, inside] ** 2 / values[inside]).sum(axis=1) > 1.0 + ROUNDING)


def _clients(problem: Problem) -> list[Labelled]:
    clients = problem.clients
    if clients.labels is None or len(clients) < 2:
        raise InputError(
            f"this metric needs at least two clients with labels, which problem {problem.name} "
            "lacks: take another metric"
        )
    return [clients.labelled(i) for i in range(len(clients))]


METRICS = (membership_advantage, rebuilt_sample)
