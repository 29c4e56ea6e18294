"""The iterates that a history keeps give what the run recorded, for every method of a subspace."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import orth, subspace_angles

from contract.cases import case_of
from contract.checks import settings_of, usable
from fedcore import algorithms, metrics
from fedcore.errors import InputError
from fedcore.generators import generate
from fedcore.history import History, units_of
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.problems.tasks import SUBSPACE
from fedcore.recorder import Recording
from fedcore.reports.replay import replay
from fedcore.runs import execute
from fedcore.testing.samples import RANK
from fedcore.testing.subject import Subject
from refused import refused

NAMES = [known.name for known in usable() if known.task is SUBSPACE]
DUE = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512}


def problem_of(labelled, clients):
    if not labelled:
        return Problem("uneven", Clients(clients))
    sizes = {"n_clients": 8, "rank": RANK, "samples": 30, "n_features": 9, "heads": "assumption"}
    parts, truth = generate("shared_heads", np.random.default_rng(0), sizes)
    return Problem("drawn", parts, truth=truth)


def history_of(name, problem, setting, iterates):
    algorithm = algorithms.get(name)
    angle = "representation_distance" if algorithm.labelled else "subspace_distance"
    settings = Subject(algorithm, case_of(name)).settings(problem.clients, setting)
    recording = Recording([metrics.get(angle)], iterates)
    units, answer = units_of(recording.metrics, algorithm.columns), problem.directions(RANK)
    found = [
        execute(algorithm, problem, settings, seed, recording, noise=np.random.SeedSequence(seed))
        for seed in (3, 4)
    ]
    repeats = [History.from_run(*run, units, reference=answer) for run in found]
    return angle, History.joined(repeats, {"params": {}}, units)


@pytest.mark.parametrize(("name", "setting"), settings_of(NAMES, case_of))
def test_every_angle_comes_out_of_its_iterate(name, setting, clients, tmp_path):
    labelled = algorithms.get(name).labelled
    problem = problem_of(labelled, clients)
    angle, made = history_of(name, problem, setting, "log")
    made.save(tmp_path / "cell.h5")
    history = History.load(tmp_path / "cell.h5")
    exact = (
        problem.truth.representation if labelled else np.linalg.svd(np.vstack(clients))[2][:RANK].T
    )
    kept = history.iterates
    for repeat, numbers in enumerate(kept["iteration"]):
        recorded = history["iteration"][repeat]
        last = recorded[recorded >= 0][-1]
        there = numbers[numbers >= 0]
        assert there[-1] == last and np.all(np.diff(there) > 0)
        assert DUE & {*recorded.tolist()} <= {*there.tolist()}
        for place, iteration in enumerate(there):
            row = kept["record_number"][repeat, place]
            assert recorded[row] == iteration
            sine = np.sin(subspace_angles(orth(kept["shared"][repeat, place], 1e-12), exact)[0])
            np.testing.assert_allclose(sine, history[angle][repeat, row], rtol=1e-6, atol=1e-7)
    found = replay(history)
    assert found.measure == angle and found.difference <= 1e-9
    np.testing.assert_array_equal(found.iteration, kept["iteration"])


@pytest.mark.parametrize("name", NAMES)
def test_another_iterate_is_noticed(name, clients):
    """The counterfactual: an iterate that is not the run's own does not give what was recorded."""
    labelled = algorithms.get(name).labelled
    problem = problem_of(labelled, clients)
    _, history = history_of(name, problem, {}, "all")
    shared = history.iterates["shared"]
    shared[0, 0] = np.linalg.qr(np.random.default_rng(9).standard_normal(shared.shape[2:]))[0]
    assert replay(history).difference > 1e-5


def test_without_iterates_there_is_nothing_to_replay(clients):
    _, history = history_of("ssi", Problem("uneven", Clients(clients)), {"rounds": 2}, "none")
    refused(lambda: replay(history), InputError, "--iterates log")
