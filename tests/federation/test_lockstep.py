"""Runs side by side: one wide product in the place of several, and the same bits as alone."""

from __future__ import annotations

import functools
import time

import numpy as np
import pytest

from fedcore import algorithms, metrics
from fedcore.federation import lockstep
from fedcore.federation.lockstep import SMALL_PRODUCT, tile_of_blas
from fedcore.linalg import orth
from fedcore.parts import gram_products
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.recorder import Recording
from fedcore.runs import execute


def asks(key: str, log: list, steps: int = 1, pause: float = 0.0) -> None:
    for _ in range(steps):
        time.sleep(pause)
        lockstep.meet(key, lambda several: log.append((key, len(several))) or several, None)


@pytest.mark.parametrize("pause", [0.0, 0.003])
def test_what_all_runs_ask_for_is_one_however_long_they_take_between(pause):
    log = []
    lockstep.run_all([functools.partial(asks, "A", log, 3, pause * p) for p in (1, 3, 2)])
    assert log == [("A", 3)] * 3


def test_runs_of_different_lengths_meet_again_at_the_next_request():
    log = []

    def run(steps: int) -> None:
        for _ in range(2):
            asks("A", log, steps)
            asks("B", log)
        asks("A", log)

    lockstep.run_all([functools.partial(run, 1), functools.partial(run, 4)])
    # A for both, three times for the slower one while the other waits for B, and B for both.
    once = [("A", 2), ("A", 1), ("A", 1), ("A", 1), ("B", 2)]
    assert log == [*once, *once, ("A", 2)]


METHODS = [
    ("ssi", {}),
    ("momentum_power", {}),
    ("local_power", {"schedule": "linear", "alignment": "procrustes"}),
    ("local_power", {"schedule": "constant"}),
    ("faps", {}),
    ("faps", {"inner": "residual", "inner_start": "server"}),
    ("faps", {"inner": "subspace_change", "inner_start": "server", "solver": "ritz"}),
    ("faps", {"solver": "krylov", "signs": "arbitrary"}),
    ("block_krylov", {"rounds": 4}),
    ("power_gd", {"local_steps": 10}),
]


SMALL = {"features": 90, "sizes": (30, 300, 120), "columns": 7}
LARGE = {"features": 361, "sizes": (350, 720, 401), "columns": 9}  # products of a tile are large


def starts(name: str, params: dict, gram: bool, size: dict = SMALL) -> tuple:
    """Return a function that runs some starts of a method side by side, and one that runs one."""
    rng, features = np.random.default_rng(3), size["features"]
    scale = 0.9 ** np.arange(features)
    data = [rng.standard_normal((n, features)) * scale for n in size["sizes"]]
    algorithm, recorded = algorithms.get(name), Recording([metrics.get("kkt")])
    values = {
        "n_components": size["columns"],
        **({} if name == "power_gd" else {"rounds": 12}),
        **params,
    }

    def run(clients: Clients, seed: int) -> tuple:
        own = {**values, "rounds": values["rounds"] - seed} if name == "faps" else values
        settings = algorithm.params(own)  # the starts of FAPS end at different rounds
        recorder, output = execute(algorithm, Problem("p", clients), settings, seed, recorded)
        return recorder.columns(), output.get("basis", output.get("V"))

    def beside(*seeds: int) -> dict:
        clients = Clients(data, gram=sum(d.T @ d for d in data) if gram else None)
        calls = [functools.partial(run, clients, seed) for seed in seeds]
        return dict(zip(seeds, lockstep.run_all(calls, seeds), strict=True))

    return beside, lambda seed: run(Clients(data), seed)


@pytest.mark.parametrize(("name", "params"), METHODS)
@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
def test_a_start_has_the_same_bits_alone_and_beside_any_others(name, params, gram, size):
    beside, _ = starts(name, params, gram, size)
    every = beside(0, 1, 2, 3, 4, 5)  # two blocks, of which the second has one start
    for others in ((3,), (5,), (4, 2)):
        for seed, (columns, basis) in beside(*others).items():
            wanted, exact = every[seed]
            np.testing.assert_array_equal(basis, exact)
            for column, values in columns.items():
                np.testing.assert_array_equal(values, wanted[column])


