"""Metrics of a factorisation S ≈ U Vᵀ of the stacked samples S; client i keeps its part Uᵢ of U."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from fedcore.iterates import Iterate
from fedcore.linalg import column_space, condition_number
from fedcore.metrics import intermediate, metric
from fedcore.problems.problem import Problem


@metric("data units squared", "F = ½‖S − U Vᵀ‖²_F")
def objective(iterate: Iterate, problem: Problem) -> float:
    """Return the loss ``F = ½‖S − U Vᵀ‖²_F``, with the best U for V if the algorithm has no U."""
    return problem.exact_loss(iterate.shared) + float(excess_of_clients(iterate, problem).sum())


@intermediate
def excess_of_clients(iterate: Iterate, problem: Problem) -> np.ndarray:
    """Return every client's excess loss ``Fᵢ(Uᵢ) − Fᵢ(Ûᵢ)``, or zeros if the algorithm has no U.

    Fᵢ is the loss on client i's samples for the algorithm's current V, and Ûᵢ minimises Fᵢ.
    """
    excess = 0.0 if iterate.factors is None else iterate.factors.excess()
    return np.zeros(len(problem.clients)) + excess


@metric(
    "data units squared",
    "mean over the clients of F_i(U_i) - F_i(Û_i), Û_i the exact solution at the iterate's V",
    each=excess_of_clients,
)
def client_excess(iterate: Iterate, problem: Problem) -> float:
    """Return the mean over the clients of their excess losses; see `excess_of_clients`."""
    return float(excess_of_clients(iterate, problem).mean())


@metric("data units squared", "min over U of ½‖S − U Vᵀ‖²_F at the iterate's V")
def exact_objective(iterate: Iterate, problem: Problem) -> float:
    """Return ``min_U ½‖S − U Vᵀ‖²_F``, the smallest loss for the algorithm's current V."""
    return problem.exact_loss(iterate.shared)


@metric(
    "data units squared",
    "min over U of ½‖S − U Vᵀ‖²_F at the iterate's V, less the Eckart-Young floor",
)
def exact_excess(iterate: Iterate, problem: Problem) -> float:
    """Return ``min_U ½‖S − U Vᵀ‖²_F − ε_min``, the excess over the least loss ε_min for rank r.

    The metric is not computed as a difference of two losses: at ε_min = 1e−6, rounding would
    destroy all digits of an excess of 1e−25. Let the columns of W₁ be the r leading right singular
    vectors of S, with singular values Σ₁. Let W₂ and Σ₂ be the other vectors and values, and let Q
    be a basis of range(V). Let P be the polar factor of A = W₁ᵀQ, and let M = Q − W₁A. For a good
    V, M is small. For V of full rank, I − AAᵀ = P MᵀM Pᵀ, and the excess is ``½ (‖Σ₁ P Mᵀ‖²_F − ‖Σ₂
    W₂ᵀQ‖²_F)``. For a rank-deficient V, I − AAᵀ has the additional term I − PPᵀ, and the excess has
    the additional term ``½ ‖Σ₁ (I − PPᵀ)‖²_F``.
    """
    v = iterate.shared
    q, rank = column_space(v), v.shape[1]
    leading, others = np.split(problem.right_vectors, [rank], axis=1)
    sigma, tail = np.split(problem.singular_values[:, None], [rank])
    a = leading.T @ q
    left, _, right_t = scipy.linalg.svd(a, check_finite=False)
    k = q.shape[1]
    lost = sigma * np.hstack([left[:, :k] @ right_t @ (q - leading @ a).T, left[:, k:]])
    found = tail * (others.T @ q)
    return 0.5 * float(np.linalg.norm(lost) ** 2 - np.linalg.norm(found) ** 2)


@metric("1", "condition number of V", finite=False)
def kappa(iterate: Iterate, problem: Problem) -> float:
    """Return the condition number of the algorithm's current V."""
    return condition_number(iterate.shared)


METRICS = (objective, exact_objective, exact_excess, client_excess, kappa)
