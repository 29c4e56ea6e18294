"""Sparse clients: the operations of `SparseRows`, and runs against SciPy and the dense data."""

from __future__ import annotations

import tracemalloc
from functools import partial

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcore
from fedcore import linalg
from fedcore.errors import InputError
from fedcore.federation import centring
from fedcore.privacy import bounded_rows
from fedcore.problems import problem as problems
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.sparse import SparseRows, checked
from fedcore.user_tables.matrices import check_clients
from refused import refused

csr = scipy.sparse.csr_array


def drawn(n, d, density=0.2, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, d)) * (rng.random((n, d)) < density)
    return values.astype(dtype)


def topped(sizes=(60, 90, 50), d=40, seed=1, dtype=np.float64):
    """Sparse clients with three directions far above the others: entry j of three groups."""
    rng = np.random.default_rng(seed)
    found = []
    for n in sizes:
        weights = rng.standard_normal((n, 3)) * [9.0, 6.0, 4.0]
        rows = np.zeros((n, d))
        rows[:, :9] = np.repeat(weights, 3, axis=1) * [1, 2, 3, 2, 1, 1, 1, 3, 1]
        rows[:, 9:] = drawn(n, d - 9, 0.1, int(rng.integers(99)))
        found.append(rows.astype(dtype))
    return found


def both(matrix, mean=None):
    """A sparse matrix and the dense one it stands for, in double precision."""
    dense = matrix.astype(np.float64)
    rows = SparseRows(checked(csr(matrix), "m").matrix, mean)
    return rows, dense if mean is None else dense - mean


sizes = st.tuples(st.integers(1, 12), st.integers(1, 9))


