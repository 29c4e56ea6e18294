from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcore import linalg

EPS = np.finfo(float).eps
shapes = st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1))


def gaussian(m: int, k: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((m, k))


def eps_of(dtype: type) -> float:
    return float(np.finfo(dtype).eps)


def of_rank(rank: int, d: int, r: int, seed: int) -> np.ndarray:
    """Matrix of this rank whose columns are sums without cancellation, so of few roundings."""
    return np.linalg.qr(gaussian(d, rank, seed))[0] @ gaussian(rank, r, seed + 1)


@settings(max_examples=60, deadline=None)
@given(shapes)
def test_qr_multiplies_back_and_has_a_non_negative_diagonal(shape):
    matrix = gaussian(*shape)
    q, r = linalg.qr_positive(matrix)
    k = min(matrix.shape)
    assert q.shape == (len(matrix), k) and r.shape == (k, matrix.shape[1])
    # Householder QR is backward stable: a modest multiple of eps relative to the norm.
    np.testing.assert_allclose(q @ r, matrix, rtol=0, atol=50 * EPS * np.linalg.norm(matrix))
    np.testing.assert_allclose(q.T @ q, np.eye(k), rtol=0, atol=50 * EPS)
    np.testing.assert_array_equal(r, np.triu(r))
    assert (np.diagonal(r) >= 0).all()


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4), (200, 70), (5, 0)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
def test_householder_vectors_are_scipys(shape, dtype, order):
    matrix = np.asarray(gaussian(*shape, 5), dtype, order)
    q = scipy.linalg.qr(matrix, mode="economic")[0]
    found = linalg.orth_householder(matrix)
    assert found.dtype == dtype and found.shape == q.shape
    np.testing.assert_allclose(found, q, atol=30 * np.finfo(dtype).eps)


def test_the_sign_of_a_column_goes_into_the_basis_and_not_into_r():
    matrix = gaussian(8, 3, 0)
    q, r = linalg.qr_positive(matrix)
    q_flipped, r_flipped = linalg.qr_positive(matrix * np.array([1, -1, 1]))
    # The same factorisation up to the sign of the second column; rounding only.
    np.testing.assert_allclose(q_flipped, q * np.array([1, -1, 1]), atol=20 * EPS)
    np.testing.assert_allclose(np.diagonal(r_flipped), np.diagonal(r), atol=20 * EPS)
    q = linalg.orth(np.array([[3, 0], [4, 0], [0, -2]]))  # whole numbers, in double precision
    np.testing.assert_allclose(q, [[0.6, 0.0], [0.8, 0.0], [0.0, -1.0]], atol=1e-15)
    assert linalg.range_basis(matrix.astype(np.float32)).basis.dtype == np.float32


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(1, 12))
def test_the_range_basis_drops_what_is_numerically_zero(shape, rank):
    d, r, seed = shape
    rank = min(rank, d, r)
    v = of_rank(rank, d, r, seed)
    basis, sigma, rotation = linalg.range_basis(v)
    assert basis.shape[1] == len(sigma) == rotation.shape[1] == np.linalg.matrix_rank(v) == rank
    # Thin SVD up to the dropped part, which is rounding.
    atol = 200 * EPS * max(1.0, np.linalg.norm(v))
    np.testing.assert_allclose((basis * sigma) @ rotation.T, v, rtol=0, atol=atol)
    np.testing.assert_allclose(basis.T @ basis, np.eye(len(sigma)), rtol=0, atol=50 * EPS)
    assert (np.diff(sigma) <= 0).all()
    assert [part.shape for part in linalg.range_basis(0 * v)] == [(d, 0), (0,), (r, 0)]


@settings(max_examples=60, deadline=None)
@given(shapes, st.integers(1, 12))
def test_the_condition_number_is_infinite_exactly_when_the_rank_is_deficient(shape, rank):
    d, r, seed = shape
    v = of_rank(min(rank, d, r), d, r, seed)
    sigma = np.linalg.svd(v)[1]
    if rank < r or r > d:
        assert linalg.condition_number(v) == np.inf
    else:
        # The smallest singular value is known to eps·σ_max.
        tolerance = 100 * EPS * sigma[0] / sigma[-1]
        assert linalg.condition_number(v) == pytest.approx(sigma[0] / sigma[-1], rel=tolerance)


