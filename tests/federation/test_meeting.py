"""Runs that meet (`fedcore.federation.lockstep`): failures, many runs, NumPy's warnings."""

from __future__ import annotations

import functools
import threading
import warnings

import numpy as np
import pytest

from fedcore.federation import lockstep


def fails(arguments: list) -> list:
    raise ValueError("as it should")


def asks(*wanted: tuple) -> None:
    for key, serve in wanted:
        lockstep.meet(key, serve, None)


A_WORKS, B_FAILS, C_WORKS, D_WORKS = ("a", list), ("b", fails), ("c", list), ("d", list)


@pytest.mark.parametrize(
    "runs",
    [
        [[A_WORKS], [B_FAILS], [C_WORKS]],  # a run that has ended serves
        [[A_WORKS, D_WORKS], [B_FAILS], [C_WORKS]],  # one serves that asks for something else
        [[B_FAILS], [B_FAILS], []],  # one serves that never asks
    ],
)
def test_what_fails_ends_all_runs_whoever_serves(runs):
    found = []

    def call() -> None:
        with pytest.raises(ValueError, match="as it should"):
            lockstep.run_all([functools.partial(asks, *wanted) for wanted in runs])
        found.append(threading.active_count())

    before, thread = threading.active_count(), threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(10)
    assert found == [before + 1], "the runs wait for each other without end"


def test_runs_ignore_what_numpy_ignores_around_them():
    with np.errstate(over="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error")
        found = lockstep.run_all([lambda: np.float64(1e300) * np.float64(1e300)] * 2)
    assert found == [np.inf] * 2
