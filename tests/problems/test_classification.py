"""Problems of classification: samples with labels, and held-out samples of every client."""

from __future__ import annotations

import numpy as np
import pytest

from fedcore import metrics
from fedcore.errors import ConfigError, InputError
from fedcore.experiments import build, from_dataset
from fedcore.iterates import Iterate
from fedcore.problems import storage
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.testing.samples import held_out, images
from refused import refused

SHARDS = {
    "dataset": "cifar10",
    "options": {"samples": 400},
    "scale": "unit",
    "partition": {"by": "shards", "clients": 10, "shards_per_client": 2},
    "held_out": "test",
}


def make(**changes):
    spec = {**SHARDS, **changes}
    from_dataset.check(spec)
    return build.build("p/shards", spec, raw="nowhere", seed=3, surrogate=True)


def classes(labels):
    return [set(y.tolist()) for y in labels]


def test_a_client_is_measured_on_the_classes_that_it_trains_on():
    problem = make()
    assert [len(c) for c in problem.clients] == [40] * 10
    assert classes(problem.clients.labels) == classes(problem.held_out.labels)
    assert {len(own) for own in classes(problem.clients.labels)} <= {1, 2}
    counted = np.bincount(np.concatenate(problem.clients.labels).astype(int))
    assert counted.tolist() == [40] * 10  # all samples are dealt, each once
    assert problem.answer["held_out_samples"].tolist() == [40] * 10


def test_a_share_of_each_client_is_held_out():
    problem = make(held_out=0.25)
    assert [len(c) for c in problem.clients] == [30] * 10
    assert [len(c) for c in problem.held_out] == [10] * 10
    rows = np.vstack([*problem.clients, *problem.held_out])
    assert len(np.unique(rows, axis=0)) == 400
    labels = problem.clients.labels, problem.held_out.labels
    assert all(out <= own for own, out in zip(*map(classes, labels), strict=True))


def test_pixels_are_standardised_channel_by_channel():
    plain, sought = make(), {"mean": [0.5, 0.25, 0.125], "deviation": [0.5, 1.0, 2.0]}
    problem = make(standardise=sought, precision="single")
    for before, after in ((plain.clients, problem.clients), (plain.held_out, problem.held_out)):
        assert after[0].dtype == np.float32 and after.labels[0].dtype == np.float32
        expected = before[0].reshape(-1, 3, 1024).copy()
        for channel in range(3):
            expected[:, channel] -= sought["mean"][channel]
            expected[:, channel] /= sought["deviation"][channel]
        # rounding to single precision
        np.testing.assert_allclose(after[0], expected.reshape(-1, 3072), rtol=0, atol=1e-6)


FIFTY = SHARDS["partition"] | {"clients": 50}
EVEN = {"by": "even", "clients": 10}
DIRICHLET = {"by": "dirichlet", "clients": 10, "alpha": 1}
WRONG = {  # and whether its paper file says so before it is made
    "centred": ({"centre": True}, True, "'standardise'"),
    "channels": ({"standardise": {"mean": [0.5] * 5, "deviation": [1.0] * 5}}, False, "channel"),
    "no test set": ({"dataset": "mnist"}, False, "'test'"),
    "few samples": ({"options": {"samples": 40}, "partition": FIFTY}, False, "class 0", "4"),
    "nothing left": ({"held_out": 0.99}, False, "0.99"),
    "dirichlet": ({"partition": DIRICHLET}, True, "'dirichlet'"),
    "even": ({"partition": EVEN}, True, "'even'"),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_specification_is_refused(wrong):
    changes, early, *names = WRONG[wrong]
    refused(lambda: make(**changes), (ConfigError, InputError), *names)
    if early:
        spec = {**SHARDS, **changes}
        refused(lambda: from_dataset.check(spec), ConfigError, *names)


def test_a_problem_comes_back_from_its_file(tmp_path):
    for number, sizes in enumerate([(4, 4), (4, 5)]):  # as one array, and client by client
        problem = Problem("p", images(sizes), held_out=held_out(sizes))
        storage.save(problem, path := tmp_path / f"{number}.h5")
        loaded = storage.load(path)
        assert loaded.checksum == problem.checksum
        for ours, theirs in (
            (loaded.clients, problem.clients), (loaded.held_out, problem.held_out)
        ):  # fmt: skip
            for mine, other in zip([*ours, *ours.labels], [*theirs, *theirs.labels], strict=True):
                np.testing.assert_array_equal(mine, other)
        del loaded.checksum
        assert loaded.checksum == problem.checksum


def test_the_checksum_sees_the_held_out_samples():
    problem, other = (Problem("p", images(), held_out=held_out(seed=s)) for s in (1, 2))
    assert len({problem.checksum, other.checksum, Problem("p", images()).checksum}) == 3


@pytest.mark.parametrize(
    ("apart", "names"),
    [
        (held_out((5, 5)), ["2 clients", "3"]),
        (Clients([np.ones((2, 7))] * 3, labels=[np.ones(2)] * 3), ["7 features"]),
        (Clients([np.ones((2, 9))] * 3), ["labels"]),
    ],
)
def test_held_out_samples_fit_the_clients(apart, names):
    refused(lambda: Problem("p", images((5, 5, 5)), held_out=apart), InputError, *names)


class Guess:
    """Class 1 for positive first features, else class 0."""

    held = np.empty(0)

    def parameters(self):
        return iter(())

    def scores(self, samples):
        return [np.stack([-x[:, 0], x[:, 0]], axis=1) for x in samples]


def test_the_accuracy_is_the_mean_of_the_clients():
    x, y = [np.array([[1.0], [2.0], [-1.0], [3.0]]), np.array([[1.0]])], [[1, 1, 0, 0], [0]]
    clients = Clients(x, labels=[np.array(labels) for labels in y])
    problem, iterate = Problem("p", clients, held_out=clients), Iterate(classifiers=Guess())
    for name in ("test_accuracy", "training_accuracy"):
        metric = metrics.get(name)
        assert metric.each(iterate, problem).tolist() == [0.75, 0.0]
        assert metric.function(iterate, problem) == 0.375


@pytest.mark.parametrize(
    ("metric", "iterate", "apart", "name"),
    [
        ("test_accuracy", Iterate(basis=np.eye(9)), held_out(), "classifiers"),
        ("objective", Iterate(classifiers=Guess()), held_out(), "subspace"),
        ("test_accuracy", Iterate(classifiers=Guess()), None, "held_out"),
    ],
)
def test_a_metric_of_another_task_or_without_its_samples_is_refused(metric, iterate, apart, name):
    problem = Problem("p", images(), held_out=apart)
    refused(lambda: metrics.get(metric).function(iterate, problem), InputError, name)
