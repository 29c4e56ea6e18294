"""What jobs ask of a cluster."""

from __future__ import annotations

import os

import pytest

from fedcore.experiments import needs


@pytest.mark.parametrize(
    ("last", "attempt", "remote", "asked"),
    [
        (None, 1, False, 3000),  # nothing was measured: as declared
        ((10.0, 0.0), 1, False, 3000),
        ((10.0, 400.0), 1, False, 500),  # a quarter more than was used, in steps of 50
        ((10.0, 401.0), 1, False, 550),
        ((10.0, 400.0), 2, False, 1000),
        ((10.0, 2988.0), 1, False, 3750),  # the problem gauss1000: more than the 3000 it declares
        ((10.0, 400.0), 1, True, 500 + needs.BESIDE),
        ((10.0, 400.0), 2, True, 1000 + needs.BESIDE),
    ],
)
def test_memory(last, attempt, remote, asked):
    assert needs.memory(last, 3000, attempt=attempt, remote=remote) == asked


@pytest.mark.parametrize(
    ("packages", "device", "asked"),
    [
        (("torch",), "cuda", 1),
        (("torch",), "cuda:1", 1),
        (("torch",), "together", 0),
        (("torch",), "cpu:0", 0),
        (("torch",), "", 0),
        (("torch",), None, 0),
        ((), "cuda", 0),
    ],
)
def test_a_gpu_is_asked_for_where_networks_are_trained_on_it(packages, device, asked):
    environment = {} if device is None else {"FEDCORE_DEVICE": device}
    assert needs.accelerators(packages, environment) == asked


@pytest.mark.parametrize(
    ("last", "asked"), [((10.0, 400.0), 3000), ((10.0, 2988.0), 3750), (None, 3000)]
)
def test_a_cell_that_failed_asks_for_no_less_than_is_declared(last, asked):
    """What was measured is of a run that ended well, and that may have been another problem."""
    assert needs.memory(last, 3000, failed=True) == asked


@pytest.mark.parametrize(
    ("last", "attempt", "asked"),
    [(None, 1, 60), (None, 2, 120), ((0.1, 0.0), 1, 3), ((600.0, 0.0), 1, 42)],
)
def test_minutes(last, attempt, asked):
    assert needs.minutes(last, 60, attempt=attempt) == asked


def test_the_unknown_is_short_in_the_quick_run_only():
    assert needs.is_short(None, quick=True) and not needs.is_short(None, quick=False)
    assert needs.is_short((59.0, 0.0), quick=False) and not needs.is_short((61.0, 0.0), quick=True)


def test_ended_badly(tmp_path):
    log, benchmark = tmp_path / "a.log", tmp_path / "a.tsv"
    assert not needs.ended_badly(log, benchmark)  # it never began
    log.touch()
    assert needs.ended_badly(log, benchmark)
    benchmark.touch()
    os.utime(log, (5, 5))
    os.utime(benchmark, (6, 6))
    assert not needs.ended_badly(log, benchmark)
    os.utime(log, (7, 7))  # it began again
    assert needs.ended_badly(log, benchmark)
