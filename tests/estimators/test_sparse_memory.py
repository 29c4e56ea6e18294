"""Sparse clients make no dense copy: the peak of a fit is that of the entries."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

from fedcore.estimators import FederatedPCA
from memory_peak import peak

N, D, CLIENTS = 40_000, 600, 4
DENSE = 8 * N * D  # bytes
BLOCK = 8 * 4096 * D  # of `fedcore.federation.centring.ROWS` rows, which some sums take at a time


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
    "untested": lambda parts: FederatedPCA(3, algorithm="power_exact", power=4).fit(parts),
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


def test_scores_take_some_rows_at_a_time(parts):
    pca = FederatedPCA(3).fit(parts)
    whole = scipy.sparse.vstack(parts, format="csr")
    assert peak(lambda: pca.transform(whole)) < DENSE / 4
    assert peak(lambda: pca.score(whole)) < 5 * BLOCK + DENSE / 8 < 0.7 * DENSE
