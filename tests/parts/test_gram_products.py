from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcore.algorithms import power_iteration
from fedcore.federation.federation import Federation
from fedcore.parts.gram_products import (
    gram_matrix,
    gram_product,
    local_gram_product,
)
from fedcore.problems.clients import Clients

FEATURES = 9
uneven = st.lists(st.integers(1, 40), min_size=1, max_size=6)


def drawn(sizes: list[int], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((n, FEATURES)) * 0.7 ** np.arange(FEATURES) for n in sizes]


def iterate(clients: list[np.ndarray], step: Any, how: str, **options: Any) -> tuple[list, Any]:
    """Sums (or means) along a subspace iteration, and the ledger."""
    federation = Federation(clients, **options)
    Z, found = np.eye(FEATURES)[:, :2], []
    for _ in range(8):
        federation.broadcast(Z)
        found.append(getattr(federation, how)(step))
        Z = np.linalg.qr(np.sum(found[-1], axis=0) if how == "gather" else found[-1])[0]
    return found, federation.ledger


@settings(max_examples=30, deadline=None)
@given(uneven, st.integers(0, 99), st.sampled_from(["sum", "mean"]), st.booleans())
def test_twin_and_plain_step_agree_to_rounding_and_cost_the_same(sizes, seed, how, single):
    clients = [c.astype(np.float32) if single else c for c in drawn(sizes, seed)]
    federations = [Federation(clients) for _ in range(2)]
    Z = np.eye(FEATURES)[:, :2]
    scale = sum(np.linalg.norm(c) ** 2 for c in clients)
    unit = np.finfo(clients[0].dtype).eps
    for _ in range(8):
        for federation in federations:
            federation.broadcast(Z)
        plain = getattr(federations[0], how)(power_iteration.gram_product)
        fast = getattr(federations[1], how)(gram_product)
        assert fast.dtype == plain.dtype == clients[0].dtype
        # Sums of up to 240 terms in another order.
        np.testing.assert_allclose(fast, plain, rtol=0, atol=300 * unit * scale)
        assert federations[0].ledger == federations[1].ledger
        Z = np.linalg.qr(plain)[0]


def test_mixed_precision_is_computed_and_charged_in_double():
    clients = drawn([20, 30])
    clients[0] = clients[0].astype(np.float32)
    plain, plain_ledger = iterate(clients, power_iteration.gram_product, "sum")
    fast, fast_ledger = iterate(clients, gram_product, "sum")
    assert fast_ledger == plain_ledger
    for a, b in zip(fast, plain, strict=True):
        assert a.dtype == np.float64
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)  # rounding of double precision
    one, other = SimpleNamespace(kept=SimpleNamespace()), np.eye(FEATURES)
    for _ in range(3):
        np.testing.assert_allclose(
            local_gram_product(clients[0], one, other),
            clients[0].astype(float).T @ clients[0],
            rtol=0,
            atol=1e-12,
        )


def test_a_part_of_the_clients_or_messages_that_differ_give_their_own_sum():
    """The kept sum is that of all clients and one message."""
    clients, Z = drawn([20, 30, 40]), np.eye(FEATURES)[:, :2]
    federation = Federation(clients)
    products = [c.T @ (c @ Z) for c in clients]
    for _ in range(3):
        federation.broadcast(Z)
        for of in ([0, 1, 2], [2, 0, 1], [0, 2], [0, 0, 1]):
            expected = sum(products[i] for i in of)
            np.testing.assert_allclose(federation.sum(gram_product, of=of), expected, atol=1e-11)
            mean = federation.mean(gram_product, of=of)
            np.testing.assert_allclose(mean, expected / len(of), atol=1e-11)
    federation.broadcast(2 * Z, to=[1])
    total = federation.sum(gram_product)
    np.testing.assert_allclose(total, products[0] + 2 * products[1] + products[2], atol=1e-11)


@settings(max_examples=30, deadline=None)
@given(uneven, st.integers(0, 99))
def test_the_gram_matrix_is_that_of_the_stack(sizes, seed):
    clients = drawn(sizes, seed)
    before = [client.copy() for client in clients]
    S = np.vstack(clients)
    gram = gram_matrix(clients)
    np.testing.assert_allclose(gram, S.T @ S, rtol=0, atol=1e-12 * max(1, np.trace(S.T @ S)))
    np.testing.assert_array_equal(gram, gram.T)
    for ours, theirs in zip(clients, before, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("step", "how"), [(gram_product, "sum"), (local_gram_product, "gather")])
def test_runs_on_the_same_clients_share_nothing_that_they_give(step, how):
    data = drawn([30, 40])
    clients = Clients(data)
    alone, _ = iterate(data, step, how)
    for _ in range(3):
        shared, _ = iterate(clients, step, how, check=False)
        np.testing.assert_array_equal(np.array(shared), np.array(alone))


def test_noise_free_data_keep_the_plain_step_of_power_iteration():
    # A Gram matrix would leave 1e-16 ‖S‖² and an exact loss far above 1e-25.
    assert not hasattr(power_iteration.gram_product, "summed")


def test_clipped_clients_do_not_use_what_was_kept_of_longer_rows():
    data = [10 * c for c in drawn([30, 40])]
    clients = Clients(data)
    for step, how in ((local_gram_product, "gather"), (gram_product, "sum")):
        iterate(clients, step, how, check=False)  # makes the Gram matrices of the long rows
    federation = Federation(clients, check=False)
    federation.bound_rows(clip=True)
    Z = np.eye(FEATURES)[:, :2]
    clipped = [c / np.maximum(np.linalg.norm(c, axis=1), 1)[:, None] for c in data]
    for _ in range(8):
        federation.broadcast(Z)
        for reply, c in zip(federation.gather(local_gram_product), clipped, strict=True):
            np.testing.assert_allclose(reply, c.T @ (c @ Z), rtol=0, atol=1e-12)
        total = federation.sum(gram_product)
        np.testing.assert_allclose(total, sum(c.T @ (c @ Z) for c in clipped), rtol=0, atol=1e-12)
