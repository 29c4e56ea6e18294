"""Metrics of the U that clients keep, on matrices whose rank, zeros and size are known."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import fedcore
from fedcore.iterates import ExplicitFactors, Iterate
from fedcore.metrics import get

NAMES = ("client_rank", "client_zeros", "client_size", "stacked_rank")


def measured(*matrices):
    """Return the metrics of clients that hold these U."""
    states = [SimpleNamespace(U=np.array(U, dtype=float)) for U in matrices]

    def look(step, message):
        return [step(None, state, message) for state in states]

    iterate = Iterate(factors=ExplicitFactors(np.eye(2), look))
    return [get(name).function(iterate, None) for name in NAMES]


def test_by_hand():
    """Ranks 2 and 1, three zeros of ten entries, and 16 + 14 = 30."""
    rank, zeros, size, _ = measured([[0, 2], [2, 2], [2, 0]], [[1, 2], [0, 3]])
    assert (rank, zeros) == (2, 0.3)
    assert size == pytest.approx(np.sqrt(30))
    rank, zeros, _, stacked = measured([[1, 2], [2, 4], [3, 6]], [[1, 0], [0, 1]])
    assert (rank, zeros, stacked) == (1.5, 0.2, 2)
    assert measured(np.zeros((3, 2))) == [0, 1, 0, 0]
    left, right = (np.random.default_rng(i).standard_normal((n, 2)) for i, n in enumerate((40, 5)))
    assert measured(left @ right.T)[::3] == [2, 2]  # rounding is no rank


def test_clients_of_low_rank_may_have_a_u_of_full_rank():
    rank, _, _, stacked = measured([[1, 0, 0]], [[0, 2, 0]], [[0, 3, 0], [0, 6, 0]])
    assert (rank, stacked) == (1, 2)


@pytest.mark.parametrize("wrong", [np.nan, np.inf])
def test_what_is_not_finite_has_no_rank(wrong):
    """A run that diverges ends with a record that says so, and not in the middle of an SVD."""
    rank, _, _, stacked = measured([[1, wrong]], [[1, 2], [0, 1]])
    assert np.isnan([rank, stacked]).all()


def test_a_run_measures_its_own_u_without_an_exchange(clients):
    """The last record is of the U that comes out, and the ledger is that without the metrics."""
    options = {"power": 1, "penalty": "l1", "strength": 0.5, "orthonormalise": True}
    options["local_steps"] = 4
    plain = fedcore.run("power_prox", clients, 3, **options)
    found = fedcore.run("power_prox", clients, 3, measure=NAMES, **options)
    assert found.ledger == plain.ledger
    U = np.vstack(found.output["U"])
    last = {name: found.history[name][-1] for name in NAMES}
    assert last["client_zeros"] == np.mean(U == 0)
    assert last["client_size"] == pytest.approx(np.linalg.norm(U))
    assert last["stacked_rank"] == np.linalg.matrix_rank(U)
    assert last["client_rank"] == np.mean([np.linalg.matrix_rank(u) for u in found.output["U"]])


def test_the_other_descent_holds_no_matrix(clients):
    found = fedcore.run("power_gd", clients, 3, power=1, local_steps=2, measure=NAMES)
    assert all(np.isnan(found.history[name]).all() for name in NAMES)
    assert not found.history["diverged"].any()
