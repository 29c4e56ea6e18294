from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcore.algorithms import power_iteration
from fedcore.federation.execution import summed
from fedcore.federation.federation import Federation
from fedcore.parts.gram_products import (
    gram_matrix,
    gram_pays_off,
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


def twinned() -> Any:
    """A step that replies with ones, whose twin, from its second call on, sums to 5."""

    def twin(clients: Any, state: SimpleNamespace, message: Any) -> Any:
        state.calls = getattr(state, "calls", 0) + 1
        return np.full(2, 5.0) if state.calls > 1 else None

    @summed(twin)
    def step(data: np.ndarray, state: SimpleNamespace, message: Any) -> np.ndarray:
        return np.ones(2)

    return step


def test_the_twin_is_asked_when_all_take_part_and_hold_the_same_message():
    step = twinned()
    federation = Federation(drawn([2, 3, 4]))
    assert (federation.sum(step) == 3).all()  # nothing has been sent
    federation.broadcast(1.0)
    assert (federation.sum(step) == 3).all()  # the twin declined
    before = federation.ledger.snapshot()
    assert (federation.sum(step) == 5).all()
    once = federation.ledger.snapshot()  # charged like the replies
    assert once["scalars_up"] - before["scalars_up"] == 3 * 2 and once["round"] == 3
    assert (federation.mean(step, of=[2, 0, 1]) == 5 / 3).all()
    assert [list(reply) for reply in federation.gather(step)] == [[1, 1]] * 3
    assert (federation.sum(step, of=[0, 2]) == 2).all()
    assert (federation.sum(step, of=[0, 0, 1]) == 3).all()
    federation.broadcast(2.0, to=[1])
    assert (federation.sum(step) == 3).all()
    assert federation.ledger.scalars_up - once["scalars_up"] == 2 * (3 + 3 + 2 + 3 + 3)
    other = Federation(drawn([2, 3]))  # starts anew
    other.broadcast(1.0)
    assert (other.sum(step) == 2).all()


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


def test_a_client_makes_its_gram_matrix_when_that_pays_and_keeps_it():
    wide, tall = drawn([4, 40])
    Z = np.eye(FEATURES)[:, :2]
    for data, pays in ((wide, False), (tall, True)):
        state = SimpleNamespace(kept=SimpleNamespace())
        for k in range(10):
            np.testing.assert_allclose(
                local_gram_product(data, state, Z), data.T @ (data @ Z), rtol=0, atol=1e-12
            )
            # 40·9 / (4·40 − 2·9) = 2.5 columns: after two products of two columns.
            assert hasattr(state.kept, "gram") == (pays and k >= 2)


@pytest.mark.parametrize(("step", "how"), [(gram_product, "sum"), (local_gram_product, "gather")])
def test_runs_on_the_same_clients_share_nothing_that_they_give(step, how):
    data = drawn([30, 40])
    clients = Clients(data)
    alone, _ = iterate(data, step, how)
    for _ in range(3):
        shared, _ = iterate(clients, step, how, check=False)
        np.testing.assert_array_equal(np.array(shared), np.array(alone))


@pytest.mark.parametrize(
    ("n", "d", "columns"), [(1000, 1000, 500), (501, 1000, 125250), (10**6, 1000, 251)]
)
def test_the_break_even_point(n, d, columns):
    entries = n * d
    assert gram_pays_off(entries, entries * d, d, columns)
    assert not gram_pays_off(entries, entries * d, d, columns - 2)
    assert not gram_pays_off(d // 2 * d, d // 2 * d * d, d, 10**9)


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
