"""Metrics of a learnt subspace of the feature space.

S stacks the clients' samples, V is the algorithm's current matrix that all clients share, and Z is
an orthonormal basis of range(V).
"""

from __future__ import annotations

import numpy as np

from fedcore.iterates import Iterate
from fedcore.linalg import column_space, sin_theta
from fedcore.metrics import metric
from fedcore.problems.problem import Problem


@metric("1", "sine of the largest angle to the top right singular subspace of S")
def subspace_distance(iterate: Iterate, problem: Problem) -> float:
    """Return the sine of the largest angle between range(V) and the top right singular space.

    This is the space of the top right singular vectors of S, as many as V has columns.
    """
    matrix = iterate.shared
    return sin_theta(column_space(matrix), problem.leading_vectors(matrix.shape[1]))


@metric("1", "sine of the largest angle of the wanted top right singular subspace of S to range(Z)")
def projection_distance(iterate: Iterate, problem: Problem) -> float:
    """Return ``‖(I − Z Zᵀ) U_k‖₂``, the sine of the largest angle from range(U_k) to range(Z).

    The columns of U_k are the k top right singular vectors of S. The number k is the number of
    directions that the algorithm shall find (``iterate.target``) or, by default, the number of
    columns of V. Guo et al. (FedPower) use this metric.
    """
    matrix = iterate.shared
    k = matrix.shape[1] if iterate.target is None else iterate.target
    return sin_theta(column_space(matrix), problem.leading_vectors(k))


@metric("1", "largest spectral norm of Z_i D_i - Z_1 over the clients, before the communication")
def misalignment(iterate: Iterate, problem: Problem) -> float:
    """Return ``maxᵢ ‖Zᵢ Dᵢ − Z₁‖₂``, where the matrix Dᵢ aligns client i's basis Zᵢ with Z₁.

    ``iterate.local`` has the aligned bases ``Zᵢ Dᵢ``. The metric is ρ_t of LocalPower and FedPower
    (Guo et al., Definition 5). The metric is zero if all clients have the same basis.
    """
    bases = iterate.local
    return max((float(np.linalg.norm(Z - bases[0], 2)) for Z in bases), default=0.0)


@metric("1", "squared sine of the largest angle to the top right singular subspace of S")
def sin_squared(iterate: Iterate, problem: Problem) -> float:
    """Return the squared `subspace_distance`.

    If V is one unit vector x, the value is 1 − ⟨v₁, x⟩², where v₁ is the top right singular vector
    of the stacked samples S.
    """
    return subspace_distance.value(iterate, problem) ** 2


METRICS = (subspace_distance, projection_distance, misalignment, sin_squared)
