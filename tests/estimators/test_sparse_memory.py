"""Sparse clients make no dense copy: the peak of a fit is that of the entries."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from fedcore.estimators import FederatedPCA
from memory_peak import peak

N, D, CLIENTS = 40_000, 600, 4
DENSE = 8 * N * D  # bytes


@pytest.fixture(scope="module")
def parts():
    """Five large directions among sparse noise."""
    rng = np.random.default_rng(0)
    noise = scipy.sparse.random_array((N, D), density=0.004, rng=rng, format="csr")
    large = scipy.sparse.csr_array(
        (rng.standard_normal(N) * 9, (np.arange(N), rng.integers(0, 5, N))), shape=(N, D)
    )
    whole = (noise + large).tocsr()
    return [whole[i * N // CLIENTS : (i + 1) * N // CLIENTS] for i in range(CLIENTS)]


FITS = {
    "pca": lambda parts: FederatedPCA(3).fit(parts),
    "scaled": lambda parts: FederatedPCA(3, scale=True).fit(parts),
    "about zero": lambda parts: FederatedPCA(3, center=False, scale=True).fit(parts),
    "untested": lambda parts: FederatedPCA(3, algorithm="power_exact", params={"power": 4}).fit(
        parts
    ),
    "grouped": lambda parts: FederatedPCA(3).fit(
        scipy.sparse.vstack(parts, format="csr"), groups=np.arange(N) % 3
    ),
}


@pytest.mark.filterwarnings("ignore::fedcore.ConvergenceWarning")
@pytest.mark.parametrize("name", FITS)
def test_a_fit_takes_the_memory_of_the_entries(parts, name):
    entries = sum(part.data.nbytes + part.indices.nbytes for part in parts)
    found = peak(lambda: FITS[name](parts))
    # Copies of the entries (checked, transposed, centred, scaled), scores, and d × d matrices.
    assert found < 8 * entries + 40 * 8 * N + 6 * 8 * D * D < DENSE / 3, f"{found / DENSE:.2g}"


def test_scores_take_the_memory_of_the_entries(parts):
    pca = FederatedPCA(3, scale=True).fit(parts)
    whole = scipy.sparse.vstack(parts, format="csr")
    entries = whole.data.nbytes + whole.indices.nbytes
    for call in (pca.transform, pca.score):
        assert peak(lambda call=call: call(whole)) < 8 * entries + 20 * 8 * N < DENSE / 7


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("density", [0.05, 0.6, 1.0])
def test_the_density_of_sparse_rows_is_that_of_dense_ones(density, center, dtype):
    """Also with columns that are far from the origin, whose rows all store an entry."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((200, 12)) * (rng.random((200, 12)) < density)
    x[:, :2] = 1e4 + rng.standard_normal((200, 2))
    x = x.astype(dtype)
    for scale in (True, False):
        pca = FederatedPCA(3, center=center, scale=scale).fit([x.astype(np.float64)])
        for rows in (x, x[:7], x[:1]):
            found = pca.score_samples(scipy.sparse.csr_array(rows))
            expected = pca.score_samples(rows.astype(np.float64))
            far = 1e-6 if dtype == np.float64 else 1e-2
            np.testing.assert_allclose(found, expected, rtol=far)
