from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcore import algorithms, metrics
from fedcore.errors import ConfigError, DataError, InputError
from fedcore.experiments import build, from_dataset
from fedcore.problems import storage
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.recorder import Recording
from fedcore.runs import execute
from fedcore.user_tables.matrices import check_clients
from refused import refused

SPEC = {
    "generator": "low_rank",
    "params": {"n_clients": 3, "samples": 10, "n_features": 6, "rank": 2, "noise": 0.01},
}


def draw_problem(name="synthetic", spec=SPEC, seed=0, **changes):
    return build.build(name, {**spec, **changes}, raw="nowhere", seed=seed, surrogate=False)


@pytest.fixture
def file(problem, tmp_path):
    storage.save(problem, tmp_path / "problem.h5")
    return tmp_path / "problem.h5"


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(1, 8), st.integers(0, 99))
def test_the_reference_is_the_svd_of_the_stack(sizes, d, seed):
    rng = np.random.default_rng(seed)
    clients = [rng.standard_normal((n, d)) for n in sizes]
    S, problem = np.vstack(clients), Problem("random", clients)
    sigma = np.linalg.svd(S, full_matrices=False)[1]
    assert problem.right_vectors.shape == (d, len(sigma))
    # Singular values are accurate to eps·σ_max; vectors are compared by what they do to S, since
    # those of close singular values may turn into each other.
    np.testing.assert_allclose(problem.singular_values, sigma, rtol=0, atol=1e-13)
    np.testing.assert_allclose(
        np.linalg.norm(S @ problem.right_vectors, axis=0), sigma, rtol=0, atol=1e-13
    )
    np.testing.assert_allclose(
        problem.right_vectors.T @ problem.right_vectors, np.eye(len(sigma)), atol=1e-13
    )


@pytest.mark.parametrize("rank", [1, 3, 9])
def test_the_exact_loss_is_that_of_least_squares(problem, rank):
    S, V = np.vstack(problem.clients), np.random.default_rng(rank).standard_normal((9, rank))
    U = np.linalg.lstsq(V, S.T, rcond=None)[0].T
    expected = 0.5 * np.linalg.norm(S - U @ V.T) ** 2
    # Rounding; at full rank both are zero to (eps ‖S‖)² times the number of entries.
    assert problem.exact_loss(V) == pytest.approx(expected, rel=1e-12, abs=1e-27)


def test_the_exact_loss_follows_a_matrix_that_is_changed_in_place(problem):
    V = np.eye(9)[:, :3].copy()
    before = problem.exact_loss(V)
    V[:] = np.eye(9)[:, 3:6]
    assert problem.exact_loss(V) == problem.exact_loss(np.eye(9)[:, 3:6]) != before


@pytest.mark.parametrize("rank", range(10))
def test_the_best_loss_is_the_tail_of_the_spectrum(problem, rank):
    tail = np.linalg.svd(np.vstack(problem.clients))[1][rank:]
    expected = 0.5 * np.sum(tail**2)
    attained = problem.exact_loss(problem.right_vectors[:, :rank])
    assert attained == pytest.approx(expected, rel=1e-10, abs=1e-27)


def test_the_reference_of_single_precision_data_is_computed_in_double(problem):
    single = Problem("single", [client.astype(np.float32) for client in problem.clients])
    expected = np.linalg.svd(np.vstack(single.clients).astype(float))[1]
    assert single.singular_values.dtype == np.float64
    np.testing.assert_allclose(single.singular_values, expected, rtol=0, atol=1e-13)  # rounding