@pytest.mark.parametrize(("name", "params"), [m for m in METHODS if m[1]])
def test_side_by_side_is_a_plain_run_up_to_rounding(name, params):
    beside, alone = starts(name, params, gram=False)
    for seed, (columns, basis) in beside(0, 2).items():
        wanted, exact = alone(seed)
        if params.get("signs") != "arbitrary":  # (26) as printed amplifies rounding
            np.testing.assert_allclose(basis @ basis.T, exact @ exact.T, rtol=0, atol=1e-6)
        counts = ["round", "bytes_up"]
        if params.get("inner_start") == "server":  # these amplify no rounding
            counts.append("inner_products")
        for column in counts:
            np.testing.assert_array_equal(columns[column], wanted[column])


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["small", "large"])
def test_a_small_product_has_rows_for_a_whole_block_and_a_large_one_for_its_runs(monkeypatch, size):
    seen, by_data = [], gram_products.multiply_by_data

    def watched(data: np.ndarray, rows: np.ndarray) -> np.ndarray:
        seen.append(rows)
        return by_data(data, rows)

    monkeypatch.setattr(gram_products, "multiply_by_data", watched)
    params = {"local_steps": 1, "schedule": "constant"}
    beside, _ = starts("local_power", params, gram=False, size=size)
    beside(1, 3)
    p = size["columns"]
    places, height = (1, 3), lockstep.WIDTH * p
    if size is LARGE and tile_of_blas() is not None:
        places, height = (0, 1), 24  # 18 rows, and zeros
    assert {rows.shape for rows in seen} == {(height, size["features"])}
    for rows in seen:
        blocks = [range(place * p, (place + 1) * p) for place in places]
        assert not np.any(np.delete(rows, np.concatenate(blocks), axis=0))
        for block in blocks:
            np.testing.assert_allclose(rows[block] @ rows[block].T, np.eye(p), atol=1e-13)


def test_a_row_of_whole_tiles_has_the_same_bits_beside_any_others():
    tile = tile_of_blas()
    if tile is None:
        pytest.skip("this BLAS, or its number of threads, is not one of those that were measured")
    rng = np.random.default_rng(0)
    for d, n in ((361, 2600), (999, 250), (1158, 400), (1001, 1001), (400, 7000)):
        assert tile * min(d, n) * d > SMALL_PRODUCT
        rows, data = rng.standard_normal((10 * tile, d)), rng.standard_normal((n, d))
        matrix = rng.standard_normal((d, d))
        whole, by_data = rows @ matrix, gram_products.multiply_by_data(data, rows)
        for first, last in ((0, tile), (3, 3 + tile), (tile, 4 * tile), (2, 2 + 9 * tile)):
            some = rows[first:last]
            np.testing.assert_array_equal(some @ matrix, whole[first:last])
            found = gram_products.multiply_by_data(data, some)
            np.testing.assert_array_equal(found, by_data[first:last])


def test_orth_of_a_stack_is_that_of_each_matrix():
    """Whether Cholesky's factor serves is settled matrix by matrix."""
    rng = np.random.default_rng(0)
    for dtype, close in ((np.float64, 1e-13), (np.float32, 1e-4)):
        good = rng.standard_normal((4, 30, 3))
        bad = good[0] * [1.0, 1e-12, 1e-4]
        same = np.repeat(good[1][:, :1], 3, axis=1)  # of rank one
        huge = np.ldexp(good[2], 120 if dtype is np.float32 else 900)
        stack = np.stack([*good, good[0] * 1e-3, bad, same, huge]).astype(dtype)
        found = orth(stack)
        assert found.dtype == dtype
        np.testing.assert_array_equal(orth(stack[:5]), found[:5])
        for one, Q in zip(stack, found, strict=True):
            np.testing.assert_allclose(Q.T @ Q, np.eye(3), atol=close)
            if one is not stack[6]:
                np.testing.assert_allclose(Q, orth(one), atol=1e3 * close)


def busy(seconds: float) -> None:
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def test_the_seconds_of_what_is_computed_for_all_are_shared():
    """Each run works by itself for 0, 0.1 or 0.2 s; 0.3 s serve all three."""

    def serve(several: list) -> list:
        busy(0.3)
        return several

    def run(alone: float) -> float:
        before = lockstep.cpu_seconds()
        busy(alone)
        lockstep.meet("A", serve, None)
        return lockstep.cpu_seconds() - before

    found = lockstep.run_all([functools.partial(run, alone) for alone in (0.0, 0.1, 0.2)])
    np.testing.assert_allclose(found, [0.1, 0.2, 0.3], atol=0.03)
