"""The aggregate of drawn machines, read from the bases of machines without a common feature."""

from __future__ import annotations

import numpy as np
import pytest

import fedcore
from fedcore.federation.transcript import Transcript
from fedcore.generators import own_features
from fedpower import draws
from fedpower import tables as report
from fedpower.tables import FIGURES
from folder import Folder

MACHINES, DRAWN, REPEATS = 4, 3, 60


@pytest.fixture
def made(tmp_path):
    folder = Folder(tmp_path, "fedpower", {"n_components": 1}, ["projection_distance"])
    clients = own_features.generate(np.random.default_rng(1), n_clients=MACHINES, samples=5, own=2)
    folder.add_problem("apart", clients)
    once = {"iterations": 2, "local_steps": 2, "epsilon": None}
    folder.add("draws", "fedpower", "apart", "all", params=once, repeats=REPEATS,
               tags={"drawn": False})  # fmt: skip
    sampled = folder.add("draws", "fedpower", "apart", "K3", params=once | {"participants": DRAWN},
                         repeats=REPEATS, tags={"drawn": True})  # fmt: skip
    return folder.results(), sampled


def column(rows, name):
    """Values of shape (repeats, machines)."""
    values = {(row["repeat"], row["machine"]): row[name] for row in rows}
    return np.array([[values[k, i] for i in range(MACHINES)] for k in range(REPEATS)])


def test_the_weights_are_numbers_of_draws_and_fit_what_was_sent(made, monkeypatch):
    """They are whole and add up to K; the reference sends besides those that were drawn."""
    monkeypatch.setattr(draws, "BATCHES", REPEATS)
    results, history = made
    found = report.TABLES["parts"].rows(results)
    weights = column(found, "part") * DRAWN / MACHINES
    whole = np.rint(weights)
    assert weights == pytest.approx(whole, abs=1e-9)
    assert (whole.sum(axis=1) == DRAWN).all()
    assert len(np.unique(whole, axis=0)) > 10
    senders = np.sum(whole > 0, axis=1) + (whole[:, 0] == 0)
    sent = history.last("scalars_up") / (2 * 2 * MACHINES)  # Yᵢ and Zᵢ, of all features
    assert senders == pytest.approx(sent)
    once = column(found, "each_once")
    assert once.max(axis=1) == pytest.approx(MACHINES / senders)
    assert (once[:, 0] > 0).all()
    monkeypatch.setattr(draws, "BATCHES", 10)
    means = [row["part"] for row in draws.parts(results) if row["machine"] == 1]
    parts = column(found, "part")[:, 1].reshape(10, -1)
    assert means == pytest.approx(parts.mean(axis=1))


def test_weights_are_read_from_orthonormalised_sums():
    rng = np.random.default_rng(3)
    Y = np.zeros((5, 10))
    for i, own in enumerate(Y):
        own[2 * i : 2 * i + 2] = rng.standard_normal(2)
    w = np.array([0, 3, 1, 0, 2])
    drawn, whole = (total / np.linalg.norm(total) for total in (w @ Y, Y.sum(axis=0)))
    found = draws.weights(drawn[None, :, None], whole[None, :, None], 5)[0]
    assert found / found.sum() == pytest.approx(w / w.sum())


def test_what_the_table_reads_is_the_sum_of_the_messages():
    """The basis of a run against the messages of the machines, which the transcript has."""
    clients = own_features.generate(np.random.default_rng(4), n_clients=3, samples=6, own=2)
    seen = Transcript()
    options = {"iterations": 2, "local_steps": 2, "epsilon": None, "seed": 7}
    drawn = fedcore.run("fedpower", clients, 1, participants=2, transcript=seen, **options)
    whole = fedcore.run("fedpower", clients, 1, **options)
    found = draws.weights(drawn.components.T[None], whole.components.T[None], 3)[0]
    w = np.rint(found * 2 / found.sum())
    total = sum(w[exchange.client] * exchange.sent[0] for exchange in seen.exchanges)
    assert drawn.components[0] == pytest.approx(total[:, 0] / np.linalg.norm(total))


def test_a_run_may_leave_figures_out(tmp_path):
    folder = Folder(tmp_path, "fedpower", {}, [])
    assert report.panel_claims(folder.results(*FIGURES)) == []


def test_the_printed_start_has_no_preferred_direction(tmp_path):
    """In the plane a Gaussian column has E cos 4θ = 0, and one of uniform entries has 3 − π < 0."""
    folder = Folder(tmp_path, "fedpower", {"n_components": 1, "iterations": 0}, [])
    folder.add_problem("plane", [np.eye(2)])
    for entries, mean in (("gaussian", 0.0), ("uniform", 3.0 - np.pi)):
        start = folder.add("starts", "fedpower", "plane", entries, repeats=800,
                           params={"entries": entries, "epsilon": None})  # fmt: skip
        x, y = start.final["basis"][:, :, 0].T
        found = np.cos(4 * np.arctan2(y, x))
        assert found.mean() == pytest.approx(mean, abs=4 * found.std() / np.sqrt(len(found)))
