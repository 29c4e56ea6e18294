"""Newcomers train heads on the body of a finished run, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from refused import refused

pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")

from fedcore import algorithms
from fedcore.deep.newcomers import STREAM_KEY, Newcomers, network
from fedcore.errors import ConfigError, InputError
from fedcore.experiments.cell import Cell
from fedcore.experiments.repeats import run_cell, run_repeats
from fedcore.federation.ledger import Cost
from fedcore.history import History
from fedcore.problems import storage
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.repro.plan.plan import check_cell, check_newcomers, load_plan
from fedcore.seeds import CLIENT, child

FEATURES, HIDDEN, CLASSES, EPOCHS = 6, 4, 3, 3
PARAMS = {"model": "tiny_mlp", "rounds": 3, "batch": 4, "rate": 0.1, "participation": 1.0}
SENT, SEED = Cost(1, 1, 1), np.random.SeedSequence(5)
FIGURE6 = ("fedrep", "fedavg", "per_fedavg", "lg_fedavg", "apfl", "l2gd", "fedprox")


def samples(rng, sizes, features=FEATURES, noise=0.3):
    """Return clients with separable classes: each has a direction of its own."""
    labels = [rng.integers(CLASSES, size=size).astype(float) for size in sizes]
    means = 2 * np.eye(CLASSES, features)
    rows = [means[y.astype(int)] + noise * rng.standard_normal((len(y), features)) for y in labels]
    return Clients(rows, labels=labels)


def problem(name, seed, sizes=(10, 9, 12), **shape):
    rng = np.random.default_rng(seed)
    return Problem(name, samples(rng, sizes, **shape), held_out=samples(rng, sizes, **shape))


def settings(**changes):
    return algorithms.get("fedavg").params(PARAMS | changes)


def newcomers(guests=None, *, cost=SENT, epochs=EPOCHS, **changes):
    guests = guests or problem("guests", 1)
    return Newcomers(settings(**changes), cost, FEATURES, guests, epochs)


def cell(algorithm, **changes):
    given = {"params": PARAMS, "metrics": ["test_accuracy"], "repeats": 2, **changes}
    guests = {"problem": "guests", "epochs": EPOCHS}
    return Cell("p", "e", algorithm, "train-x", "train", iterates="last", seed=0,
                newcomers=guests, **given)  # fmt: skip


def parts(w):
    ends = np.cumsum([HIDDEN * FEATURES, HIDDEN, CLASSES * HIDDEN])
    W, b, V, c = np.split(w, ends)
    return W.reshape(HIDDEN, FEATURES), b, V.reshape(CLASSES, HIDDEN), c


def restated(w, guests, seed, batch=4, rate=0.1, momentum=0.5):
    """Train the heads in NumPy; return the accuracies, (epochs + 1, newcomers)."""
    found = np.empty((EPOCHS + 1, len(guests.clients)))
    for i in range(len(guests.clients)):
        W, b, V, c = parts(w)
        V, c = V.copy(), c.copy()
        rng = np.random.default_rng(child(child(seed, STREAM_KEY), CLIENT, i))
        (X, y), (T, t) = guests.clients.labelled(i), guests.held_out.labelled(i)
        H, y = np.maximum(X @ W.T + b, 0), y.astype(int)
        for epoch in range(EPOCHS + 1):
            if epoch:
                moves = [np.zeros_like(V), np.zeros_like(c)]
                order = rng.permutation(len(y))
                for rows in np.split(order, range(batch, len(y), batch)):
                    scores = H[rows] @ V.T + c
                    p = np.exp(scores - scores.max(axis=1, keepdims=True))
                    p /= p.sum(axis=1, keepdims=True)
                    p[np.arange(len(rows)), y[rows]] -= 1
                    gradients = p.T @ H[rows] / len(rows), p.mean(axis=0)
                    moves = [momentum * u + g for u, g in zip(moves, gradients, strict=True)]
                    V, c = V - rate * moves[0], c - rate * moves[1]
            scores = np.maximum(T @ W.T + b, 0) @ V.T + c
            found[epoch, i] = np.mean(scores.argmax(axis=1) == t)
    return found


@pytest.mark.parametrize("device", ["cpu", "together"])
def test_heads_are_trained_as_restated_and_the_body_is_not(monkeypatch, device):
    monkeypatch.setenv("FEDCORE_DEVICE", device)
    guests = problem("guests", 1, (30, 30, 30), noise=1.0)
    size = HIDDEN * FEATURES + HIDDEN + CLASSES * HIDDEN + CLASSES
    w = np.random.default_rng(2).standard_normal(size)
    before = w.tobytes()
    found = newcomers(guests).accuracies({"parameters": w}, SEED)
    expected = restated(w, guests, SEED)
    np.testing.assert_array_equal(found, expected)
    assert w.tobytes() == before and len(np.unique(expected[0] - expected[-1])) > 1
    assert not np.array_equal(expected, restated(w, guests, SEED, momentum=0.0))
    assert not np.array_equal(expected, restated(w, guests, np.random.SeedSequence(6)))


def test_the_network_of_a_newcomer():
    w, a, b = np.arange(3.0), np.array([1.0, 2.0]), np.array([3.0, 6.0])
    assert network({"parameters": w, "models": [a, b]}) is w  # APFL's mixtures are its clients'
    np.testing.assert_array_equal(network({"body": w, "heads": [a, b]}), [0, 1, 2, 2, 4])
    np.testing.assert_array_equal(network({"upper": w, "models": [a, b]}), [2, 4])
    size = HIDDEN * FEATURES + HIDDEN + CLASSES * HIDDEN + CLASSES
    assert np.isnan(newcomers().accuracies({"parameters": np.full(size, np.nan)}, SEED)).all()


@pytest.mark.parametrize("algorithm", FIGURE6)
def test_every_method_of_figure_6(algorithm, tmp_path):
    storage.save(problem("train", 0), tmp_path / "train.h5")
    guests = problem("guests", 1, (8, 20, 5, 9))
    storage.save(guests, tmp_path / "guests.h5")
    check_cell(cell(algorithm), "here")
    run_cell(
        cell(algorithm), tmp_path / "train.h5", tmp_path / "one.h5",
        newcomers_file=tmp_path / "guests.h5",
    )  # fmt: skip
    history = History.load(tmp_path / "one.h5")
    found = history.final["newcomer_accuracy"]
    assert found.shape == (2, EPOCHS + 1, 4) and ((found >= 0) & (found <= 1)).all()
    assert history.about["newcomers"]["n_samples"] == 42
    assert history.about["newcomers"]["sha256"] == guests.checksum


def test_a_newcomer_gets_from_apfl_what_it_gets_from_fedavg():
    train, guests = problem("train", 0), problem("guests", 1)
    names = ("fedavg", "apfl", "fedrep")
    found = [run_repeats(cell(name), [train], newcomers=guests).final for name in names]
    same, apfl, other = (final["newcomer_accuracy"] for final in found)
    np.testing.assert_array_equal(same, apfl)
    assert not np.array_equal(same, other)


def test_newcomers_change_nothing_else_of_a_run():
    train, guests = problem("train", 0), problem("guests", 1)
    with_them = run_repeats(cell("fedrep"), [train], newcomers=guests)
    without = run_repeats(replace(cell("fedrep"), newcomers=None), [train])
    for name, column in without.columns.items():
        np.testing.assert_array_equal(column, with_them[name])
    np.testing.assert_array_equal(without.final["body"], with_them.final["body"])
    assert "newcomer_accuracy" not in without.final and "newcomers" not in without.about


def wrong_label(part):
    guests = problem("guests", 1)
    labels = [y.copy() for y in getattr(guests, part).labels]
    labels[1][2] = CLASSES
    getattr(guests, part).labels = labels
    return guests


def run_with(algorithm, guests=None):
    return run_repeats(cell(algorithm), [problem("train", 0)], newcomers=guests)


def planned(**changes):
    return plan({"newcomers": changes}).cells


WRONG = [
    (lambda: newcomers(problem("guests", 1, features=5)), "guests", "5 features"),
    (lambda: newcomers(problem("guests", 1, (9, 3))), "client 1 has 3 samples"),
    (lambda: newcomers(wrong_label("clients")), "client 1", "label 3", "row 2"),
    (lambda: newcomers(wrong_label("held_out")), "newcomer 1, held out", "label 3", "row 2"),
    (lambda: newcomers(Problem("guests", problem("g", 1).clients)), "no held-out samples"),
    (lambda: network({"V": np.ones(3)}), "'parameters'"),
    (lambda: run_with("local_only", problem("guests", 1)), "leave this method out"),
    (lambda: run_with("fedavg"), "give the file of that problem"),
    (lambda: check_cell(cell("fedpower", metrics=[], params={"n_components": 2, "iterations": 3}),
                         "here"), "here", "fedpower"),
    (lambda: planned(problem="digit"), "'digit'", "digits"),
    (lambda: planned(epochs=0), "fig6.newcomers.epochs"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_newcomers_that_do_not_fit(number):
    call, *names = WRONG[number]
    refused(call, (InputError, ConfigError), *names)


def plan(experiment=None, **config):
    changes = {"experiments": {"fig6": experiment}} if experiment else {}
    given = {"papers": ["fedrep"], "surrogates": True, "overrides": {"fedrep": changes}}
    return load_plan(given | config)


def test_newcomers_of_the_plan_are_held_out_from_and_can_be_had():
    problems = plan().papers["fedrep"]["problems"]
    del problems["cifar10_100_2_1"]["held_out"]
    with pytest.raises(ConfigError, match="cifar10_100_2_1"):
        check_newcomers("cifar10_100_2_1", problems, "here")
    assert [c.name for c in plan().cells.values() if c.newcomers]
    left_out = plan()
    left_out.unavailable["fedrep/digits"] = "its data cannot be had"
    assert not [c.name for c in left_out.cells.values() if c.newcomers]
