"""Measures of a factorisation S ≈ U Vᵀ."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from fedcore.linalg import condition_number, range_basis
from fedcore.metrics import Iterate, Metric, shared_matrix
from fedcore.problems import Problem


def objective(iterate: Iterate, problem: Problem) -> float:
    """Return ``F = ½‖S − U Vᵀ‖²_F`` (for a basis, with the exact U), in the form of `factors`."""
    excess = iterate["factors"].excess(problem.clients) if "factors" in iterate else 0.0
    return problem.exact_loss(shared_matrix(iterate)) + excess


def exact_objective(iterate: Iterate, problem: Problem) -> float:
    """Return ``min_U ½‖S − U Vᵀ‖²_F`` for the iterate's V."""
    return problem.exact_loss(shared_matrix(iterate))


def exact_excess(iterate: Iterate, problem: Problem) -> float:
    """Return ``min_U ½‖S − U Vᵀ‖²_F − ε_min``, what V loses against the leading singular vectors.

    Not by subtraction, which could not tell 1e−25 from nothing beside ε_min = 1e−6. With Q a basis
    of range(V) and ``Wᵀ Q = [A; B]`` in the right singular vectors W, B = Z sin Θ Yᵀ and
    A = X cos Θ Yᵀ, the difference is ``½ Σⱼ sin²θⱼ (Σ_{i≤r} σᵢ² Xᵢⱼ² − Σ_{i>r} σᵢ² Zᵢⱼ²)``.
    """
    q = range_basis(shared_matrix(iterate)).basis
    rank = q.shape[1]
    coordinates = problem.right_vectors.T @ q
    z, sine, y_t = scipy.linalg.svd(coordinates[rank:], full_matrices=False, check_finite=False)
    cosine = np.sqrt(np.maximum(1.0 - sine**2, np.finfo(float).tiny))
    x = coordinates[:rank] @ y_t.T / cosine
    squared = problem.singular_values**2
    return 0.5 * float(sine**2 @ ((x**2).T @ squared[:rank] - (z**2).T @ squared[rank:]))


def kappa(iterate: Iterate, problem: Problem) -> float:
    """Return the condition number of V."""
    return condition_number(shared_matrix(iterate))


METRICS = (
    Metric("objective", "data units squared", "F = ½‖S − U Vᵀ‖²_F", objective),
    Metric(
        "exact_objective",
        "data units squared",
        "min over U of ½‖S − U Vᵀ‖²_F at the iterate's V",
        exact_objective,
    ),
    Metric(
        "exact_excess",
        "data units squared",
        "min over U of ½‖S − U Vᵀ‖²_F at the iterate's V, less the Eckart-Young floor",
        exact_excess,
    ),
    Metric("kappa", "1", "condition number of V", kappa),
)
