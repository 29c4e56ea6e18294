"""Inner solvers against NumPy's eigenvectors, and stopping rules against their formulas."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fedcore.linalg import orth, orth_householder
from fedcore.parts.eigensolvers import MEMORY, RULES, SIGNS, SOLVERS, Limits, iterate, outside

N, P = 30, 3
LIMITS = Limits(tolerance=1e-2, delta=0.5, scale=10.0)


@pytest.fixture
def matrix():
    """Return a symmetric positive matrix whose third and fourth eigenvalues are 1 and 0.9."""
    eigenvalues = np.concatenate([[3.0, 1.5, 1.0, 0.9], np.linspace(0.8, 0.01, N - 4)])
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((N, N)))[0]
    return (Q * eigenvalues) @ Q.T


@pytest.fixture
def start():
    return np.linalg.qr(np.random.default_rng(2).standard_normal((N, P)))[0].T


@dataclass
class Known:
    """Matrices that are known, and the number of bases that each call has multiplied."""

    matrices: np.ndarray
    made: list[int]

    def times(self, X):
        self.made.append(X.size // (N * P))
        return X @ self.matrices

    def of(self, chosen):
        return Known(self.matrices[chosen], self.made)


def pairs(solver, matrix, X, count, signs="positive"):
    H, found = Known(matrix, []), [(X, X @ matrix)]
    for _ in range(count):
        found.append(SOLVERS[solver](H, found[-MEMORY - 1 :], signs))
    assert H.made == [1] * count  # one product each
    return found[1:]


def angle(matrix, X):
    """Sine of the largest angle to NumPy's dominant space."""
    return np.linalg.norm(outside(X, top_of(matrix)), 2)


def top_of(matrix):
    return np.linalg.eigh(matrix)[1][:, -P:].T


@pytest.mark.parametrize("solver", SOLVERS)
def test_a_matrix_that_has_stopped_is_multiplied_no_more(solver, matrix, start):
    """Each matrix of a stack gets what it gets alone, after as many steps."""
    stack = np.stack([matrix, 2 * matrix, matrix @ matrix, np.linalg.inv(matrix)])
    rule, limits = RULES["subspace_change"], LIMITS._replace(tolerance=1e-4)

    def found(several):
        first, H = np.broadcast_to(start, (len(several), P, N)), Known(several, [])
        enough = rule(limits, first, first @ several)
        return *iterate(H, first, first @ several, enough, solver, "positive", 50), H.made

    X, XH, steps, made = found(stack)
    assert len(set(steps)) > 2  # else nothing was left out
    assert made == [np.count_nonzero(steps > step) for step in range(max(steps))]
    for i in range(len(stack)):
        alone = found(stack[i : i + 1])
        np.testing.assert_array_equal(X[i], alone[0][0])
        np.testing.assert_array_equal(XH[i], alone[1][0])
        assert steps[i] == alone[2][0]
        last, last_H = pairs(solver, stack[i], start[None], steps[i])[-1]
        np.testing.assert_array_equal(X[i], last[0])
        np.testing.assert_array_equal(XH[i], last_H[0])


