"""Counted operations, against a count of every single one, and against formulas of the methods."""

from __future__ import annotations

import operator
from functools import partialmethod

import numpy as np
import pytest

import fedcore
from factorization import operations as table_s1
from factorization.counted_arrays import (
    CLIENTS,
    ENTRIES,
    FACTORISATIONS,
    NOBODY,
    PRODUCTS,
    SERVER,
    Count,
    counted_federation,
    qr_operations,
    solve_operations,
)
from factorization.operations import Size
from fedcore.algorithms import power_gd
from fedcore.federation.federation import Federation
from fedcore.problems.regression import least_squares
from fedcore.repro.tables.rows import chosen


class Number:
    """A number that counts every arithmetic operation, for arrays of objects."""

    made = 0  # operations so far

    def __init__(self, value):
        self.value = value

    def _by(self, other, operation):
        Number.made += 1
        return Number(operation(self.value, getattr(other, "value", other)))


for name in ("add", "sub", "mul", "truediv"):
    counted = partialmethod(Number._by, operation=getattr(operator, name))
    setattr(Number, f"__{name}__", counted)


def numbers(matrix):
    return np.vectorize(Number, otypes=[object])(matrix)


def floats(matrix):
    return np.vectorize(lambda x: getattr(x, "value", x), otypes=[float])(matrix)


def householder(A):
    """Thin QR by reflections of an array of `Number`; Q is formed from the last reflection on."""
    m, k = A.shape
    A, vectors = A.copy(), []
    for j in range(k):
        v = A[j:, j].copy()
        length = Number(float(np.sqrt((v @ v).value)))
        v[0] = v[0] + (length if v[0].value >= 0 else Number(-length.value))
        vectors.append((v, Number(2.0) / (v @ v)))
        reflect(A[j:, j:], *vectors[-1])
    Q = numbers(np.eye(m, k))
    for j in reversed(range(k)):
        reflect(Q[j:, j:], *vectors[j])
    return Q, A[:k]


def reflect(block, v, scale):
    block -= np.outer(v, (v @ block) * scale)


def solved(A, b):
    """Solution by LU without pivoting, of arrays of `Number`."""
    A, b, n = A.copy(), b.copy(), len(A)
    for j in range(n - 1):
        factors = A[j + 1 :, j] / A[j, j]
        A[j + 1 :, j + 1 :] -= np.outer(factors, A[j, j + 1 :])
        b[j + 1 :] -= factors * b[j]
    for j in reversed(range(n)):
        b[j] = (b[j] - A[j, j + 1 :] @ b[j + 1 :] if j < n - 1 else b[j]) / A[j, j]
    return b


@pytest.fixture
def rng():
    Number.made = 0
    return np.random.default_rng(3)


def test_products_and_entries_are_counted_as_one_by_one(rng):
    A, B = rng.standard_normal((7, 5)), rng.standard_normal((5, 3))
    single = (numbers(A) @ numbers(B)) * Number(2.0) - Number(1.0)
    count = Count()
    found = count.array(A) @ B * 2.0 - 1.0
    np.testing.assert_allclose(np.asarray(found), floats(single), rtol=1e-13)
    assert count.found == {(SERVER, PRODUCTS): 2 * 7 * 5 * 3, (SERVER, ENTRIES): 2 * 7 * 3}
    # A sum of five products has four additions; the fifth is to a zero.
    assert Number.made == count.operations_of(SERVER) - 7 * 3


@pytest.mark.parametrize(
    ("call", "entries", "products"),
    [
        (lambda X, y: y @ X, 0, 2 * 4 * 3),
        (lambda X, y: X.T @ (X @ X.T), 0, 2 * 4 * 3 * 4 * 2),
        (lambda X, y: np.stack([X, X]) @ X.T, 0, 2 * 2 * 4 * 3 * 4),
        (lambda X, y: X.sum(axis=0), 12, 0),
        (lambda X, y: np.add(X, X, out=np.empty((4, 3))) / 2, 24, 0),
        (lambda X, y: np.ldexp(X, 3)[X > 0], 0, 0),
    ],
)
def test_what_counts_as_how_many(rng, call, entries, products):
    X, y, count = rng.standard_normal((4, 3)), rng.standard_normal(4), Count()
    found = call(count.array(X), y)
    np.testing.assert_array_equal(np.asarray(found), call(X, y))
    assert (count.found[SERVER, ENTRIES], count.found[SERVER, PRODUCTS]) == (entries, products)
    assert type(call(X, y)) is np.ndarray  # which counts nothing


@pytest.mark.parametrize(("m", "k"), [(40, 10), (60, 30), (30, 30)])
def test_a_qr_by_textbook_is_what_reflections_take_one_by_one(rng, m, k):
    A = rng.standard_normal((m, k))
    Q, R = householder(numbers(A))
    np.testing.assert_allclose(floats(Q) @ floats(R), A, rtol=0, atol=1e-12)
    # Terms of lower order are below 3/k of all: a few products of a length for each column.
    assert qr_operations(m, k) < Number.made < (1 + 3 / k) * qr_operations(m, k)


def test_a_solution_by_textbook_is_what_elimination_takes_one_by_one(rng):
    A, b = rng.standard_normal((30, 30)) + 30 * np.eye(30), rng.standard_normal(30)
    x = solved(numbers(A), numbers(b))
    np.testing.assert_allclose(floats(x), np.linalg.solve(A, b), rtol=1e-12)
    assert Number.made == pytest.approx(solve_operations(30, 1), rel=3 / 30)


