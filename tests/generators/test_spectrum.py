from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcore.errors import InputError
from fedcore.experiments import build
from fedcore.generators import spectrum
from fedcore.generators.spectrum import generate
from fedcore.problems.clients import Reduction


def drawn(seed=0, **params):
    return generate(np.random.default_rng(seed), **params)


def left_vectors(clients, reference):
    """V of A = U Σ Vᵀ."""
    return np.vstack(clients) @ reference.right_vectors / reference.singular_values


def off_identity(matrix):
    return np.abs(matrix.T @ matrix - np.eye(matrix.shape[1])).max()


@pytest.mark.parametrize("kind", ["geometric", "arithmetic"])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 5), (40, 40), (40, 41), (40, 85), (40, 700)])
def test_the_model_is_kept(kind, n, m):
    clients, reference = drawn(n_features=n, n_clients=1, n_samples=m, kind=kind)
    sigma, U = reference
    # Householder and (well-conditioned) Cholesky QR are orthonormal to rounding.
    assert off_identity(U) < 1e-13
    assert off_identity(left_vectors(clients, reference)) < 1e-12
    expected = np.linalg.svd(np.vstack(clients))[1]
    np.testing.assert_allclose(sigma, expected, rtol=0, atol=1e-13)
    assert clients[0].dtype == np.float64 and clients[0].flags.c_contiguous


@pytest.mark.parametrize("m", [200, 203, 210, 230, 300, 1000])
def test_the_left_vectors_are_orthonormal_however_square_the_matrix(m):
    # Where Cholesky QR is least accurate: m near n.
    result = drawn(1, n_features=200, n_clients=4, n_samples=m)
    assert off_identity(left_vectors(*result)) < 1e-12


def test_the_spectra_are_those_of_the_paper():
    geometric = spectrum.singular_values(4, kind="geometric", xi=1.1, condition=1)
    np.testing.assert_allclose(geometric, [1, 1 / 1.1, 1 / 1.21, 1 / 1.331])
    arithmetic = spectrum.singular_values(5, kind="arithmetic", xi=1, condition=100)
    np.testing.assert_allclose(arithmetic, [1, 0.7525, 0.505, 0.2575, 0.01])
    np.testing.assert_array_equal(
        spectrum.singular_values(1, kind="arithmetic", xi=1, condition=9), [1]
    )


def test_the_row_and_column_bases_are_those_of_uniform_matrices():
    rng = np.random.default_rng(7)
    clients, (sigma, U) = drawn(7, n_features=20, n_clients=2, n_samples=60)
    X, Y = rng.uniform(-1, 1, (20, 20)), rng.uniform(-1, 1, (60, 20))
    for basis, uniform in ((U, X), (left_vectors(clients, (spectrum.Reference(sigma, U))), Y)):
        R = basis.T @ uniform  # triangular with a positive diagonal: Gram-Schmidt of the columns
        np.testing.assert_allclose(basis @ R, uniform, atol=1e-12)
        np.testing.assert_allclose(np.tril(R, -1), 0, atol=1e-12)
        assert (np.diag(R) > 0).all()


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=6), st.integers(1, 9), st.integers(0, 99))
def test_the_matrix_does_not_depend_on_the_division(sizes, n, seed):
    if sum(sizes) < n:
        sizes = [*sizes, n]
    uneven, reference = drawn(seed, n_features=n, sizes=sizes)
    whole, other = drawn(seed, n_features=n, n_clients=1, n_samples=sum(sizes))
    assert [len(client) for client in uneven] == sizes
    np.testing.assert_array_equal(reference.right_vectors, other.right_vectors)
    # R is summed client by client; nearly square matrices of uniform entries may be ill-conditioned
    condition = np.linalg.cond(whole[0])
    np.testing.assert_allclose(np.vstack(uneven), whole[0], rtol=0, atol=1e-12 * condition**2)


def test_large_clients_are_multiplied_in_parts():
    clients, reference = drawn(n_features=5, sizes=[2 * spectrum.ROWS + 3, spectrum.ROWS])
    assert off_identity(left_vectors(clients, reference)) < 1e-13


@pytest.mark.parametrize("surrogate", [False, True])
def test_a_problem_takes_the_reference_that_the_generator_knows(surrogate):
    spec = {
        "generator": "spectrum",
        "params": {"n_features": 12, "sizes": [10, 20, 30], "kind": "arithmetic", "condition": 10},
    }
    problem = build.build("known", spec, raw="", seed=3, surrogate=surrogate)
    sigma, U = problem.reference
    # To the last bit, as no factorization of the samples would give them.
    known = spectrum.singular_values(12, kind="arithmetic", xi=1, condition=10)
    np.testing.assert_array_equal(sigma, known)
    S = np.vstack(problem.clients)
    np.testing.assert_allclose(np.linalg.svd(S)[1], sigma, rtol=0, atol=1e-13)
    np.testing.assert_allclose(np.linalg.norm(S @ U, axis=0), sigma, rtol=0, atol=1e-13)
    assert (problem.status, problem.note) == ("synthetic", "")
    assert 0.5 * np.sum(sigma[3:] ** 2) == pytest.approx(problem.exact_loss(U[:, :3]), rel=1e-12)


def test_what_no_problem_has_is_refused_beside_the_matrices(monkeypatch):
    drawn = [np.eye(2)], Reduction((5,), 1.0)
    monkeypatch.setattr("fedcore.generators.white.generate", lambda rng: drawn)
    with pytest.raises(InputError, match="white returned a Reduction"):
        build.build("theirs", {"generator": "white"}, raw="", seed=3, surrogate=False)
