"""Runs side by side: the same answers, one wide product in the place of several."""

from __future__ import annotations

import functools
import time

import numpy as np
import pytest

from fedcore import algorithms, metrics
from fedcore.federation import lockstep
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.recorder import Recording
from fedcore.runs import execute

A = np.diag(np.arange(1.0, 7.0))
B = np.eye(6)[::-1]


class Watched:
    """A matrix that notes how wide the blocks are that it is multiplied by."""

    def __init__(self, matrix: np.ndarray) -> None:
        self.matrix, self.widths = matrix, []

    def __call__(self, block: np.ndarray) -> np.ndarray:
        self.widths.append(block.shape[1])
        return self.matrix @ block


def powers(matrix: Watched, key: str, steps: int, columns: int, pause: float = 0.0) -> np.ndarray:
    Z = np.arange(6.0 * columns).reshape(6, columns)
    for _ in range(steps):
        time.sleep(pause)
        Z = lockstep.product(key, matrix, Z)
    return Z


def test_alone_a_product_is_a_product():
    a = Watched(A)
    np.testing.assert_array_equal(lockstep.product("A", a, B), A @ B)
    assert a.widths == [6]


@pytest.mark.parametrize("pause", [0.0, 0.003])
def test_products_of_all_runs_are_one_however_long_they_take_between(pause):
    a = Watched(A)
    calls = [functools.partial(powers, a, "A", 3, p, pause * p) for p in (1, 3, 2)]
    found = lockstep.run_all(calls)
    assert a.widths == [6, 6, 6]
    for p, Z in zip((1, 3, 2), found, strict=True):
        np.testing.assert_array_equal(
            Z, np.linalg.matrix_power(A, 3) @ powers(Watched(A), "", 0, p)
        )


def test_runs_of_different_lengths_meet_again_at_the_next_matrix():
    a, b = Watched(A), Watched(B)

    def run(steps: int) -> np.ndarray:
        for _ in range(2):
            powers(a, "A", steps, 1)
            powers(b, "B", 1, 1)
        return powers(a, "A", 1, 1)

    lockstep.run_all([functools.partial(run, 1), functools.partial(run, 4)])
    # A for both, three times for the slower one while the other waits for B, and B for both.
    assert a.widths == [2, 1, 1, 1, 2, 1, 1, 1, 2]
    assert b.widths == [2, 2]


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("ssi", {"rounds": 12}),
        ("local_power", {"rounds": 12, "schedule": "linear", "alignment": "procrustes"}),
        ("faps", {"rounds": 12, "inner": "residual"}),
        ("block_krylov", {"rounds": 4}),  # before the space of 9 features is full
        ("power_gd", {"local_steps": 10}),
    ],
)
@pytest.mark.parametrize("gram", [False, True])
def test_an_algorithm_gives_side_by_side_what_it_gives_alone(name, params, gram):
    rng = np.random.default_rng(3)
    data = [rng.standard_normal((n, 9)) * 0.7 ** np.arange(9) for n in (3, 30, 12)]
    algorithm, recorded = algorithms.get(name), Recording([metrics.get("kkt")])
    settings = algorithm.params({"n_components": 2, **params})

    def run(clients: Clients, seed: int) -> tuple:
        recorder, output = execute(algorithm, Problem("p", clients), settings, seed, recorded)
        return recorder.rows, output.get("basis", output.get("V"))

    def side_by_side() -> list:
        clients = Clients(data, gram=sum(d.T @ d for d in data) if gram else None)
        return lockstep.run_all([functools.partial(run, clients, seed) for seed in range(3)])

    alone = [run(Clients(data), seed) for seed in range(3)]
    found, again = side_by_side(), side_by_side()
    for (rows, basis), (wanted_rows, wanted), (_, same) in zip(found, alone, again, strict=True):
        np.testing.assert_allclose(basis, wanted, rtol=0, atol=1e-9)  # products in another order
        np.testing.assert_array_equal(basis, same)
        for row, expected in zip(rows, wanted_rows, strict=True):
            assert row == pytest.approx(expected, rel=1e-6, abs=1e-12)


def busy(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_the_seconds_of_a_joint_product_are_shared_by_columns():
    """Each run works by itself for 0, 0.1 or 0.2 s; one product of 0.4 s serves 1, 3 and 4."""

    def multiply(block: np.ndarray) -> np.ndarray:
        busy(0.4)
        return A @ block

    def run(alone: float, columns: int) -> float:
        before = lockstep.cpu_seconds()
        busy(alone)
        lockstep.product("A", multiply, np.ones((6, columns)))
        return lockstep.cpu_seconds() - before

    calls = [functools.partial(run, alone, p) for alone, p in ((0.0, 1), (0.1, 3), (0.2, 4))]
    found = lockstep.run_all(calls)
    np.testing.assert_allclose(found, [0.05, 0.25, 0.4], atol=0.03)
