from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fedcore
from fedcore import algorithms
from fedcore.algorithms.power_iteration import gram_product
from fedcore.federation.federation import Federation
from fedcore.federation.transcript import Transcript
from fedcore.parts.gram_products import gram_product as summed_product

# Methods without further required parameters: sums, means, gathers and local steps occur in them.
NAMES = [name for name in ("power_exact", "power_gd", "power_prox") if name in algorithms.names()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("single", [False, True], ids=["double", "single"])
def test_watching_changes_neither_results_nor_ledger(name, single, clients):
    clients = [client.astype(np.float32) if single else client for client in clients]
    plain = fedcore.run(name, clients, 3, seed=4)
    for transcript in (Transcript(), Transcript([2]), Transcript([]), Transcript(sums_only=True)):
        watched = fedcore.run(name, clients, 3, seed=4, transcript=transcript)
        assert watched.ledger == plain.ledger
        assert watched.components.tobytes() == plain.components.tobytes()
        for column, values in plain.history.items():
            np.testing.assert_array_equal(watched.history[column], values)
        assert bool(transcript.exchanges) == (transcript.clients != [])


def test_what_is_kept_is_what_was_received_and_sent(clients):
    seen = Transcript(clients=[1, 3])
    result = fedcore.run("power_iteration", clients, 2, power=2, transcript=seen)
    assert [(e.round, e.client) for e in seen.exchanges] == [
        (1, 1), (1, 3), (2, 1), (2, 3), (3, 1), (3, 3),
    ]  # fmt: skip
    assert result.ledger.rounds == 3
    for client in (1, 3):
        sketch, *products = seen.exchanges_of(client)
        assert sketch.received is None and sketch.sent.shape == (9, 2)
        S = clients[client]
        for exchange in products:
            np.testing.assert_array_equal(exchange.sent, S.T @ (S @ exchange.received))
    assert seen.exchanges_of(0) == []


def test_copies_are_kept_and_one_message_to_all_is_kept_once():
    seen = Transcript()
    federation = Federation([np.ones((2, 3)), np.ones((4, 3))], transcript=seen)
    message = {"Z": np.ones((3, 1))}
    federation.broadcast(message)
    for reply in federation.gather(gram_of_parts):
        reply[:] = -1
    message["Z"][:] = -1
    first, second = seen.exchanges
    np.testing.assert_array_equal(first.sent, np.full((3, 1), 6.0))
    np.testing.assert_array_equal(second.sent, np.full((3, 1), 12.0))
    np.testing.assert_array_equal(first.received["Z"], np.ones((3, 1)))
    assert first.received is second.received


def gram_of_parts(data: np.ndarray, state: Any, message: Any) -> np.ndarray:
    return gram_product(data, state, message["Z"])


@pytest.mark.parametrize("step", [gram_product, summed_product])
def test_secure_aggregation_shows_the_sum_and_gather_shows_all(step, clients):
    seen = Transcript([2], sums_only=True)
    federation = Federation(clients, transcript=seen)
    Z = np.random.default_rng(0).standard_normal((9, 2))
    federation.broadcast(Z)
    total, mean = federation.sum(step), federation.mean(step)
    replies = federation.gather(step)
    (one, other), (reply,) = seen.exchanges_of(None), seen.exchanges_of(2)
    np.testing.assert_array_equal(one.sent, total)
    np.testing.assert_array_equal(other.sent / 4, mean)
    np.testing.assert_array_equal(one.received, Z)
    np.testing.assert_array_equal(reply.sent, replies[2])
    assert [e.round for e in seen.exchanges] == [1, 2, 3]


def test_of_a_sampled_round_only_participants_are_seen(clients):
    seen, sums = Transcript([0, 2]), Transcript(sums_only=True)
    for transcript in (seen, sums):
        federation = Federation(clients, transcript=transcript)
        federation.broadcast(np.ones((9, 1)))
        federation.broadcast(np.zeros((9, 1)), to=[3])
        federation.sum(gram_product, of=[3, 2])
    assert [e.client for e in seen.exchanges] == [2]
    ((_, client, received, _),) = sums.exchanges
    assert client is None and received is None  # the participants held different messages
