"""Which iterates of a run are kept: the policies, and what fits."""

from __future__ import annotations

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedcore
from fedcore.algorithms import get
from fedcore.history import History, units_of
from fedcore.iterates import Iterate
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.recorder import Recording
from fedcore.runs import execute
from fedcore.snapshots import Snapshots, stack

rising = st.lists(st.integers(1, 9), min_size=1, max_size=60).map(
    lambda steps: np.cumsum([0, *steps]).tolist()
)


def seen(iterations, policy="log", limit=10**9, shape=(4, 2), clients=0):
    """The snapshots of a run with these iterations, whose iterates hold their record's number."""
    found = Snapshots(policy, limit=limit)
    for record, iteration in enumerate(iterations):
        parts = {"X": [np.full((3, 2), 10.0 * record + i) for i in range(clients)]}
        iterate = Iterate(np.full(shape, float(record)), clients=lambda parts=parts: parts)
        found.see(record, iteration, iterate, clients=bool(clients))
    found.end()
    return found


def due(iterations):
    """The first iteration at or after each of 0, 1, 2, 4, 8, …, and the last one."""
    powers = [0, *(2**k for k in range(12))]
    firsts = {next((i for i in iterations if i >= power), iterations[-1]) for power in powers}
    return sorted(firsts | {iterations[-1]})


@given(rising)
def test_each_policy_keeps_what_it_says(iterations):
    wanted = {"none": [], "last": iterations[-1:], "log": due(iterations), "all": iterations}
    for policy, numbers in wanted.items():
        found = seen(iterations, policy)
        assert [one.iteration for one in found.kept] == numbers
        assert all((one.shared == one.record).all() for one in found.kept)
        assert [iterations[one.record] for one in found.kept] == numbers
        assert found.left_out == 0


@given(rising, st.integers(0, 2000))
def test_no_more_is_kept_than_fits_and_what_is_left_out_is_counted(iterations, limit):
    found = seen(iterations, "all", limit)
    assert found.nbytes <= limit
    assert len(found.kept) + found.left_out == len(iterations)
    if found.kept:  # the last one is what a reader wants most
        assert found.kept[-1].iteration == iterations[-1]
    if len(found.kept) > 1:
        assert found.kept[0].iteration == 0


@given(st.lists(rising, min_size=1, max_size=4), st.integers(0, 3000), st.integers(0, 6))
def test_a_cell_keeps_as_many_repeats_and_clients_as_fit(repeats, limit, clients):
    runs = [
        seen(it, "log", limit, clients=clients if i == 0 else 0) for i, it in enumerate(repeats)
    ]
    iterates, held, left_out = stack(runs, limit)
    if not iterates:
        assert not held and not runs[0].kept
        return
    kept = len(iterates["shared"])
    sizes = [run.nbytes for run in runs]
    assert sum(sizes[:kept]) <= limit and kept + left_out["repeats"] == len(runs)
    for run, numbers in zip(runs, iterates["iteration"], strict=False):
        assert numbers[numbers >= 0].tolist() == [one.iteration for one in run.kept]
    if held:
        fit = held["X"].shape[1]
        assert fit + left_out["clients"] == clients
        assert held["X"].nbytes + sum(sizes[:kept]) <= limit
        first = held["record_number"][:, None] * 10 + np.arange(fit)
        np.testing.assert_array_equal(held["X"][:, :, 0, 0], first)


def test_the_library_keeps_iterates_by_default_and_none_if_asked(clients):
    kept = fedcore.run("ssi", clients, 2, rounds=9).iterates
    assert kept["iteration"].tolist() == [0, 1, 2, 4, 8, 9]
    assert fedcore.run("ssi", clients, 2, rounds=3, iterates="none").iterates == {}


@pytest.mark.parametrize(("name", "held"), [("faps", {"X", "W"}), ("local_power", {"Z"})])
def test_what_the_clients_hold_is_what_makes_the_shared_iterate(name, held, clients):
    """The clients' own matrices, not copies of the server's."""
    params = {"n_components": 3, "rounds": 4}
    if name == "local_power":
        params = {"n_components": 3, "rounds": 4, "local_steps": 4}
    problem = Problem("uneven", Clients(clients))
    settings = get(name).params(params)
    recorder, output = execute(
        get(name), problem, settings, 3, Recording(iterates="all", client_iterates=True)
    )
    history = History.from_run(recorder, output)
    own = history.client_iterates
    assert own.keys() == {"iteration", "record_number"} | held
    for key in held - {"W"}:
        for basis in own[key].reshape(-1, *own[key].shape[2:]):
            if np.isfinite(basis).all():
                np.testing.assert_allclose(basis.T @ basis, np.eye(3), atol=1e-10)
        assert own[key].shape[1] == len(clients)
        last = own[key][-1]
        assert np.ptp(last, axis=0).max() > 1e-6, "all clients hold the same"


@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize(
    ("name", "params"),
    [("fedpower", {"iterations": 4, "local_steps": 2}), ("noisy_power", {"rounds": 4})],
)
def test_every_iterate_of_a_private_run_carries_a_mark(clients, tmp_path, name, params, simulated):
    rows = Clients(
        [client / np.linalg.norm(np.vstack(clients), axis=1).max() for client in clients]
    )
    settings = get(name).params({"n_components": 2, "epsilon": 5.0, **params})
    recorder, output = execute(
        get(name), Problem("uneven", rows), settings, 3,
        Recording(iterates="all", client_iterates=True),
        noise=np.random.SeedSequence(1) if simulated else None,
    )  # fmt: skip
    History.from_run(recorder, output, units_of([], get(name).columns)).save(tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert {item.attrs["privacy"] for item in file["iterates"].values()} == {"released"}
        held = file.get("client_iterates", {})
        assert all(item.attrs["privacy"] == "not released" for item in held.values())
