"""Regularised descent against closed forms and optimality conditions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcore
from fedcore.algorithms.power_prox import PROXIMAL

RANK = 3
PENALTIES = {
    "l2": lambda U: 0.5 * np.sum(U**2),
    "l1": lambda U: np.sum(np.abs(U)),
    "nuclear": lambda U: np.sum(np.linalg.svd(U)[1]),
}


def solve(clients, penalty, strength, **options):
    """Long accelerated descent: κ(V)² is some 30 here, so 3000 steps end at rounding level."""
    options = {"local_steps": 3000, "momentum": True, "measure": [], **options}
    result = fedcore.run("power_prox", clients, RANK, penalty=penalty, strength=strength, **options)
    return result.output["V"], result.output["U"]


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(PENALTIES)), st.floats(0, 3), st.integers(0, 2**32 - 1))
def test_a_proximal_operator_minimises_its_objective(penalty, weight, seed):
    rng = np.random.default_rng(seed)
    U = rng.standard_normal((5, 3))

    def objective(X):
        return 0.5 * np.sum((X - U) ** 2) + weight * PENALTIES[penalty](X)

    found = PROXIMAL[penalty](U, weight)
    for size in (1e-4, 1e-2, 1):
        nearby = found + size * rng.standard_normal(U.shape)
        assert objective(found) <= objective(nearby) + 1e-14  # rounding of values of order one


@pytest.mark.parametrize("penalty", sorted(PENALTIES))
def test_a_proximal_operator_does_not_expand_and_weight_zero_does_nothing(penalty):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 6, 3))
    prox = PROXIMAL[penalty]
    np.testing.assert_allclose(prox(a, 0.0), a, atol=1e-14)  # rounding of an SVD
    assert np.linalg.norm(prox(a, 0.7) - prox(b, 0.7)) <= np.linalg.norm(a - b)


@pytest.mark.parametrize("momentum", [False, True])
@pytest.mark.parametrize("strength", [0.01, 1.0, 50.0])
def test_l2_reaches_the_ridge_solution(clients, strength, momentum):
    V, U = solve(clients, "l2", strength, momentum=momentum)
    expected = np.vstack(clients) @ V @ np.linalg.inv(V.T @ V + strength * np.eye(RANK))
    # A linear rate over 3000 steps, down to rounding times κ(V)².
    np.testing.assert_allclose(np.vstack(U), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("strength", [0.01, 0.5, 5.0])
def test_l1_satisfies_its_optimality_conditions(clients, strength):
    V, parts = solve(clients, "l1", strength)
    for S, U in zip(clients, parts, strict=True):
        gradient = (U @ V.T - S) @ V
        on = U != 0
        # −∇ ∈ strength·∂‖U‖₁: equal to ±strength where U is not 0, no larger elsewhere; up to
        # rounding of a gradient whose terms are of order 10.
        np.testing.assert_allclose(gradient[on], -strength * np.sign(U[on]), rtol=0, atol=1e-10)
        assert (np.abs(gradient[~on]) <= strength + 1e-10).all()
    assert strength < 0.1 or (np.vstack(parts) == 0).any()


@pytest.mark.parametrize("strength", [0.01, 0.5, 5.0])
def test_the_nuclear_norm_satisfies_its_optimality_conditions(clients, strength):
    V, parts = solve(clients, "nuclear", strength)
    for S, U in zip(clients, parts, strict=True):
        gradient = (U @ V.T - S) @ V
        left, sigma, right_t = np.linalg.svd(U, full_matrices=False)
        on = sigma > 1e-9
        left, right_t = left[:, on], right_t[on]
        # −∇ = strength·(L Rᵀ + W), W orthogonal to both spaces of U and ‖W‖₂ ≤ 1; rounding of a
        # gradient whose terms are of order 10, over the smallest kept σ.
        rest = -gradient / strength - left @ right_t
        np.testing.assert_allclose(strength * left.T @ rest, 0, atol=1e-8)
        np.testing.assert_allclose(strength * rest @ right_t.T, 0, atol=1e-8)
        assert np.linalg.norm(rest, 2) <= 1 + 1e-8


def test_a_strong_penalty_makes_u_exactly_zero(clients):
    S = np.vstack(clients)
    for penalty in ("l1", "nuclear"):
        strength = 1.01 * np.linalg.norm(S @ solve(clients, penalty, 0.0, local_steps=0)[0])
        _, U = solve(clients, penalty, strength, local_steps=200, momentum=False)
        assert not np.vstack(U).any()


@pytest.mark.parametrize("penalty", sorted(PENALTIES))
def test_every_step_lowers_the_loss_with_its_penalty(clients, penalty):
    """Steps of 1/L lower the sum (Beck & Teboulle 2009); the loss alone they may raise."""
    sums = []
    for steps in range(0, 60, 3):
        result = fedcore.run(
            "power_prox", clients, RANK, penalty=penalty, strength=0.7, local_steps=steps
        )
        U, V = result.output["U"], result.output["V"]
        loss = 0.5 * np.linalg.norm(np.vstack(clients) - np.vstack(U) @ V.T) ** 2
        assert result.history["objective"][-1] == pytest.approx(loss, rel=1e-12)
        sums.append(loss + 0.7 * sum(PENALTIES[penalty](u) for u in U))
    assert (np.diff(sums) <= 1e-12 * sums[0]).all() and sums[-1] < sums[0]
