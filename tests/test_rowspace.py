"""Wide clients in coordinates of their rows: the answers, messages and costs of blocks."""

from __future__ import annotations

import itertools
import tracemalloc
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import fedcore
from fedcore.federation.federation import Federation
from fedcore.federation.transcript import Transcript
from fedcore.linalg import orth
from fedcore.parts.gram_products import gram_product
from fedcore.rowspace import WIDE, Block, frame_of
from fedcore.user_tables.matrices import check_clients

pytestmark = pytest.mark.filterwarnings("ignore::fedcore.ConvergenceWarning")
plain = patch.object(Federation, "frame", lambda self, start: None)


@st.composite
def wide(draw):
    """Clients of far more features than samples, of any rank, spread, precision and form."""
    n = draw(st.integers(2, 40))
    p = draw(st.integers(1, min(n, 4)))
    d = draw(st.integers(WIDE * (n + p), 3000))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    stored = draw(st.sampled_from([1, 5, 30]))
    columns = rng.integers(0, min(d, draw(st.sampled_from([3, 50, 3000]))), n * stored)
    values = rng.standard_normal(n * stored) + draw(st.sampled_from([0.0, 1.0]))
    rows = np.repeat(np.arange(n), stored)
    S = scipy.sparse.csr_array((values, (rows, columns)), shape=(n, d))
    if draw(st.booleans()):  # samples that occur twice, and one of zeros
        S = scipy.sparse.vstack([S, S[: n // 2], 0.0 * S[:1]], format="csr")[:n]
    S = S * 10.0 ** draw(st.integers(-20, 20))
    if draw(st.booleans()):
        S = scipy.sparse.csr_array(scipy.sparse.diags_array(0.5 ** np.arange(S.shape[0])) @ S)
    ends = sorted(rng.integers(1, n, draw(st.integers(0, 3)))) if n > 1 else []
    cuts = np.unique([0, *ends, n])
    parts = [S[a:b] for a, b in itertools.pairwise(cuts)]
    parts = [part.astype(draw(st.sampled_from([np.float64, np.float32]))) for part in parts]
    return [part.toarray() for part in parts] if draw(st.booleans()) else parts, p


def pooled(parts):
    """The rows of all clients, dense and in double precision."""
    dense = [part.toarray() if scipy.sparse.issparse(part) else part for part in parts]
    return np.vstack(dense).astype(np.float64)


def exact(parts, p, *, center):
    """The p leading right singular vectors, all singular values."""
    S = pooled(parts)
    if center:
        S = S - S.mean(axis=0)
    _, sigma, rows = np.linalg.svd(S, full_matrices=False)
    return rows[:p].T, sigma


@settings(max_examples=60, deadline=None)
@given(wide(), st.booleans())
def test_the_answer_is_that_of_a_singular_value_decomposition(drawn, center):
    parts, p = drawn
    U, sigma = exact(parts, p, center=center)
    if not sigma[0] > 0 or (parts[0].dtype == np.float32 and not 1e-12 < sigma[0] < 1e12):
        return
    found = fedcore.run("block_krylov", parts, p, measure=[], center=center)
    V = found.components.T
    np.testing.assert_allclose(V.T @ V, np.eye(p), atol=1e-12)
    S = U * sigma[:p]  # how far V is from the best p directions, weighed by what they hold
    digits = 1e-7 if parts[0].dtype == np.float64 else 1e-2
    assert np.linalg.norm(S - V @ (V.T @ S)) <= digits * np.linalg.norm(sigma)
    before = Federation(check_clients(parts))
    if center:
        before.center()
    numbers = len(parts) * parts[0].shape[1] * p * (found.ledger.rounds - before.ledger.rounds)
    size = 4 if all(part.dtype == np.float32 for part in parts) else 8
    assert found.ledger.scalars_up - before.ledger.scalars_up == numbers
    assert found.ledger.bytes_up - before.ledger.bytes_up == size * numbers
    assert found.ledger.bytes_down - before.ledger.bytes_down == size * numbers


@settings(max_examples=40, deadline=None)
@given(wide(), st.booleans())
def test_blocks_are_what_they_stand_for(drawn, center):
    parts, p = drawn
    S = pooled(parts)
    federation = Federation(check_clients(parts))
    if center:
        federation.center()
        S = S - S.mean(axis=0)
    X = orth(np.random.default_rng(0).standard_normal((S.shape[1], p)))
    frame = frame_of(federation.clients, X)
    if frame is None:  # rows that are small, but not rounding
        return
    scale = max(np.linalg.norm(S), np.finfo(np.float64).tiny)
    block = frame.block(frame.start)
    assert (block.shape, block.size, block.nbytes) == (X.shape, X.size, X.nbytes)
    np.testing.assert_allclose(np.asarray(block), X, atol=1e-7)
    image = block.gram_product()
    np.testing.assert_allclose(np.asarray(image) / scale**2, S.T @ (S @ X) / scale**2, atol=1e-9)
    # Inner products of blocks are those of their coordinates.
    inner = frame.start.T @ image.inside / scale**2
    np.testing.assert_allclose(inner, X.T @ S.T @ S @ X / scale**2, atol=1e-9)
    federation.broadcast(block)
    with np.errstate(over="ignore"):  # of squares in single precision, as in a run
        total = federation.sum(gram_product)
    assert isinstance(total, Block) and total.shape == X.shape


def clients(n=30, d=4000, dtype=np.float64, number=3):
    rng = np.random.default_rng(0)
    S = scipy.sparse.random_array((n, d), density=0.01, rng=rng, format="csr", dtype=dtype)
    return [S[i::number] for i in range(number)]


def test_a_run_in_coordinates_is_the_run_in_blocks():
    parts = clients()
    ways = {"measure": ["objective"], "iterates": "all", "rounds": 6, "tol": 0, "center": True}
    found = fedcore.run("block_krylov", parts, 2, **ways)
    with plain:
        blocks = fedcore.run("block_krylov", parts, 2, **ways)
    for name, column in blocks.history.items():
        np.testing.assert_allclose(found.history[name], column, rtol=1e-9)
    kept = found.iterates["shared"], blocks.iterates["shared"]
    for Z, other in zip(*kept, strict=True):  # signs of columns are those of LAPACK
        np.testing.assert_allclose(Z @ (Z.T @ other), other, atol=1e-8)
    np.testing.assert_allclose(found.output["ritz_values"], blocks.output["ritz_values"])
    assert found.ledger == blocks.ledger


def test_who_has_no_coordinates():
    """Narrow clients, and runs in which somebody reads single replies."""

    def frame(parts, p=2, **options):
        X = orth(np.random.default_rng(0).standard_normal((parts[0].shape[1], p)))
        return Federation(check_clients(parts), **options).frame(X)

    assert frame(clients()) is not None
    assert frame([part.toarray() for part in clients()]) is not None
    assert frame(clients(d=WIDE * 30)) is None
    assert frame(clients(n=600, d=600 * WIDE + WIDE, number=2), p=1) is None  # 600² > 8 d
    assert frame(clients(), transcript=Transcript()) is None
    start = exact(clients(), 2, center=False)[0]
    assert Federation(check_clients(clients())).frame(start) is None
    found = fedcore.run("block_krylov", clients(), 2, measure=[], start=start)
    np.testing.assert_allclose(np.linalg.svd(found.components @ start)[1], 1.0)


@pytest.mark.parametrize("center", [False, True])
def test_memory_is_that_of_a_few_blocks(center):
    """Forty rounds keep forty blocks of coordinates, not of features."""
    d, p = 100_000, 4
    parts = clients(n=100, d=d, number=4)
    tracemalloc.start()
    try:
        ways = {"measure": [], "iterates": "none", "rounds": 40, "tol": 0}
        model = fedcore.run("block_krylov", parts, p, center=center, **ways)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert model.ledger.rounds == 40 + center
    entries = sum(part.data.nbytes + part.indices.nbytes for part in parts)
    assert peak < 3 * entries + 8 * d * p * 8, peak / (8 * d * p)
