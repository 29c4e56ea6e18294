"""What a fit does not do twice, and how it multiplies: the answer is that of numpy's SVD."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fedcore
from fedcore.estimators import exact_fit, extra_rounds
from fedcore.federation.federation import Federation
from fedcore.federation.in_process import InProcess
from fedcore.linalg import gram_matrix, sin_theta
from fedcore.parts import gram_products
from fedcore.problems import clients as problem_clients


@pytest.fixture
def made(monkeypatch):
    """The shapes of the Gram matrices of all data that a fit makes before its rounds."""
    shapes = []

    real = exact_fit.pooled_gram

    def noted(clients):
        shapes.append((clients.n_samples, clients.n_features))
        return real(clients)

    monkeypatch.setattr(exact_fit, "pooled_gram", noted)
    return shapes


def parted(matrix, k=4):
    return [np.ascontiguousarray(part) for part in np.array_split(matrix, k)]


@pytest.mark.parametrize("algorithm", sorted(exact_fit.SUMS))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_tall_data_are_multiplied_by_their_gram_matrix(made, matrix_with, algorithm, dtype):
    S = 3.0 + matrix_with(600, 20, 0.5 ** np.arange(20), seed=2)
    model = fedcore.FederatedPCA(3, algorithm=algorithm).fit(parted(S.astype(dtype)))
    assert made == [(600, 20)]
    exact = np.linalg.svd(S - S.mean(axis=0), full_matrices=False)[2][:3]
    limit = max(1e-8, 1000 * np.finfo(dtype).eps * 2.0**6)  # the tolerance, or rounding
    assert sin_theta(model.components_.T, exact.T) <= limit


def test_wide_data_are_multiplied_by_themselves(made, matrix_with):
    S = matrix_with(150, 400, 0.5 ** np.arange(150), seed=2)
    model = fedcore.FederatedPCA(3).fit(parted(S))
    assert not made
    exact = np.linalg.svd(S - S.mean(axis=0), full_matrices=False)[2][:3]
    assert sin_theta(model.components_.T, exact.T) <= 1e-10


def test_the_gram_matrix_changes_neither_answer_nor_ledger(monkeypatch, matrix_with):
    S = matrix_with(500, 30, 0.8 ** np.arange(30), seed=5)
    fast = fedcore.FederatedPCA(4).fit(parted(S))
    monkeypatch.setattr(exact_fit, "SUMS", frozenset())
    monkeypatch.setattr(gram_products, "gram_pays_off", lambda *sizes: False)
    plain = fedcore.FederatedPCA(4).fit(parted(S))
    np.testing.assert_allclose(fast.components_, plain.components_, atol=1e-10)
    np.testing.assert_allclose(fast.singular_values_, plain.singular_values_, rtol=1e-10)
    assert fast.ledger_.snapshot() == plain.ledger_.snapshot()
    assert max(fast.error_estimate_, plain.error_estimate_) < 1e-8


def test_it_is_made_only_where_the_clients_sums_are_taken_at_once(made, monkeypatch, matrix_with):
    """Clients elsewhere multiply by their own data, and this process would use it for nothing."""
    S = parted(matrix_with(200, 10, 0.5 ** np.arange(10), seed=3))
    here = fedcore.FederatedPCA(2).fit(S)
    assert len(made) == 1
    monkeypatch.setattr(Federation, "engine", lambda setup: InProcess(setup, plain=True))
    there = fedcore.FederatedPCA(2).fit(S)
    assert len(made) == 1
    np.testing.assert_allclose(here.components_, there.components_, atol=1e-10)


def test_methods_that_read_the_data_themselves_get_no_gram_matrix(made, matrix_with):
    S = parted(matrix_with(200, 10, 0.5 ** np.arange(10), seed=3))
    fedcore.FederatedPCA(2, algorithm="power_exact", params={"power": 2}).fit(S)
    assert not made


def test_every_client_is_checked_once(monkeypatch, matrix_with):
    seen = []
    check = problem_clients.check_matrix
    monkeypatch.setattr(
        problem_clients, "check_matrix", lambda x, who, order: seen.append(who) or check(x, who)
    )
    S = parted(matrix_with(200, 10, 0.5 ** np.arange(10), seed=3))
    fedcore.FederatedPCA(2, scale=True).fit(S)
    assert seen == [f"client {i}" for i in range(4)]


def test_the_gram_matrix_pays_off_for_tall_data_and_few_rounds():
    """It costs n d² operations, and eight products with r + 15 columns 4 n d each."""
    for n, d, r in itertools.product((100, 10_000), (50, 700, 900), (1, 10)):
        clients = problem_clients.Clients([np.empty((n, d))])
        saved = 4 * n * d - 2 * d * d
        assert exact_fit.gram_comes_first(clients, r) == (8 * (r + 15) * saved >= n * d * d)


def test_the_pooled_gram_matrix_is_that_of_the_rows(matrix_with):
    S = matrix_with(200, 10, 0.5 ** np.arange(10), seed=3)
    for dtype, atol in ((np.float64, 1e-15), (np.float32, 1e-6)):
        clients = problem_clients.Clients(parted(S.astype(dtype)))
        found = exact_fit.pooled_gram(clients)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, S.T @ S, atol=atol)
        np.testing.assert_allclose(found, gram_matrix(clients), atol=atol)
        np.testing.assert_array_equal(found, found.T)


def test_the_last_round_takes_the_gram_matrix_in_double_and_not_the_data_again(monkeypatch):
    rng = np.random.default_rng(0)
    parts = [1.0 + rng.standard_normal((50, 6)) for _ in range(3)]
    plain = fedcore.FederatedPCA(2)
    monkeypatch.setattr(extra_rounds.moments, "summed", lambda *asked: None)
    plain.fit(parts)
    monkeypatch.undo()
    monkeypatch.setattr(extra_rounds, "_moments", None)
    fast = fedcore.FederatedPCA(2).fit(parts)
    np.testing.assert_allclose(fast.singular_values_, plain.singular_values_, rtol=1e-14)
    np.testing.assert_allclose(fast.noise_variance_, plain.noise_variance_, rtol=1e-12)
    assert fast.ledger_ == plain.ledger_
    with pytest.raises(TypeError):  # float32: the sums of the last round are in double
        fedcore.FederatedPCA(2).fit([part.astype(np.float32) for part in parts])