def test_factorisations_of_numpy_are_counted_and_their_results_go_on(rng):
    A, y, count = rng.standard_normal((8, 3)), rng.standard_normal(8), Count()
    w = least_squares(count.array(A), y)
    np.testing.assert_allclose(np.asarray(w), np.linalg.lstsq(A, y)[0], rtol=1e-12)
    assert count.found == {
        (SERVER, FACTORISATIONS): qr_operations(8, 3) + solve_operations(3, 1),
        (SERVER, PRODUCTS): 2 * 8 * 3,
    }


def test_a_counted_run_is_the_run_itself_and_charges_the_ledger_as_much(clients):
    params = power_gd.Params(n_components=3, power=2)
    count = Count()
    mine, plain = counted_federation(clients, count, 5), Federation(clients, 5)
    found, other = (power_gd.fixed_basis(f, params)[0].V for f in (mine, plain))
    np.testing.assert_allclose(np.asarray(found), other, rtol=1e-12)
    assert mine.ledger == plain.ledger
    n, d = plain.shape.n_samples, plain.shape.n_features
    assert count.operations_of(CLIENTS) == 2 * n * d * 3 * (2 * 2 + 1)
    assert count.operations_of(SERVER) == (len(clients) - 1) * d * 3 * 3


def test_what_is_looked_at_counts_for_nobody(clients):
    count = Count()
    federation = counted_federation(clients, count)
    federation.broadcast(np.eye(clients[0].shape[1])[:, :2])
    federation.observe(lambda data, state, V: data @ V)
    assert (
        count.operations_of(CLIENTS)
        == count.operations_of(SERVER)
        == 0
        < count.operations_of(NOBODY)
    )


# --- Table S1 -----------------------------------------------------------------------------------

SMALL = Size(N=3, m=4, d=9, r=2, alpha=2, steps=3)
NDR, DR, QR = 3 * 4 * 9 * 2, 9 * 2, qr_operations(9, 2)


@pytest.mark.parametrize(
    ("method", "server", "clients"),
    [
        # Three rounds: three sums of three blocks, and the start and each sum orthonormalised; per
        # round three products of 4ndr, of which clients orthonormalise two.
        ("local_power", 3 * 2 * DR + 4 * QR, 3 * 3 * 4 * NDR + 3 * 3 * 2 * QR),
        ("power_iteration", 3 * 2 * DR + QR, 2 * NDR + 2 * 4 * NDR),
        # Per step two products, and sums and products of nd and 2nr entries.
        ("ours", 3 * 2 * DR, 10 * NDR + 3 * (4 * NDR + 12 * 9 + 2 * 12 * 2)),
    ],
)
def test_operations_of_the_methods_by_hand(method, server, clients):
    count = table_s1.counted(method, SMALL)
    assert count.operations_of(SERVER) == pytest.approx(server, rel=1e-12)  # thirds are rounded
    assert count.operations_of(CLIENTS) == pytest.approx(clients, rel=1e-12)


def test_more_samples_than_half_the_features_would_be_another_count():
    """LocalPower then multiplies by Gram matrices; no size of the table is such a one."""
    large = SMALL._replace(m=40, alpha=20)
    direct = (large.alpha + 1) * large.steps * 4 * large.ndr
    assert table_s1.counted("local_power", large).found[CLIENTS, PRODUCTS] < direct / 2
    assert all(2 * size.m <= size.d for size in table_s1.SIZES)


def test_the_printed_step_is_that_of_power_gd(clients):
    size = Size(alpha=0, r=3, steps=300)
    federation = Federation(clients, 7)
    table_s1.run_descent(federation, size)
    expected = fedcore.run("power_gd", clients, 3, seed=7, power=0, local_steps=300).output["U"]
    for U, other in zip(federation.client_state("U"), expected, strict=True):
        np.testing.assert_allclose(U, other, rtol=0, atol=1e-12)  # entries of order one


def test_the_table_divides_what_was_counted_by_what_is_printed(monkeypatch):
    monkeypatch.setattr(table_s1, "SIZES", (SMALL,))
    rows = table_s1.operations(None)
    assert len(rows) == len(table_s1.PRINTED)

    expected = {
        ("local_power", SERVER, "all", "ratio"): (6 * DR + QR) / (9 * DR + QR),
        ("local_power", SERVER, "all", "as_run"): (6 * DR + 4 * QR) / (9 * DR + QR),
        ("local_power", SERVER, "all", "multiply_adds"): (6 * DR + QR / 2) / (9 * DR + QR / 2),
        ("local_power", CLIENTS, "all", "ratio"): 9 / 6,
        ("local_power", CLIENTS, "exchange", "ratio"): 1.0,
        ("power_iteration", CLIENTS, "all", "ratio"): 10 / 4,
        ("power_iteration", CLIENTS, "exchange", "ratio"): 1.0,
        ("ours", SERVER, "all", "ratio"): 2 / 3,
        ("ours", CLIENTS, "exchange", "ratio"): 2.0,
        ("ours", CLIENTS, "exchange", "multiply_adds"): 1.0,
        ("ours", CLIENTS, "exchange-4ndr", "ratio"): 1.0,
        ("ours", CLIENTS, "text", "multiply_adds"): (11 * NDR + 3 * 13 * 12) / (18 * NDR),
        ("power_iteration", CLIENTS, "text", "multiply_adds"): 5 * NDR / (5 * NDR + 3 * DR),
        ("ours", CLIENTS, "step", "ratio"): 1 + (9 + 4) * 12 / (4 * NDR),
    }
    for (method, side, part, column), value in expected.items():
        (row,) = chosen(rows, method=method, side=side, part=part)
        assert row[column] == pytest.approx(value), (method, side, part, column)
