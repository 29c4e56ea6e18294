"""Models I and II, clients that are reduced to factors, and the measures of their paper."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.linalg import subspace_angles

from fedcore import generators, metrics
from fedcore.errors import InputError
from fedcore.experiments import build
from fedcore.federation.federation import Federation
from fedcore.generators import spiked
from fedcore.iterates import Iterate
from fedcore.problems import storage
from fedcore.problems.clients import Clients, Reduction
from fedcore.problems.problem import Problem

SMALL = {"n_clients": 3, "samples": 700, "n_features": 9, "rank": 2}
SPEC = {"generator": "spiked", "params": SMALL}


def model(name, seed=0, **params):
    return generators.generate(name, np.random.default_rng(seed), params)


def draw_problem(spec=SPEC):
    return build.build("p", spec, raw="nowhere", seed=0, surrogate=False)


# --- Model I --------------------------------------------------------------------------------------


def test_a_factor_has_the_gram_matrix_of_the_rows_it_stands_for(monkeypatch):
    monkeypatch.setattr(spiked, "ROWS", 128)  # several chunks, the last one shorter
    factors = model("spiked", **SMALL)
    rows = list(model("spiked", **SMALL, reduce=False))
    assert [f.shape for f in factors] == [(9, 9)] * 3 and [r.shape for r in rows] == [(700, 9)] * 3
    for factor, client in zip(factors, rows, strict=True):
        np.testing.assert_allclose(factor.T @ factor, client.T @ client, rtol=0, atol=1e-11)
    norms = np.linalg.norm(np.vstack(rows), axis=1)
    np.testing.assert_allclose(norms, 1.0, rtol=1e-15 * 9)
    assert factors.reduction == Reduction((700, 700, 700), float(norms.max()))


def test_rows_have_the_direction_of_the_stated_gaussian():
    """With x ~ N(0, Σ), E[x xᵀ / ‖x‖²] has Σ's eigenvectors; d = 2 gives its eigenvalues.

    There they are √λᵢ / (√λ₁ + √λ₂), here λ = 1 + σ² and σ².
    """
    (rows,) = model("spiked", n_clients=1, samples=200_000, n_features=2, rank=1, reduce=False)
    weight = np.sqrt([1.36, 0.36])
    found = np.linalg.eigvalsh(rows.T @ rows / len(rows))[::-1]
    # Entries of a row's product with itself have a variance of at most 1/4.
    np.testing.assert_allclose(found, weight / weight.sum(), atol=5 * 0.5 / np.sqrt(len(rows)))


def test_memory_is_that_of_a_chunk_and_not_of_the_rows():
    tracemalloc.start()
    model("spiked", n_clients=2, samples=60_000, n_features=40, rank=4)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.6 * 2 * 60_000 * 40 * 8
    assert peak < 12 * spiked.ROWS * 40 * 8


def test_the_reduction_goes_through_the_file(tmp_path):
    problem = draw_problem()
    storage.save(problem, tmp_path / "p.h5")
    read = storage.load(tmp_path / "p.h5")
    assert read.clients.reduction == problem.clients.reduction
    assert read.n_samples == 2100 and Federation(read.clients, check=False).shape.n_samples == 2100
    rows = np.vstack(list(model("spiked", 7, **SMALL, reduce=False)))
    factors = model("spiked", 7, **SMALL)
    np.testing.assert_allclose(
        Problem("p", factors).singular_values, np.linalg.svd(rows)[1], rtol=1e-12
    )


def test_a_promise_on_rows_that_are_gone_is_kept_by_what_was_measured():
    clients = Clients([np.eye(3) * 7.0], reduction=Reduction((50,), 1.0))
    Federation(clients, check=False).bound_rows()  # a factor's own rows say nothing
    clients.reduction = Reduction((50,), 1.5)
    for clip in (False, True):
        with pytest.raises(InputError, match=r"the longest row has norm 1\.5, above the bound 1 "):
            Federation(clients, check=False).bound_rows(clip=clip)


# --- Model II -------------------------------------------------------------------------------------


def test_the_networks_are_symmetric_without_loops_and_of_the_stated_density():
    clients = model("block_model", n_clients=4, nodes=400)
    same = np.arange(400) // 200
    inside = same[:, None] == same[None, :]
    upper = np.triu(np.ones((400, 400), bool), 1)
    for i, client in enumerate(clients):
        edges = client > 0
        np.testing.assert_array_equal(edges, edges.T)
        assert not edges.diagonal().any()
        np.testing.assert_allclose(np.linalg.norm(client, axis=1), 1.0, rtol=1e-14)
        scale = 0.8 if i < 2 else 0.6
        for block, p in ((inside, 0.25 * scale), (~inside, 0.1 * scale)):
            count = (block & upper).sum()
            share = (edges & block & upper).sum() / count
            assert share == pytest.approx(p, abs=5 * np.sqrt(p * (1 - p) / count))


def test_a_node_without_neighbours_keeps_its_zeros():
    (client,) = model("block_model", n_clients=1, nodes=4, within=0.0, between=0.0, scales=[1.0])
    np.testing.assert_array_equal(client, np.zeros((4, 4)))


# --- measures -------------------------------------------------------------------------------------


def test_projection_distance_asks_for_the_target_only(clients):
    problem = Problem("p", clients)
    Z = np.linalg.qr(np.random.default_rng(0).standard_normal((9, 4)))[0]
    top = np.linalg.svd(np.vstack(clients))[2].T
    measure = metrics.get("projection_distance").function
    for k in (1, 2, 4):
        angles = subspace_angles(Z, top[:, :k])
        assert measure(Iterate(basis=Z, target=k), problem) == pytest.approx(np.sin(angles.max()))
    assert measure(Iterate(basis=Z), problem) == measure(Iterate(basis=Z, target=4), problem)


def test_misalignment_is_the_largest_distance_to_the_first(clients):
    measure = metrics.get("misalignment").function
    Z, W = np.eye(5)[:, :2], np.eye(5)[:, 2:4]
    assert measure(Iterate(basis=Z), None) == 0.0
    assert measure(Iterate(basis=Z, local=[Z, Z, -Z]), None) == pytest.approx(2.0)
    assert measure(Iterate(basis=Z, local=[Z, W]), None) == pytest.approx(np.sqrt(2))


def test_dissimilarity_is_that_of_definition_4():
    rng = np.random.default_rng(0)
    clients = [rng.standard_normal((30, 6)) * (i + 1) for i in range(4)]
    A = [4 / 120 * c.T @ c for c in clients]
    mean = sum(A) / 4
    eta = max(np.linalg.norm(a - mean, 2) for a in A) / np.linalg.norm(mean, 2)
    found = metrics.get("dissimilarity").function({}, Problem("p", clients))
    assert found == pytest.approx(eta, rel=1e-10)
