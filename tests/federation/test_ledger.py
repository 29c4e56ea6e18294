from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedcore
from fedcore.federation.ledger import Cost, Ledger, payload


class Pair(NamedTuple):
    Y: np.ndarray
    Z: np.ndarray


@pytest.mark.parametrize(
    ("message", "scalars", "size"),
    [
        (None, 0, 0),
        (1, 1, 8),
        (1.5, 1, 8),
        (True, 1, 8),
        (1j, 1, 16),
        (np.float32(1), 1, 4),
        (np.float64(1), 1, 8),
        (np.zeros((3, 4)), 12, 96),
        (np.zeros((3, 4), np.float32), 12, 48),
        (np.zeros((3, 4), np.int8), 12, 12),
        (np.zeros((0, 4)), 0, 0),
        (np.zeros((3, 4))[::2], 8, 64),
        ([], 0, 0),
        ([np.zeros(2), 1.0, None], 3, 24),
        ((np.zeros(2), (np.zeros(3), 1)), 6, 48),
        ({"Y": np.zeros((2, 2)), "count": 3}, 5, 40),
        (Pair(np.zeros(2), np.zeros(3)), 5, 40),
    ],
)
def test_a_message_counts_its_numbers_and_their_bytes(message, scalars, size):
    assert payload(message) == (scalars, size)


@pytest.mark.parametrize(
    "message", ["text", b"bytes", object(), {1, 2}, [1, "text"], np.array([None]), np.array(["a"])]
)
def test_what_cannot_be_counted_cannot_be_sent(message):
    with pytest.raises(TypeError, match="cannot be sent or counted"):
        payload(message)


@given(st.recursive(st.integers() | st.none(), lambda inner: st.lists(inner, max_size=4)))
def test_nesting_does_not_change_the_count(message):
    def leaves(part):
        return sum(map(leaves, part)) if isinstance(part, list) else int(part is not None)

    assert payload(message) == (leaves(message), 8 * leaves(message))


def test_an_upload_is_a_round_and_a_download_is_none():
    ledger = Ledger()
    ledger.download(np.zeros((4, 2)), n_clients=3)
    assert (ledger.rounds, ledger.scalars_down, ledger.bytes_down) == (0, 24, 192)
    before = ledger.snapshot()
    ledger.upload([])  # of nobody
    assert ledger.snapshot() == before
    ledger.upload([np.zeros((4, 2)), np.zeros((4, 2))])
    ledger.upload([None, None])  # a round without numbers
    assert (ledger.rounds, ledger.scalars_up, ledger.bytes_up) == (2, 16, 128)
    assert ledger.cost() == Cost(rounds=2, scalars_up=16, scalars_down=24)
    assert (before["round"], before["scalars_up"]) == (0, 0)


@pytest.mark.parametrize("simulate", [False, True])
def test_a_printed_ledger_says_what_epsilon_means(simulate):
    clients = [np.eye(4)] * 2
    ledger = fedcore.run(
        "analyze_gauss", clients, 2, epsilon=0.5, delta=1e-5, simulate=simulate
    ).ledger
    for part in ("1 round", "160 bytes up", "0 down", "epsilon = 0.5", "delta = 1e-05", "1.649"):
        assert part in str(ledger)
    assert "replace_one" in repr(ledger) or "add_or_remove_one" in repr(ledger)
    for text in (str(ledger), repr(ledger)):
        assert ("no guarantee" in text) == simulate and "object at" not in text
    ledger.privacy.accounts[0].unprotected.add("bare")
    assert "infinite" in str(ledger) and "epsilon = inf" in repr(ledger) and "bare" in repr(ledger)