@settings(max_examples=60, deadline=None)
@given(sizes, st.floats(0, 1), st.integers(0, 999), st.booleans(), st.booleans())
def test_every_operation_is_that_of_the_dense_matrix(size, density, seed, centre, single):
    n, d = size
    matrix = drawn(n, d, density, seed, np.float32 if single else np.float64)
    rng = np.random.default_rng(seed)
    rows, dense = both(matrix, rng.standard_normal(d) if centre else None)
    Z, Y = rng.standard_normal((d, 3)), rng.standard_normal((n, 2))
    # Few terms, of order one; products of float32 data with double blocks are in double.
    close = {"rtol": 0, "atol": 1e-12}
    np.testing.assert_allclose(rows @ Z, dense @ Z, **close)
    np.testing.assert_allclose(rows @ Z[:, 0], dense @ Z[:, 0], **close)
    np.testing.assert_allclose(rows.T @ Y, dense.T @ Y, **close)
    np.testing.assert_allclose(rows.T @ Y[:, 0], dense.T @ Y[:, 0], **close)
    np.testing.assert_allclose(Y.T @ rows, Y.T @ dense, **close)
    np.testing.assert_allclose(Z.T @ rows.T, Z.T @ dense.T, **close)
    np.testing.assert_allclose(rows.gram(np.float64), dense.T @ dense, **close)
    np.testing.assert_allclose(np.vstack([*rows.blocks(5)]), dense, **close)
    np.testing.assert_allclose(rows[1:4].toarray(), dense[1:4], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose([rows.max(), rows.min()], [dense.max(), dense.min()], **close)
    np.testing.assert_allclose(rows.squares(), np.sum(dense**2), **close)
    np.testing.assert_allclose(np.linalg.norm(rows), np.linalg.norm(dense), **close)
    np.testing.assert_allclose(rows.sum(), dense.sum(axis=0), **close)
    at, block = rows.whole_columns()
    np.testing.assert_allclose(block, dense[:, at], **close)
    assert set(at) == set(np.flatnonzero((matrix != 0).all(axis=0)))
    assert rows.any() == dense.any() and len(rows) == n and rows.shape == (n, d)
    assert np.result_type(rows, np.float32) == matrix.dtype


@pytest.mark.parametrize("centre", [False, True])
@pytest.mark.parametrize("scale", [1.0, 1e-160, 1e150])
@pytest.mark.parametrize("size", [(5, 80), (80, 5), (90, 100)])
def test_the_spectral_norm(size, scale, centre):
    matrix = drawn(*size, 0.3) * scale
    mean = np.linspace(-1, 1, size[1]) * scale if centre else None
    rows, dense = both(matrix, mean)
    want = np.linalg.norm(dense / scale, 2)
    # The square root of a Gram matrix's norm and Lanczos at tolerance 0: some roundings.
    assert linalg.spectral_norm(rows) / scale == pytest.approx(want, rel=1e-12)
    assert np.linalg.norm(rows, 2) == linalg.spectral_norm(rows)
    zero = checked(csr(np.zeros((70, 70))), "zero")
    assert linalg.spectral_norm(zero) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_row_norms_and_clipping(dtype):
    matrix = drawn(30, 8, 0.3, dtype=dtype)
    matrix[3] = 0
    rows = checked(csr(matrix), "m")
    np.testing.assert_allclose(
        bounded_rows.row_norms(rows), np.linalg.norm(matrix.astype(float), axis=1), rtol=1e-14
    )
    clipped = bounded_rows.clip_rows(rows, 0.7)
    assert clipped.dtype == dtype
    np.testing.assert_allclose(
        clipped.toarray(), bounded_rows.clip_rows(matrix, 0.7), rtol=4 * np.finfo(dtype).eps
    )
    assert bounded_rows.clip_rows(rows, 99.0) is rows
    refused(lambda: bounded_rows.require_rows(rows, 4, 0.7), InputError, "client 4")
    huge = checked(csr(np.array([[1e200, 0.0, 1e200], [0.5, 0.0, 0.0]])), "m")  # squares overflow
    np.testing.assert_allclose(
        bounded_rows.clip_rows(huge).toarray(), [[0.5**0.5, 0, 0.5**0.5], [0.5, 0, 0]], rtol=1e-15
    )


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e15])
def test_centring_subtracts_the_mean_without_a_dense_copy(offset):
    matrices = [drawn(n, 7, 0.3, n) for n in (5, 9, 30)]
    for matrix in matrices:
        matrix[:, 2] += offset  # a column far from the origin
    rows = [checked(csr(matrix), "m") for matrix in matrices]
    totals = [centring.sum_and_count(own) for own in rows]
    for total, matrix in zip(totals, matrices, strict=True):
        np.testing.assert_allclose(total, centring.sum_and_count(matrix), rtol=1e-15, atol=1e-13)
    mean = centring.mean_of(np.sum(totals, axis=0))
    np.testing.assert_allclose(mean, np.vstack(matrices).mean(axis=0), rtol=1e-15, atol=1e-15)
    for own, matrix in zip(rows, matrices, strict=True):
        moved = centring.centred(own, mean)
        np.testing.assert_array_equal(moved.toarray(), matrix - mean)
        # Only columns that are mostly stored get new entries, and lose their mean.
        filled = 2 * np.count_nonzero(matrix, axis=0) > len(matrix)
        np.testing.assert_array_equal(moved.mean, np.where(filled, 0.0, mean))
        assert moved.stored <= own.stored + len(matrix) * filled.sum()
        assert filled.any() or moved.matrix is own.matrix
    equal = [csr(np.tile([0.0, 2.0, 0.0, 0.5], (n, 1))) for n in (3, 4)]
    with pytest.raises(InputError):  # nothing is left of them
        fedcore.run("ssi", equal, 2, center=True)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
def test_every_format_of_scipy_is_taken_and_left_as_it_was(form, kind):
    dense = drawn(6, 4, 0.5)
    given_ = getattr(scipy.sparse, f"{form}_{kind}")(dense)
    (found,) = check_clients([given_])
    assert isinstance(found, SparseRows) and given_.format == form
    np.testing.assert_array_equal(found.toarray(), dense)
    np.testing.assert_array_equal(given_.toarray(), dense)


