"""The mean of all clients is subtracted without loss of digits, and without a copy of all data."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcore
from fedcore.federation import centring
from fedcore.federation.federation import Federation
from fedcore.linalg import sin_theta
from fedcore.problems.clients import Clients
from fedcore.user_tables.matrices import check_clients


@st.composite
def shifted(draw):
    """Clients of whole numbers, and their centred rows, which are exact as the mean is whole."""
    half, d = draw(st.sampled_from([(30, 8), (300, 5), (6000, 3), (8, 300)]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    one = rng.integers(-9, 10, (half, d)) * 2.0 ** -np.minimum(np.arange(d), 6)
    rows = rng.permutation(np.vstack([one, -one]))
    offsets = np.round(rng.choice([0.0, 3.0, 500.0], d))
    if draw(st.booleans()):
        offsets[:] = 10 ** rng.integers(0, 10, d)
    if draw(st.booleans()):  # one far feature among near ones
        offsets[rng.integers(d)] = 1e9
    ends = np.unique(rng.integers(1, 2 * half, draw(st.integers(0, 5))))
    parts = [rows[a:b] + offsets for a, b in itertools.pairwise([0, *ends, 2 * half])]
    return parts, rows, offsets


@settings(max_examples=60, deadline=None)
@given(shifted(), st.booleans())
def test_offsets_cost_no_digits(drawn, sparse):
    parts, rows, offsets = drawn
    given = [scipy.sparse.csr_array(part) for part in parts] if sparse else parts
    model = fedcore.FederatedPCA(2, tol=1e-12).fit(given)
    np.testing.assert_allclose(model.mean_, offsets, rtol=1e-15, atol=1e-13)
    sigma, axes = np.linalg.svd(rows, full_matrices=False)[1:]
    np.testing.assert_allclose(model.singular_values_, sigma[:2], rtol=1e-12)
    gap = 1 - sigma[2] / sigma[1]
    assert sin_theta(axes[:2].T, model.components_.T) * gap <= 1e-10
    # A second round follows where a client has a far feature, and no other is charged.
    first = [part[: centring.ROWS] for part in parts]
    spread = [np.sqrt(len(f) / len(p)) * f.std(axis=0) for f, p in zip(first, parts, strict=True)]
    means = [part.mean(axis=0) for part in parts]
    far = any((abs(m) > centring.FAR * s).any() for m, s in zip(means, spread, strict=True))
    plain = Federation(check_clients(given))
    plain.center()
    assert plain.ledger.rounds == 1 + far


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_of_centred_clients_are_their_rows(dtype):
    rng = np.random.default_rng(0)
    parts = [rng.standard_normal((n, 7)).astype(dtype) for n in (3, 30_000, 1, 500)]
    once = centring.Centred(Clients(parts), np.arange(7.0))
    twice = centring.Centred(once, np.linspace(0, 1, 7))
    for clients in (once, twice):
        blocks = [block.copy() for block in centring.blocks(clients)]
        assert len(blocks) > 2
        np.testing.assert_array_equal(np.vstack(blocks), np.vstack(clients[:]))


def test_tall_clients_are_not_copied():
    rng = np.random.default_rng(0)
    parts = [1.0 + rng.standard_normal((10_000, 40)) for _ in range(10)]
    fedcore.FederatedPCA(3).fit(parts)
    tracemalloc.start()
    try:
        fedcore.FederatedPCA(3).fit(parts)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < sum(part.nbytes for part in parts) / 8
