"""Newcomers train heads on the body of a finished run, and nothing else."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")

from fedcore import algorithms
from fedcore.datasets import partition
from fedcore.deep.newcomers import KEY, Newcomers, network
from fedcore.errors import ConfigError, InputError
from fedcore.experiments.cell import run_cell, run_repeats
from fedcore.experiments.plan import Cell, _check_cell, _check_newcomers, load_plan
from fedcore.federation.ledger import Cost
from fedcore.history import History
from fedcore.problems import storage
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
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
        rng = np.random.default_rng(child(child(seed, KEY), CLIENT, i))
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
    with pytest.raises(InputError, match="this method returns no parameters, no body with heads"):
        network({"V": w})


def test_a_body_that_was_not_trained_does_worse():
    """A head on a random body of four numbers finds less than one on a body that was trained."""
    train, guests = problem("train", 0, (60,) * 4), problem("guests", 1, (20,) * 10)
    long = {**PARAMS, "rounds": 40}
    after, before = [], []
    for seed in range(6):
        spec = cell("fedavg", params=long, repeats=1).spec() | {"seed": seed}
        trained = run_repeats(spec, [train], newcomers=guests).final
        after.append(trained["newcomer_accuracy"][0].mean(axis=1))
        learnt = algorithms.get("fedavg").params(long)
        start = Newcomers(learnt, SENT, FEATURES, guests, EPOCHS)
        size = trained["parameters"].shape[1]
        random = np.random.default_rng(seed).uniform(-0.4, 0.4, size)
        before.append(start.accuracies({"parameters": random}, SEED).mean(axis=1))
    assert np.mean(after, axis=0)[-1] > np.mean(before, axis=0)[-1] + 0.05
    assert np.mean(after, axis=0)[-1] > 0.95


def test_every_method_of_figure_6_and_the_same_seed_gives_the_same_bytes(tmp_path):
    storage.save(problem("train", 0), tmp_path / "train.h5")
    storage.save(problem("guests", 1, (8, 20, 5, 9)), tmp_path / "guests.h5")
    for algorithm in FIGURE6:
        _check_cell(cell(algorithm), "here")
        for name in ("one", "two"):
            run_cell(
                cell(algorithm).spec(), tmp_path / "train.h5", tmp_path / f"{name}.h5",
                newcomers_file=tmp_path / "guests.h5",
            )  # fmt: skip
        assert (tmp_path / "one.h5").read_bytes() == (tmp_path / "two.h5").read_bytes()
        history = History.load(tmp_path / "one.h5")
        found = history.final["newcomer_accuracy"]
        assert found.shape == (2, EPOCHS + 1, 4) and ((found >= 0) & (found <= 1)).all()
        assert history.about["newcomers"]["n_samples"] == 42
        assert history.about["newcomers"]["sha256"] == problem("guests", 1, (8, 20, 5, 9)).checksum


def test_a_newcomer_gets_from_apfl_what_it_gets_from_fedavg():
    train, guests = problem("train", 0), problem("guests", 1)
    names = ("fedavg", "apfl", "fedrep")
    found = [run_repeats(cell(name).spec(), [train], newcomers=guests).final for name in names]
    same, apfl, other = (final["newcomer_accuracy"] for final in found)
    np.testing.assert_array_equal(same, apfl)
    assert not np.array_equal(same, other)


def test_newcomers_change_nothing_else_of_a_run():
    train, guests = problem("train", 0), problem("guests", 1)
    with_them = run_repeats(cell("fedrep").spec(), [train], newcomers=guests)
    spec = cell("fedrep").spec()
    del spec["newcomers"]
    without = run_repeats(spec, [train])
    for name, column in without.columns.items():
        np.testing.assert_array_equal(column, with_them[name])
    np.testing.assert_array_equal(without.final["body"], with_them.final["body"])
    assert "newcomer_accuracy" not in without.final and "newcomers" not in without.about


def test_parameters_that_are_not_finite_have_no_accuracy():
    size = HIDDEN * FEATURES + HIDDEN + CLASSES * HIDDEN + CLASSES
    found = newcomers().accuracies({"parameters": np.full(size, np.nan)}, SEED)
    assert np.isnan(found).all()


def wrong_label(part):
    guests = problem("guests", 1)
    labels = [y.copy() for y in getattr(guests, part).labels]
    labels[1][2] = CLASSES
    getattr(guests, part).labels = labels
    return guests


@pytest.mark.parametrize(
    ("guests", "sentence"),
    [
        (problem("guests", 1, features=5), "guests: newcomers have 5 features, and the network is"),
        (problem("guests", 1, (9, 3)), "guests, newcomers: client 1 has 3 samples, fewer than bat"),
        (wrong_label("clients"), "guests, newcomers: client 1 has the label 3 at row 2: tiny_mlp"),
        (wrong_label("held_out"), "guests: newcomer 1, held out, has the label 3 at row 2: tiny_m"),
        (Problem("guests", problem("g", 1).clients), "guests has no held-out samples for newcomer"),
    ],
)
def test_newcomers_that_do_not_fit_are_refused(guests, sentence):
    with pytest.raises(InputError, match=f"^problem {sentence}"):
        newcomers(guests)


def test_a_method_without_a_shared_network_is_refused():
    train, guests = problem("train", 0), problem("guests", 1)
    with pytest.raises(InputError, match="no client sends anything: leave this method out"):
        run_repeats(cell("local_only").spec(), [train], newcomers=guests)
    subspace = {"n_components": 2, "iterations": 3}
    with pytest.raises(ConfigError, match="here: fedpower learns no network: it has nothing for"):
        _check_cell(cell("fedpower", params=subspace, metrics=[]), "here")


def test_a_cell_without_the_file_of_its_newcomers_is_refused():
    with pytest.raises(ConfigError, match="this cell needs the file of its newcomers"):
        run_repeats(cell("fedavg").spec(), [problem("train", 0)])


def test_only_a_cell_with_newcomers_says_so_and_depends_on_their_code():
    plain = Cell("p", "e", "fedavg", "x", "x", PARAMS, 1, [], "last", 0)
    assert "newcomers" not in plain.spec() and "newcomers" in cell("fedavg").spec()
    assert plain.problems == ["x"] and cell("fedavg").problems == ["train", "guests"]
    assert "fedcore.deep.newcomers" not in plain.modules
    assert "fedcore.deep.newcomers" in cell("fedavg").modules


def plan(experiment=None, **config):
    changes = {"experiments": {"fig6": experiment}} if experiment else {}
    given = {"papers": ["fedrep"], "surrogates": True, "overrides": {"fedrep": changes}}
    return load_plan(given | config, check_claims=False)


@pytest.mark.parametrize(
    ("experiment", "sentence"),
    [
        ({"newcomers": {"problem": "digit"}}, "newcomers of the unknown problem 'digit'.*digits"),
        ({"newcomers": {"epochs": 0}}, "fig6.newcomers.epochs"),
    ],
)
def test_a_plan_with_wrong_newcomers_is_refused(experiment, sentence):
    with pytest.raises(ConfigError, match=sentence):
        plan(experiment).cells  # noqa: B018


def test_newcomers_of_the_plan_are_held_out_from_and_can_be_had():
    with pytest.raises(ConfigError, match="measured on held-out samples: give cifar10_100_2_1 som"):
        problems = plan().papers["fedrep"]["problems"]
        del problems["cifar10_100_2_1"]["held_out"]
        _check_newcomers("cifar10_100_2_1", problems, "here")
    assert [c.name for c in plan().cells.values() if c.newcomers]
    left_out = plan(leave_out={"fedrep": ["digits"]})
    assert not [c.name for c in left_out.cells.values() if c.newcomers]


def test_the_declared_stand_in_has_the_sizes_of_the_paper_but_for_the_tests():
    specs = plan().papers["fedrep"]["problems"]
    labels = np.repeat(np.arange(10), [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949])
    rng = np.random.default_rng(0)
    parts = partition.split(specs["digits"]["partition"], len(labels), labels, rng)
    assert len(parts) == 100 and len(np.unique(np.concatenate(parts))) == 100 * 540
    assert {len(np.unique(labels[part])) for part in parts} == {5}
    kept, apart = partition.held_out(parts[0], specs["digits"]["held_out"], rng)
    assert (len(kept), len(apart)) == (500, 40)


def test_kept_histories_keep_the_newcomers_accuracies(tmp_path, docs_script):
    """Tables read them; what else a run ends with is left out."""
    storage.save(problem("train", 0), tmp_path / "train.h5")
    storage.save(problem("guests", 1), tmp_path / "guests.h5")
    results, kept = tmp_path / "results", tmp_path / "kept"
    path = results / "histories" / "p" / "e" / "fedavg" / "x.h5"
    path.parent.mkdir(parents=True)
    run_cell(cell("fedavg").spec(), tmp_path / "train.h5", path,
             newcomers_file=tmp_path / "guests.h5")  # fmt: skip
    (copy,) = docs_script("kept_histories").keep(results, kept, ["p"])
    before, after = History.load(path).final, History.load(copy).final
    assert set(after) == {"newcomer_accuracy"} < set(before)
    np.testing.assert_array_equal(after["newcomer_accuracy"], before["newcomer_accuracy"])
