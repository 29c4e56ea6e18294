"""The excess of a subspace over the Eckart–Young floor, where subtraction would give nothing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcore.iterates import ExactFactors, Iterate
from fedcore.metrics import get
from fedcore.problems.problem import Problem

SIGMA = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.5])


def excess(problem, V):
    return get("exact_excess").function(Iterate(factors=ExactFactors(V)), problem)


def mixed(V, seed=0):
    """Another matrix with the same range."""
    r = V.shape[1]
    return V @ (np.random.default_rng(seed).standard_normal((r, r)) + 3 * np.eye(r))


def turned(right, pairs, d, r):
    """Leading columns of `right`, of which i is turned by an angle towards column k."""
    V = right[:, :r].copy()
    for i, k, angle in pairs:
        V[:, i] = np.cos(angle) * right[:, i] + np.sin(angle) * right[:, k]
    return V


def loss(sigma, pairs):
    """``½ Σ sin²θ (σᵢ² − σₖ²)``: turning wᵢ loses σᵢ² sin²θ and finds σₖ² sin²θ."""
    return 0.5 * sum(np.sin(a) ** 2 * (sigma[i] ** 2 - sigma[k] ** 2) for i, k, a in pairs)


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 12), st.integers(1, 8), st.data(), st.integers(0, 2**32 - 1))
def test_it_is_the_exact_loss_less_the_floor_where_that_does_not_cancel(n, d, data, seed):
    rng = np.random.default_rng(seed)
    S = rng.standard_normal((n, d))  # also with fewer samples than features
    r = data.draw(st.integers(1, min(n, d)))
    rank = data.draw(st.integers(1, r))
    V = np.zeros((d, r))  # also rank-deficient
    V[:, rng.permutation(r)[:rank]] = rng.standard_normal((d, rank))
    Q = np.linalg.svd(V, full_matrices=False)[0][:, :rank]
    sigma = np.linalg.svd(S)[1]
    expected = 0.5 * (np.linalg.norm(S - S @ Q @ Q.T) ** 2 - np.sum(sigma[r:] ** 2))
    # Rounding of the subtraction, and of range(V), which is known to κ(V)·eps.
    assert excess(Problem("any", [S]), V) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("mixing", [False, True])
@pytest.mark.parametrize(
    "pairs",
    [
        [(0, 3, 1e-9)],
        [(2, 3, 1e-9)],
        [(0, 5, 1e-9), (1, 4, 2e-9)],
        [(0, 3, 1e-9), (1, 4, 3e-9), (2, 5, 2e-9)],
        [(0, 3, 0.3), (1, 4, 1e-3), (2, 5, 1.5)],
        [(2, 5, np.pi / 2)],  # one leading vector is missed entirely
        [(0, 3, np.pi / 2), (1, 4, np.pi / 2), (2, 5, np.pi / 2)],  # all are
    ],
)
def test_a_rotation_costs_what_the_formula_says(pairs, mixing):
    S = np.vstack([np.diag(SIGMA), np.zeros((2, 6))])  # its singular vectors are known exactly
    V = turned(np.eye(6), pairs, 6, 3)
    V = mixed(V) if mixing else V
    # Unmixed: 1e-6. Mixing puts some eps into range(V): 2·(κ eps)/θ = 2e-6 relative.
    tolerance = 2e-6 if mixing else 1e-6
    found = excess(Problem("diagonal", [S[:3], S[3:]]), V)
    assert found == pytest.approx(loss(SIGMA, pairs), rel=tolerance, abs=0)


def test_a_rotation_is_measured_in_singular_vectors_that_are_computed(matrix_with):
    S = matrix_with(40, 9, np.array([5, 4, 3, 0.4, 0.3, 0.25, 0.2, 0.1, 0.05]), seed=4)
    right = np.linalg.svd(S)[2].T
    pairs = [(0, 5, 1e-7), (2, 3, 3e-7)]
    found = excess(Problem("dense", [S[:15], S[15:]]), mixed(turned(right, pairs, 9, 3)))
    sigma = np.linalg.svd(S)[1]
    # Two SVDs whose vectors differ by some eps·σ₁/gap = 1e-15, beside angles of 1e-7.
    assert found == pytest.approx(loss(sigma, pairs), rel=1e-6, abs=0)


def test_an_excess_of_5e_25_is_told_from_a_floor_of_1e_12():
    sigma = np.array([1.0, 1.0, 1.0, 1e-6, 1e-6])
    problem = Problem("flat", [np.diag(sigma)])
    V = turned(np.eye(5), [(1, 3, 1e-12)], 5, 3)
    assert excess(problem, V) == pytest.approx(5e-25, rel=1e-3, abs=0)  # eps/θ = 2e-4


@pytest.mark.parametrize("rank", [1, 3, 6, 9])
def test_the_leading_space_has_none(problem, rank):
    top = np.linalg.svd(np.vstack(problem.clients))[2][:rank].T
    for V in (top, 1e5 * top, mixed(top)):
        # (some eps ‖S‖)², ‖S‖ = 5: below the resolution of 1e-27 ‖S‖².
        assert abs(excess(problem, V)) < 1e-27 * 25