def test_duplicates_are_added_in_a_copy():
    given_ = scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2)
    )
    (found,) = check_clients([given_])
    np.testing.assert_array_equal(found.matrix.data, [4, 3])
    np.testing.assert_array_equal(given_.data, [1, 2, 4])


def bad(place, index, value):
    matrix = csr(drawn(4, 3, 1.0))
    getattr(matrix, place)[index] = value
    return matrix


SECOND = [  # clients, the first of which is right
    (bad("data", 7, np.nan), "has NaN", "row 2, feature 1"),
    (bad("data", 0, -np.inf), "has -inf", "row 0, feature 0"),
    (bad("indices", 4, 99), "not a valid sparse matrix"),
    (bad("indptr", 4, 99), "not a valid sparse matrix"),
    (csr(np.ones((4, 3), complex)), "complex128"),
    (csr((0, 3)), "is empty", "(0, 3)"),
    (csr((3, 0)), "is empty", "(3, 0)"),
    (csr(np.ones((4, 5))), "5 features", "3"),
    (np.ones((4, 3)), "dense", "client 0 is sparse"),
    (scipy.sparse.coo_array(np.ones(3)), "1-D"),
    (type("Other", (), {"toarray": None})(), "not of scipy.sparse"),
]
REFUSED = [
    *(([csr(drawn(4, 3, 1.0)), matrix], {}, "client 1", *names) for matrix, *names in SECOND),
    ([csr((5, 4))], {}, "zero"),
    ([csr(np.eye(3) * 1e200)], {}, "1e+200"),
    ([csr(np.eye(3))], {"n_components": 4}, "n_components = 4"),
    *(([csr(np.eye(5))], {"algorithm": name}, name, ".toarray()") for name in (
        "one_shot", "centralized_svd", "private_oja", "dp_pca", "dn26")),
]  # fmt: skip


@pytest.mark.parametrize(("clients", "options", "names"), [(c, o, n) for c, o, *n in REFUSED])
def test_what_is_no_sparse_client_or_not_taken_as_one(clients, options, names):
    call = partial(fedcore.run, **{"algorithm": "ssi", "n_components": 2, **options})
    refused(lambda: call(clients=clients), InputError, *names)


@pytest.mark.parametrize(
    "operation",
    [
        lambda m: np.asarray(m), lambda m: m * 2, lambda m: m - m, lambda m: np.abs(m),
        lambda m: np.vstack([m, m]), lambda m: m[0], lambda m: m[[1, 2]], lambda m: m @ m,
        lambda m: np.einsum("ij,ij->", m, m), lambda m: np.linalg.norm(m, 1), lambda m: [*m],
        lambda m: np.linalg.norm(m, axis=1), lambda m: m > 0,
    ],
)  # fmt: skip
def test_a_step_cannot_make_a_dense_copy_by_accident(operation):
    refused(lambda: operation(checked(csr(np.eye(3)), "m")), InputError, ".toarray()")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("algorithm", ["block_krylov", "ssi", "momentum_power"])
def test_the_answer_is_that_of_svds_and_of_numpy(algorithm, center, dtype):
    dense = topped(dtype=dtype)
    S = np.vstack(dense).astype(np.float64)
    S = S - S.mean(axis=0) if center else S
    found = fedcore.run(
        algorithm, [csr(m) for m in dense], 3, center=center, tol=0, rounds=60,
        measure=["objective", "subspace_distance"],
    )  # fmt: skip
    sigma, right = np.linalg.svd(S)[1:]
    lanczos = scipy.sparse.linalg.svds(S, k=3)[2]
    # An error E of SᵀS turns the subspace by ‖E‖ / gap; a product rounds by about √n eps ‖S‖².
    allowed = 40 * np.finfo(dtype).eps * sigma[0] ** 2 / (sigma[2] ** 2 - sigma[3] ** 2)
    P = found.components.T @ found.components
    for V in (right[:3], lanczos):
        assert np.linalg.norm(P - V.T @ V, 2) <= allowed
    floor = 0.5 * np.sum(sigma[3:] ** 2)
    assert found.history["objective"][-1] == pytest.approx(floor, rel=1e-5 if dtype == np.float32
                                                           else 1e-12)  # fmt: skip
    assert found.history["subspace_distance"][-1] <= allowed


