"""Measures of a subspace of the features."""

from __future__ import annotations

from fedcore.linalg import range_basis, sin_theta
from fedcore.metrics import Iterate, Metric, shared_matrix
from fedcore.problems import Problem


def subspace_distance(iterate: Iterate, problem: Problem) -> float:
    """Return the sine of the largest angle between range(V) and the top right singular space."""
    matrix = shared_matrix(iterate)
    return sin_theta(range_basis(matrix).basis, problem.right_vectors[:, : matrix.shape[1]])


METRICS = (
    Metric(
        "subspace_distance",
        "1",
        "sine of the largest angle to the top right singular subspace of S",
        subspace_distance,
    ),
)