def test_what_is_loaded_is_what_was_saved(problem, file):
    problem.note = ""
    loaded = storage.load(file)
    assert (loaded.name, loaded.status, loaded.note) == (problem.name, problem.status, "")
    assert loaded.checksum == problem.checksum
    for ours, theirs in zip(loaded.clients, problem.clients, strict=True):
        np.testing.assert_array_equal(ours, theirs)
        assert ours.dtype == theirs.dtype
    for ours, theirs in zip(loaded.reference, problem.reference, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_stored_gram_matrix_serves_sums_as_the_clients_do(tmp_path):
    made, plain = draw_problem(gram=True), draw_problem()
    S = np.vstack(plain.clients)
    np.testing.assert_allclose(made.clients.gram, S.T @ S, atol=1e-13)
    assert made.checksum == plain.checksum  # of the data
    storage.save(made, tmp_path / "problem.h5")
    problem = storage.load(tmp_path / "problem.h5")
    found = basis_of("ssi", problem, rounds=400)
    top = np.linalg.svd(S)[2][:2].T
    assert np.linalg.norm(found - top @ (top.T @ found)) < 1e-10
    np.testing.assert_allclose(
        basis_of("faps", problem, rounds=5), basis_of("faps", plain, rounds=5), atol=1e-12
    )
    for ours, theirs in zip(problem.clients, plain.clients, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_clients_are_those_of_the_gram_matrix_whatever_takes_the_name_of_their_file(tmp_path):
    made, path = draw_problem(gram=True), tmp_path / "problem.h5"
    storage.save(made, path)
    problem = storage.load(path)
    storage.save(Problem("other", Clients([2.0 * client for client in made.clients])), path)
    np.testing.assert_array_equal(problem.clients[0], made.clients[0])


def basis_of(algorithm, problem, **params):
    chosen, recorded = algorithms.get(algorithm), Recording([metrics.get("kkt")])
    settings = chosen.params({"n_components": 2, **params})
    return execute(chosen, problem, settings, 0, recorded)[1]["basis"]


def test_more_than_ten_clients_keep_their_order(tmp_path):
    clients = [np.full((1, 2), float(i)) for i in range(1, 25)]
    storage.save(Problem("many", clients), tmp_path / "many.h5")
    loaded = storage.load(tmp_path / "many.h5").clients
    assert [client[0, 0] for client in loaded] == list(range(1, 25))


def test_the_checksum_depends_on_values_division_and_precision(clients):
    S = np.vstack(clients)
    kinds = [clients, [S], clients[::-1], [S + 1e-15], [S.astype(np.float32)]]
    assert len({Problem("any name", list(kind)).checksum for kind in kinds}) == len(kinds)
    assert Problem("a", clients).checksum == Problem("b", [c.copy() for c in clients]).checksum


def replaced(part, array):
    def change(opened):
        del opened[part]
        opened[part] = array

    return change


# With a good seal; what is damaged or hostile has tests in tests/files.
MISFITS = {
    "schema": lambda opened: opened.attrs.modify("schema", 99),
    "no clients": lambda opened: opened.__delitem__("clients"),
    "no vectors": lambda opened: opened.__delitem__("reference/right_vectors"),
    "no name": lambda opened: opened.attrs.__delitem__("name"),
    "a vector": replaced("clients/00001", np.ones(17)),
    "fewer columns": replaced("clients/00001", np.ones((17, 8))),
    "complex": replaced("clients/00000", np.ones((12, 9), complex)),
    "short vectors": replaced("reference/right_vectors", np.ones((8, 9))),
    "a matrix of values": replaced("reference/singular_values", np.ones((9, 1))),
}


@pytest.mark.parametrize("misfit", MISFITS)
def test_parts_that_are_missing_or_do_not_fit_together_are_refused(file, misfit, resealed):
    resealed(file, MISFITS[misfit])
    refused(lambda: storage.load(file), DataError, str(file))


def test_the_seal_stands_for_the_data_which_are_not_hashed_again(file, resealed):
    stored = storage.load(file).checksum
    resealed(file, lambda opened: opened["clients/00001"].write_direct(np.ones((17, 9))))
    assert storage.load(file).checksum == stored


def test_a_write_that_fails_leaves_nothing_behind(clients, tmp_path):
    broken = Problem("broken", clients, note=object())
    with pytest.raises(TypeError):
        storage.save(broken, tmp_path / "problem.h5")
    assert list(tmp_path.iterdir()) == []


def test_a_problem_depends_on_its_name_and_the_master_seed_alone():
    first = draw_problem()
    assert draw_problem().checksum == first.checksum
    assert draw_problem(name="other").checksum != first.checksum
    assert draw_problem(seed=1).checksum != first.checksum
    assert [client.shape for client in first.clients] == [(10, 6)] * 3
    assert first.status == "synthetic"


def test_drawn_data_are_drawn_whatever_stands_in_for_data_sets(tmp_path):
    drawn = draw_problem()
    beside = build.build("synthetic", SPEC, raw="nowhere", seed=0, surrogate=True)
    assert (drawn.status, drawn.note) == (beside.status, beside.note) == ("synthetic", "")
    assert beside.checksum == drawn.checksum  # the same draws


WRONG = [
    ({"generator": "lowrank"}, "'lowrank'", "'low_rank'"),
    ({"params": {"nois": 1}}, "'nois'", "'noise'"),
    ({"params": {"rank": 0}}, "rank"),
]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_a_wrong_specification_is_refused(wrong):
    changes, *names = wrong
    refused(lambda: draw_problem(**changes), (InputError, ConfigError), *names)


def test_scales_do_what_their_names_say():
    pixels = np.array([0.0, 127.5, 255.0])
    np.testing.assert_array_equal(from_dataset.SCALES["none"](pixels), pixels)
    np.testing.assert_array_equal(from_dataset.SCALES["unit"](pixels), [0, 0.5, 1])
    np.testing.assert_array_equal(from_dataset.SCALES["signed_unit"](pixels), [-1, 0, 1])
    rows = np.array([[3.0, 4.0], [0.3, 0.4]])
    np.testing.assert_allclose(from_dataset.SCALES["unit_rows"](rows), [[0.6, 0.8], [0.3, 0.4]])


def test_the_longest_row_gets_its_norm():
    spec = {"generator": "spectrum", "params": {"n_features": 6, "n_samples": 50, "n_clients": 2}}
    plain, scaled = draw_problem(spec=spec), draw_problem(spec=spec, largest_row=2.0)
    rows = np.vstack([np.asarray(client) for client in scaled.clients])
    assert np.linalg.norm(rows, axis=1).max() == pytest.approx(2.0)
    sigma = np.linalg.svd(rows, compute_uv=False)
    np.testing.assert_allclose(scaled.singular_values, sigma, rtol=1e-10)
    ratio = sigma[0] / plain.singular_values[0]
    np.testing.assert_allclose(scaled.singular_values, ratio * plain.singular_values, rtol=1e-10)
    reduced = {"n_clients": 3, "samples": 40, "n_features": 6, "rank": 2}
    with pytest.raises(InputError, match="only unlabelled single rows"):
        draw_problem(spec={"generator": "spiked", "params": reduced}, largest_row=1.0)


def test_centred_images_have_mean_zero_and_the_differences_of_the_others():
    spec = {"dataset": "mnist", "scale": "unit", "partition": {"by": "even", "clients": 4}}
    make = {"raw": "", "seed": 0, "surrogate": True}
    raw = np.vstack(build.build("raw", spec, **make).clients)
    centred = np.vstack(build.build("centred", spec | {"centre": True}, **make).clients)
    np.testing.assert_allclose(centred.mean(axis=0), 0, atol=1e-14)
    np.testing.assert_allclose(centred - centred[0], raw - raw[0], atol=1e-14)


def test_sparse_clients_have_no_file(tmp_path):
    problem = Problem("p", check_clients([scipy.sparse.csr_array(np.eye(3))]))
    with pytest.raises(InputError, match=r"a problem file needs dense samples.*\.toarray\(\)"):
        storage.save(problem, tmp_path / "p.h5")
