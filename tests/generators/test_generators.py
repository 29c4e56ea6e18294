from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcore import generators

SMALL = {"n_clients": 4, "samples": 15, "n_features": 12, "rank": 3}


def low_rank(seed=0, **params):
    return generators.generate("low_rank", np.random.default_rng(seed), {**SMALL, **params})


def spectrum(clients):
    return np.linalg.svd(np.vstack(clients))[1]


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 4), st.integers(1, 8), st.integers(1, 8), st.data(), st.integers(0, 2**32 - 1)
)
def test_the_singular_values_are_the_given_ones_and_the_rest_is_zero(
    n_clients, samples, d, data, seed
):
    limit = min(n_clients * samples, d)
    sigma = data.draw(st.lists(st.floats(0.01, 100), min_size=1, max_size=limit))
    clients = low_rank(
        seed, n_clients=n_clients, samples=samples, n_features=d,
        rank=len(sigma), singular_values=sigma,
    )  # fmt: skip
    assert [client.shape for client in clients] == [(samples, d)] * n_clients
    expected = np.zeros(limit)
    expected[: len(sigma)] = sorted(sigma, reverse=True)
    # Singular values are accurate to a few eps times the largest.
    np.testing.assert_allclose(spectrum(clients), expected, rtol=0, atol=1e-13 * max(sigma))


def test_the_default_is_the_setting_of_the_paper():
    clients = generators.generate("low_rank", np.random.default_rng(0), {})
    assert len(clients) == 25 and {client.shape for client in clients} == {(200, 200)}
    sigma = np.linalg.svd(np.linalg.qr(np.vstack(clients), mode="r"))[1]
    np.testing.assert_allclose(sigma[:5], 1, rtol=1e-13)  # rounding
    assert sigma[5] < 1e-14
    assert np.linalg.matrix_rank(np.vstack(clients)) == 5


def test_the_noise_has_the_stated_standard_deviation_and_mean_zero():
    s, size = 1e-3, {"n_clients": 10, "samples": 100, "n_features": 50}
    noisy, clean = (np.vstack(low_rank(3, noise=noise, **size)) for noise in (s, 0.0))
    noise = noisy - clean  # the same draws before the noise
    count = noise.size  # 50 000
    # Five standard errors of the mean square (√(2/N)), the mean (s/√N), and the correlation of
    # neighbours (1/√N): each fails by chance once in two million.
    assert np.mean(noise**2) / s**2 == pytest.approx(1, abs=5 * np.sqrt(2 / count))
    assert abs(noise.mean()) < 5 * s / np.sqrt(count)
    assert abs(np.mean(noise[1:] * noise[:-1])) / s**2 < 5 / np.sqrt(count)
    assert abs(np.mean(noise[:, 1:] * noise[:, :-1])) / s**2 < 5 / np.sqrt(count)
    # Normal, not only of the right variance: kurtosis 3, standard error √(24/N).
    assert np.mean(noise**4) / s**4 == pytest.approx(3, abs=5 * np.sqrt(96 / count))


def test_the_row_and_column_spaces_are_uniformly_distributed():
    params = {"n_clients": 1, "samples": 4, "n_features": 4, "rank": 1}
    rng = np.random.default_rng(5)
    draws = np.array([generators.generate("low_rank", rng, params)[0] for _ in range(3000)])
    # E (u_i v_j)² = 1/16 for unit vectors of the sphere, standard deviation 0.11; E u_i v_j = 0;
    # five standard errors.
    np.testing.assert_allclose((draws**2).mean(axis=0), 1 / 16, atol=5 * 0.11 / np.sqrt(3000))
    np.testing.assert_allclose(draws.mean(axis=0), 0, atol=5 * 0.25 / np.sqrt(3000))


@pytest.mark.parametrize(("kind", "variance"), [("normal", 1.0), ("uniform", 1 / 3)])
def test_white_entries_are_independent_with_the_variance_of_their_kind(kind, variance):
    params = {"n_features": 40, "n_samples": 5000, "n_clients": 3, "kind": kind}
    clients = list(generators.generate("white", np.random.default_rng(3), params))
    assert [len(client) for client in clients] == [1667, 1667, 1666]
    S = np.vstack(clients)
    # Entries of SᵀS/m spread by at most √2·variance/√m; five of these.
    atol = 5 * np.sqrt(2) * variance / np.sqrt(5000)
    np.testing.assert_allclose(S.T @ S / 5000, variance * np.eye(40), atol=atol)


def test_clients_with_features_of_their_own_share_none():
    params = {"n_clients": 3, "samples": 400, "own": 2}
    clients = generators.generate("own_features", np.random.default_rng(5), params)
    for i, client in enumerate(clients):
        assert client.shape == (400, 6)
        used = np.flatnonzero(client.any(axis=0))
        assert used.tolist() == [2 * i, 2 * i + 1]
        assert client[:, used].std() == pytest.approx(1, abs=0.15)