@pytest.fixture
def by_products(monkeypatch):
    """Let every reference of sparse clients be too costly."""
    monkeypatch.setattr(problems, "COSTLY_OPERATIONS", 0.0)


@pytest.mark.parametrize("center", [False, True])
def test_without_a_reference_measures_come_from_products(by_products, center):
    dense = topped(d=60)
    ways = {"center": center, "rounds": 3, "tol": 0,
            "measure": ["objective", "subspace_distance", "projection_distance"]}  # fmt: skip
    found = fedcore.run("ssi", [csr(m) for m in dense], 3, **ways)
    want = fedcore.run("ssi", dense, 3, **ways)
    for name in ways["measure"]:
        # The loss is a difference of squares: rounding relative to ‖S‖².
        np.testing.assert_allclose(found.history[name], want.history[name], rtol=1e-10, atol=1e-12)
    wide = Problem("wide", Clients(check_clients([csr(m) for m in dense])))
    assert wide.by_products and wide.answer == {}
    for k in (3, 20):  # by Lanczos, and by the Gram matrix
        V = np.linalg.svd(np.vstack(dense))[2][:k].T
        own = wide.leading_vectors(k)
        gap = 1e-10  # the spectrum of the noise is spread
        assert np.linalg.norm(own @ own.T - V @ V.T, 2) <= gap
    refused(lambda: wide.singular_values, InputError, "wide", "60")


def test_the_reference_needs_some_rows_at_a_time_only():
    dense = topped()
    sparse = Problem("p", Clients(check_clients([csr(m) for m in dense])))
    plain = Problem("p", Clients(dense))
    # QR of other blocks: some roundings of ‖S‖.
    np.testing.assert_allclose(
        sparse.singular_values, plain.singular_values, rtol=0,
        atol=1e-14 * plain.singular_values[0],
    )  # fmt: skip
    assert sparse.checksum != plain.checksum


def test_the_checksum_covers_every_part():
    def sums(*parts, shape=(2, 3)):
        return Problem("p", [SparseRows(csr(parts, shape=shape))]).checksum

    base = np.array([1.0, 2.0]), np.array([0, 1]), np.array([0, 1, 2])
    others = [
        (np.array([1.0, 3.0]), *base[1:]), (base[0], np.array([0, 2]), base[2]),
        (*base[:2], np.array([0, 2, 2])),
    ]  # fmt: skip
    found = {sums(*base), sums(*base, shape=(2, 4)), *(sums(*parts) for parts in others)}
    assert len(found) == 5 and sums(*base) == sums(*base)


def test_wide_clients_run_in_the_memory_of_their_entries(by_products):
    rng = np.random.default_rng(0)
    n, d, used, each = 30, 1_000_000, 500, 20  # a Gram matrix would take 8 TB, one copy 240 MB
    clients = [
        csr((rng.random(n * each), rng.integers(0, used, n * each), np.arange(n + 1) * each),
            shape=(n, d))
        for _ in range(3)
    ]  # fmt: skip
    start = rng.standard_normal((d, 1))
    tracemalloc.start()
    found = fedcore.run("ssi", clients, 1, rounds=3, tol=0, start=start, center=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * d
    S = scipy.sparse.vstack(clients).tocsc()[:, :used].toarray()
    S -= S.mean(axis=0)
    z, losses = start[:used] / np.linalg.norm(start), []  # all other features are zero
    for _ in range(4):
        losses.append(0.5 * (np.sum(S**2) - np.linalg.norm(S @ z) ** 2))
        last, z = z, S.T @ (S @ z)
        z /= np.linalg.norm(z)
    np.testing.assert_allclose(found.history["objective"], losses, rtol=1e-12)
    assert abs(found.components[0, :used] @ last) == pytest.approx(1, rel=1e-12)