HADAMARD = np.array([[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]) / 2
SCALES = [(np.float64, -75), (np.float64, -300), (np.float32, -8), (np.float32, -30)]


@pytest.mark.parametrize(("dtype", "exponent"), SCALES)
def test_short_columns_make_the_condition_number_large_and_drop_no_direction(dtype, exponent):
    scales = np.array([1, 10.0**exponent, 10.0 ** (exponent / 2)])
    v = (HADAMARD[:, :3] * scales).astype(dtype)  # orthogonal: its singular values are the scales
    basis, sigma, rotation = linalg.range_basis(v)
    eps = eps_of(dtype)
    np.testing.assert_allclose(sigma, sorted(scales, reverse=True), rtol=10 * eps)
    assert linalg.condition_number(v) == pytest.approx(10.0**-exponent, rel=20 * eps)
    projector = HADAMARD[:, :3] @ HADAMARD[:, :3].T
    np.testing.assert_allclose(basis @ basis.T, projector, rtol=0, atol=10 * eps)
    np.testing.assert_allclose(np.abs(rotation), np.eye(3)[:, [0, 2, 1]], rtol=0, atol=10 * eps)


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1.0, 1e12])
def test_the_condition_number_of_two_columns_is_that_of_the_closed_form(scale):
    v = np.array([[1.0, scale], [0.0, 0.5 * scale], [0.0, 0.0]])  # at 27 degrees, one short
    # σ₁σ₂ = |det| and σ₁² + σ₂² = ‖V‖_F², without cancelling.
    square, product = 1 + 1.25 * scale**2, 0.5 * scale
    large = np.sqrt((square + np.sqrt((square - 2 * product) * (square + 2 * product))) / 2)
    assert linalg.condition_number(v) == pytest.approx(large**2 / product, rel=1e-14)


@pytest.mark.parametrize(("dtype", "power"), [(np.float32, 17), (np.float64, 45)])
def test_nearly_parallel_columns_keep_their_directions(dtype, power):
    """κ is beyond 1/(d eps), where a threshold of NumPy's kind has dropped all but the first."""
    d, r, delta = 300, 8, 2.0**-power
    v = np.zeros((d, r), dtype)
    v[0], v[range(1, r), range(1, r)] = 1, delta  # e₁, e₁ + δ e₂, e₁ + δ e₃, …
    assert np.linalg.matrix_rank(v) == 1 < r
    basis = linalg.column_space(v)
    expected = np.diag((np.arange(d) < r).astype(dtype))
    # Rounding of a column, seen from a distance of δ from the others.
    np.testing.assert_allclose(basis @ basis.T, expected, rtol=0, atol=eps_of(dtype) / delta)
    np.testing.assert_array_equal(basis, linalg.orth(v))  # what `Result.components` holds
    # σ² are the eigenvalues of 11ᵀ + δ² diag(0, 1, …, 1): δ² but for the largest, r + δ²(r − 1)/r,
    # and the smallest, which interlaces at δ²/r (1 + O(δ²)).
    exact = r / delta
    tolerance = 10 * eps_of(dtype) / delta
    assert linalg.condition_number(v) == pytest.approx(exact, rel=tolerance)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("r", [2, 12, 60, 200])