@pytest.mark.parametrize("signs", SIGNS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_solvers_come_to_the_dominant_space(solver, signs, matrix, start):
    for X, XH in pairs(solver, matrix, start, 300, signs):
        np.testing.assert_allclose(X @ X.T, np.eye(P), atol=1e-14)
        np.testing.assert_allclose(XH, X @ matrix, atol=1e-13)
    assert angle(matrix, X) < 1e-12


def test_rayleigh_ritz_is_power_iteration_of_the_same_space(matrix, start):
    for (X, _), (Y, HY) in zip(
        pairs("power", matrix, start, 9), pairs("ritz", matrix, start, 9), strict=True
    ):
        np.testing.assert_allclose(X.T @ X, Y.T @ Y, atol=1e-13)
        inside = Y @ HY.T
        np.testing.assert_allclose(inside, np.diag(np.diagonal(inside)), atol=1e-13)
        assert np.all(np.diff(np.diagonal(inside)) < 0)


def test_kept_blocks_spare_products(matrix, start):
    """The rate of `power` is 0.9; polynomials of three degrees more are far better."""
    assert angle(matrix, pairs("power", matrix, start, 40)[-1][0]) > 1e-3
    assert angle(matrix, pairs("krylov", matrix, start, 40)[-1][0]) < 1e-8


def test_the_best_basis_of_two_blocks_is_that_of_the_projected_matrix(matrix, start):
    """Second step: orth(H V S), S the leading eigenvectors of VᵀHV, V a basis of both blocks."""
    (first, _), (second, _) = pairs("krylov", matrix, start, 2)
    V = np.linalg.qr(np.vstack([start, first]).T)[0]
    S = np.linalg.eigh(V.T @ matrix @ V)[1][:, -P:]
    wanted = orth(matrix @ V @ S)
    np.testing.assert_allclose(second.T @ second, wanted @ wanted.T, atol=1e-12)


def test_householder_keeps_the_signs_of_its_own_result(matrix, start):
    Q = orth_householder(start.T)
    np.testing.assert_allclose(Q @ Q.T, start.T @ start, atol=1e-14)
    np.testing.assert_allclose(orth_householder(Q * [3.0, 2.0, 1.0]), Q, atol=1e-14)
    assert np.all(np.diagonal(np.linalg.qr(start.T)[1]) * np.diagonal(Q.T @ start.T) > 0)


def test_a_row_that_turns_round_is_a_change_of_basis_and_not_of_space(matrix, start):
    turned = start * [[1.0], [-1.0], [1.0]]
    arguments = (start, turned, turned @ matrix)
    assert not RULES["relative_change"](LIMITS, start, start @ matrix)(*arguments)
    assert RULES["subspace_change"](LIMITS, start, start @ matrix)(*arguments)


@pytest.mark.parametrize("distance", [0.009, 0.011])
def test_changes_are_relative_to_the_basis(distance, matrix, start):
    """A turn by the angle t in one direction changes X by t ‖x‖, XXᵀ by √2 sin t."""
    away = orth(np.vstack([start, np.ones(N)]).T)[:, -1]
    for rule, t in (
        ("relative_change", 2 * np.arcsin(distance * np.sqrt(P) / 2)),
        ("subspace_change", np.arcsin(distance * np.sqrt(P) / np.sqrt(2))),
    ):
        moved = start.copy()
        moved[0] = np.cos(t) * start[0] + np.sin(t) * away
        enough = RULES[rule](LIMITS, start, start @ matrix)
        assert enough(start, moved, moved @ matrix) == (distance < LIMITS.tolerance)


def test_the_rules_of_the_theory(matrix, start):
    """(13) and (14) in so many words, on iterates that pass and others that do not."""
    seen = {"residual": set(), "decrease": set()}

    def residual(X):
        return np.linalg.norm(X @ matrix - (X @ matrix @ X.T) @ X)

    for X, XH in pairs("power", matrix, start, 8):
        for scale in (0.1, 1.0, 10.0):
            limits = LIMITS._replace(scale=scale)
            gain = np.trace(X @ XH.T) / 2 - np.trace(start @ matrix @ start.T) / 2
            for rule, wanted in (
                ("residual", residual(X) <= 0.5 * residual(start)),
                ("decrease", gain >= 0.5 * residual(start) ** 2 / scale),
            ):
                enough = RULES[rule](limits, start, start @ matrix)
                assert enough(start, X, XH) == wanted
                seen[rule].add(wanted)
    assert seen == {"residual": {True, False}, "decrease": {True, False}}


def test_a_residual_at_rounding_is_small_enough(matrix):
    top = top_of(matrix)
    enough = RULES["residual"](LIMITS, top, top @ matrix)
    assert enough(top, top, top @ matrix)
    assert not RULES["fixed"](LIMITS, top, top @ matrix)(top, top, top @ matrix)
