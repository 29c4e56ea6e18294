"""Metrics of the differences between the clients' samples, whatever the algorithm learns."""

from __future__ import annotations

import numpy as np

from fedcore.iterates import Iterate
from fedcore.linalg import spectral_norm
from fedcore.metrics import metric
from fedcore.problems.problem import Problem


@metric("1", "largest relative distance of a client's A_i to A")
def dissimilarity(iterate: Iterate, problem: Problem) -> float:
    """Return ``η = maxᵢ ‖Aᵢ − A‖₂ / ‖A‖₂``, where A is the mean of the ``Aᵢ = m SᵢᵀSᵢ``.

    The matrix Sᵢ contains the samples of client i, and m is the number of clients.

    This metric extends Definition 4 of the FedPower paper (Guo et al.) to clients of unequal size.
    For clients of equal size, Aᵢ equals the paper's Aᵢ up to a common factor, which cancels.
    """
    m, right = len(problem.clients), problem.right_vectors
    mean = (right * problem.singular_values**2) @ right.T
    found = (spectral_norm(m * (client.T @ client) - mean) for client in problem.clients)
    return max(found) / float(np.square(problem.singular_values[0]))


METRICS = (dissimilarity,)