def test_repeated_columns_of_whatever_length_are_no_directions(dtype, r):
    rng = np.random.default_rng(r)
    v = rng.standard_normal((400, 3)).astype(dtype)[:, rng.integers(0, min(3, r - 1), r)]
    v *= (2.0 ** rng.integers(-40, 40, r)).astype(dtype)
    rank = len(np.unique(np.round(v / np.abs(v).max(axis=0), 3), axis=1).T)
    assert linalg.column_space(v).shape == (400, rank)
    assert linalg.condition_number(v) == np.inf
    basis, sigma, rotation = linalg.range_basis(v)
    found = (basis * sigma) @ rotation.T
    # A backward error of some r eps in every column, by its own length.
    error = np.linalg.norm(found - v, axis=0) / np.linalg.norm(v, axis=0)
    assert error.max() < 10 * r * eps_of(dtype)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_the_size_of_a_matrix_changes_neither_its_range_nor_its_condition_number(scale):
    v = gaussian(9, 3, 4)
    np.testing.assert_allclose(linalg.column_space(v * scale), linalg.orth(v), atol=20 * EPS)
    expected = linalg.range_basis(v).sigma * scale
    np.testing.assert_allclose(linalg.range_basis(v * scale).sigma, expected, rtol=20 * EPS)
    kappa = linalg.condition_number(v)
    assert linalg.condition_number(v * scale) == pytest.approx(kappa, rel=1e-13)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_has_no_range_and_no_crash(value):
    v = np.eye(4, 2)
    v[3, 1] = value
    assert np.isnan(linalg.column_space(v)).all()
    assert all(np.isnan(part).all() for part in linalg.range_basis(v))
    assert np.isnan(linalg.condition_number(v))
    assert linalg.lost_directions(v) == 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_directions_are_lost_below_100_roundings_of_unit_columns(dtype):
    eps = eps_of(dtype)
    for margin, lost in ((130, 0), (70, 1)):
        # Two unit columns at an angle of 2θ have the singular values √2 cos θ and √2 sin θ.
        theta = margin * eps / np.sqrt(2)
        v = np.array([[1, 1], [theta, -theta], [0, 0]], dtype)
        assert linalg.lost_directions(v) == lost
        assert linalg.lost_directions(v * np.array([1, 1e-20], dtype)) == lost  # short is not lost
    assert linalg.lost_directions(np.zeros((4, 2), dtype)) == 2


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 10), st.integers(1, 4), st.integers(0, 2**32 - 2))
def test_procrustes_agrees_with_scipy_and_beats_random_rotations(d, r, seed):
    z, target = gaussian(d, r, seed), gaussian(d, r, seed + 1)
    found = linalg.procrustes(z, target)
    np.testing.assert_allclose(found.T @ found, np.eye(r), rtol=0, atol=50 * EPS)  # rounding
    loss = np.linalg.norm(z @ found - target)
    theirs = np.linalg.norm(z @ scipy.linalg.orthogonal_procrustes(z, target)[0] - target)
    # The minimum is unique even where the minimiser is not (r > d); squared loss is flat there.
    assert loss == pytest.approx(theirs, rel=1e-7, abs=1e-7)
    other = np.linalg.qr(gaussian(r, r, seed))[0]
    assert loss <= np.linalg.norm(z @ other - target) + 1e-7


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-6, 0.3, np.pi / 2])
def test_sin_theta_of_a_known_angle(angle):
    basis = np.eye(5)[:, :2]
    turned = np.column_stack(
        [np.eye(5)[:, 0], np.cos(angle) * np.eye(5)[:, 1] + np.sin(angle) * np.eye(5)[:, 3]]
    )
    # The form (I − ZZᵀ)U does not cancel: relative accuracy also for small angles.
    assert linalg.sin_theta(basis, turned) == pytest.approx(np.sin(angle), rel=1e-12, abs=1e-16)


def test_haar_is_orthonormal_and_has_the_moments_of_the_haar_measure():
    rng = np.random.default_rng(8)
    draws = np.array([linalg.haar(4, 2, rng) for _ in range(4000)])
    np.testing.assert_allclose(draws[0].T @ draws[0], np.eye(2), atol=20 * EPS)  # rounding
    # E q = 0 and E q² = 1/4 for every entry; five standard errors (0.5/√4000 and 0.2/√4000) over
    # 16 comparisons: wrong by chance once in 10⁵. Without the sign fix E q₁₁ is far from 0.
    np.testing.assert_allclose(draws.mean(axis=0), 0, atol=5 * 0.5 / np.sqrt(4000))
    np.testing.assert_allclose((draws**2).mean(axis=0), 0.25, atol=5 * 0.205 / np.sqrt(4000))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(1, 7), st.integers(0, 99))
def test_the_triangular_factor_has_the_norms_of_the_stack(sizes, d, seed):
    blocks = [gaussian(n, d, seed + i) for i, n in enumerate(sizes)]
    stack = np.vstack(blocks)
    factor = linalg.triangular_factor(blocks)
    assert factor.shape == (min(len(stack), d), d)
    # RᵀR = SᵀS to rounding of the products.
    atol = 100 * EPS * np.linalg.norm(stack) ** 2
    np.testing.assert_allclose(factor.T @ factor, stack.T @ stack, rtol=0, atol=atol)


def test_the_triangular_factor_sees_singular_values_that_the_gram_matrix_cannot(matrix_with):
    sigma = np.array([1.0, 1e-6, 1e-12])
    factor = linalg.triangular_factor(np.split(matrix_with(30, 5, sigma, seed=9), 3))
    found = np.linalg.svd(factor)[1]
    np.testing.assert_allclose(found[:3], sigma, rtol=0, atol=20 * EPS)  # absolute, in eps·σ_max


@pytest.mark.parametrize("shape", [(1, 1), (3, 70), (64, 64), (65, 300), (300, 65), (200, 200)])
def test_the_spectral_norm_is_numpys(shape):
    matrix = gaussian(*shape, 5)
    assert linalg.spectral_norm(matrix) == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-13)
    single = linalg.spectral_norm(matrix.astype(np.float32))
    assert single == pytest.approx(np.linalg.norm(matrix, 2), rel=1e-5)
    assert linalg.spectral_norm(0 * matrix) == 0.0
    matrix = np.zeros(shape)
    matrix[-1, 0] = -2.5  # one entry
    assert linalg.spectral_norm(matrix) == pytest.approx(2.5, rel=1e-14)


@pytest.mark.parametrize(
    ("dtype", "power"),
    [(np.float64, p) for p in (-990, -250, -50, 990)] + [(np.float32, p) for p in (-110, -28, 100)],
)
@pytest.mark.parametrize("shape", [(100, 80), (1000, 800)])
def test_the_size_of_the_entries_does_not_change_the_spectral_norm(dtype, power, shape):
    """ARPACK's error is absolute for small values: 1.8e-5 at 2^-50, before scaling."""
    matrix = gaussian(*shape, 0).astype(dtype)
    found = np.ldexp(linalg.spectral_norm(np.ldexp(matrix, power)), -power)
    assert found == pytest.approx(np.linalg.norm(matrix.astype(float), 2), rel=30 * eps_of(dtype))


def test_the_part_outside_of_a_space_is_orthogonal_to_it_and_the_rest_inside():
    rng = np.random.default_rng(5)
    basis = np.linalg.qr(rng.standard_normal((8, 3)))[0]
    matrix = rng.standard_normal((8, 4))
    outside = linalg.outside(basis, matrix)
    np.testing.assert_allclose(basis.T @ outside, 0, atol=8 * EPS)
    inside = np.hstack([basis, matrix - outside])
    assert np.linalg.matrix_rank(inside, tol=1e-12) == 3
    np.testing.assert_allclose(linalg.outside(basis, basis), 0, atol=8 * EPS)


@pytest.mark.parametrize("d", [5, 300])  # dense, and by Lanczos iterations
@pytest.mark.parametrize("k", [1, 3])
def test_top_eigenvectors_are_those_of_the_dense_decomposition(d, k):
    values = (
        np.concatenate([[4.0, -6.0, 3.0, 2.5], np.linspace(-2, 2, d - 4)])
        if d > 5
        else (np.array([4.0, -6.0, 3.0, 2.5, 0.1]))
    )
    Q = np.linalg.qr(gaussian(d, d, 1))[0]
    found = linalg.top_eigenvectors((Q * values) @ Q.T, k)
    expected = Q[:, np.argsort(-values)[:k]]
    np.testing.assert_allclose(np.abs(found.T @ expected), np.eye(k), rtol=0, atol=1e-9)
    np.testing.assert_array_equal(found, linalg.top_eigenvectors((Q * values) @ Q.T, k))


@pytest.mark.parametrize("d", [5, 300])
@pytest.mark.parametrize(
    ("dtype", "power"), [(np.float64, p) for p in (-900, -100, 900)] + [(np.float32, -50)]
)
def test_the_size_of_the_entries_does_not_change_top_eigenvectors(d, dtype, power):
    """ARPACK's error is absolute for small values: at 2^-100 its vectors were arbitrary."""
    rows = gaussian(3 * d, d, 2) * np.linspace(1.5, 1, d)
    gram = (rows.T @ rows).astype(dtype)
    values, vectors = np.linalg.eigh(gram.astype(float))
    found = linalg.top_eigenvectors(np.ldexp(gram, power), 3).astype(float)
    bound = 30 * eps_of(dtype) * values[-1] / (values[-3] - values[-4])  # Davis and Kahan
    assert linalg.sin_theta(vectors[:, -3:], found) < bound


@pytest.mark.parametrize("d", [5, 300])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_has_no_eigenvectors_and_no_crash(d, value):
    matrix = np.eye(d)
    matrix[1, 0] = matrix[0, 1] = value
    found = linalg.top_eigenvectors(matrix, 2)
    assert found.shape == (d, 2)
    assert np.isnan(found).all()


@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_symmetric_matrix_comes_back_from_its_upper_triangle(d):
    matrix = gaussian(d, d, 7)
    matrix += matrix.T
    entries = linalg.upper_triangle(matrix)
    assert entries.tolist() == [matrix[i, j] for i in range(d) for j in range(i, d)]
    np.testing.assert_array_equal(linalg.from_upper_triangle(entries, d), matrix)


@pytest.mark.parametrize("shape", [(0, 3), (0, 0), (3, 0)])
def test_a_matrix_without_entries_has_an_empty_basis_and_lapack_says_nothing(shape, capfd):
    matrix = np.zeros(shape, np.float32)
    q, r = linalg.qr_positive(matrix)
    found = linalg.orth(matrix)
    assert q.shape == found.shape == (shape[0], 0) and r.shape == (0, shape[1])
    assert q.dtype == found.dtype == np.float32
    assert linalg.triangular_factor([matrix]).shape == r.shape
    assert capfd.readouterr() == ("", "")
