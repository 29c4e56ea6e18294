"""Clients of a round that advance together, as on an accelerator, against client by client."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from contract.networks import PARAMS, SIZE
from contract.test_networks import NAMES, ROUNDING, case_of, run

from fedcore import algorithms
from fedcore.api import execute
from fedcore.errors import FedcoreError, InputError
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.testing import Draws
from fedcore.testing.samples import held_out, images

torch = pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")

from fedcore.deep import descent, device, one, several  # noqa: E402
from fedcore.deep.batches import Batch, of_several  # noqa: E402
from fedcore.deep.models import MODELS, sample_shape, start  # noqa: E402
from fedcore.deep.settings import Params  # noqa: E402
from fedcore.deep.training import Learner  # noqa: E402

EVEN, UNEVEN = (10, 10, 10, 10), (7, 12, 5, 12)
FEATURES = {
    "femnist_mlp": 784,
    "femnist_mlp3": 784,
    "sent140_lstm": 25 * 300,
    "sent140_reshaped": 25 * 300,
    "tiny_mlp": 6,
}


@pytest.fixture
def together(monkeypatch):
    """Let clients advance together, on a core; the sizes of the groups that did are listed."""
    monkeypatch.setenv(device.VARIABLE, "together")
    groups, plain = [], descent.together

    def counted(gradient, clients, *rest):
        groups.append(len(clients))
        return plain(gradient, clients, *rest)

    monkeypatch.setattr(descent, "together", counted)
    return groups


@pytest.mark.parametrize("sizes", [EVEN, UNEVEN])
@pytest.mark.parametrize("name", NAMES)
def test_clients_that_advance_together_end_where_the_plain_method_does(name, sizes, together):
    problem = Problem("p", images(sizes), held_out=held_out(sizes))
    for setting in case_of(name).settings:
        found = run(name, problem=problem, **setting)
        plain = case_of(name).oracle(images(sizes), Draws(5, len(sizes)), found.settings)
        ours = found.networks[-1]
        for mine, theirs in zip(ours * (len(plain) if len(ours) == 1 else 1), plain, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=ROUNDING)
    assert set(together) >= {2, 4}  # half of the clients, and all of them


@pytest.mark.parametrize("name", NAMES)
def test_together_the_same_seed_gives_the_same_bytes_and_the_same_ledger(
    name, together, monkeypatch, tmp_path
):
    setting = case_of(name).settings[0]
    for i in range(2):
        found = run(name, **setting)
        found.history.save(tmp_path / f"{i}.h5")
    assert (tmp_path / "0.h5").read_bytes() == (tmp_path / "1.h5").read_bytes()
    assert together
    monkeypatch.setenv(device.VARIABLE, "cpu")
    alone = run(name, **setting)
    for column in ("round", "scalars_up", "scalars_down", "bytes_up", "bytes_down"):
        np.testing.assert_array_equal(found.columns[column], alone.columns[column])


@pytest.mark.parametrize("augment", [False, True])
def test_what_bodies_represent_is_computed_in_one_thread(augment, together, monkeypatch):
    """On an accelerator PyTorch keeps work space for each thread that computes."""
    from fedcore.deep import training

    threads, plain = [], training.in_pieces

    def noted(*arguments):
        threads.append(threading.get_ident())
        return plain(*arguments)

    monkeypatch.setattr(training, "in_pieces", noted)
    n = 12
    rng = np.random.default_rng(0)
    photographs = [rng.standard_normal((4, 3072)).astype(np.float32) for _ in range(n)]
    clients = Clients(photographs, labels=[np.array([0.0, 1, 0, 1])] * n)
    asked = {"model": "cifar10_cnn", "rounds": 0, "batch": 4, "fine_tune": 2, "augment": augment}
    algorithm = algorithms.get("fedavg")
    execute(algorithm, Problem("p", clients), algorithm.params(asked), 0, [])
    assert len(threads) == n * (2 if augment else 1)
    assert len(set(threads)) == 1
    assert together == [n]


def test_client_by_client_nothing_is_stacked(together, monkeypatch):
    monkeypatch.setenv(device.VARIABLE, "cpu")
    run("fedrep")
    assert together == []


@pytest.mark.parametrize("model", MODELS)
def test_gradients_of_several_clients_are_those_of_each(model):
    """In double precision, dropout included, for body and head in one and for the head alone."""
    features = FEATURES.get(model, 3072)
    classes = MODELS[model].classes
    rng = np.random.default_rng(0)
    learner = Learner(
        Params(model=model, batch=None, weight_decay=0.1),
        Clients([rng.standard_normal((2, features))], labels=[np.arange(2.0)]),
    )
    shapes = {learner.whole: sample_shape(model, features), learner.head: learner.body.output}
    for network in shapes:
        ws, batches = [], []
        for client in range(3):
            w = start(model, features, client, np.dtype(np.float64))
            ws.append(torch.tensor(w if network is learner.whole else learner.split(w)[1]))
            x = torch.tensor(rng.standard_normal((4, *shapes[network])))
            batches.append(Batch(x, torch.tensor(rng.integers(classes, size=4)), client))
        found = network.gradient(torch.stack(ws), of_several(batches))
        for mine, w, batch in zip(found, ws, batches, strict=True):
            alone = network.gradient(w, batch)
            # Sums in another order, over at most 784 pixels.
            np.testing.assert_allclose(mine, alone, rtol=0, atol=1e-13 * float(alone.abs().max()))
        others = network.gradient(torch.stack(ws[::-1]), of_several(batches))
        assert (others - found).abs().max() > 1e-4  # each has its own parameters


def test_both_ways_know_every_layer():
    assert several.COMPUTE.keys() == one.COMPUTE.keys()


def test_a_gradient_made_anew_for_each_client_descends_alone(together):
    """A closure around what is a client's own must not be called for the others."""
    from fedcore.federation import lockstep

    learner, w = Learner(Params(**PARAMS), images()), np.linspace(-1, 1, SIZE)
    own = [np.full(SIZE, value) for value in (0.0, 1.0, 2.0)]

    def descended(i):
        shift = learner.tensor(own[i])
        batches = learner.batches(
            learner.samples(images().labelled(i)), np.random.default_rng(0), 1
        )
        return learner.descend(w, lambda v, b: learner.whole.gradient(v, b) + shift, batches)

    calls = [lambda i=i: descended(i) for i in range(3)]
    for beside, alone in zip(lockstep.together(calls), map(descended, range(3)), strict=True):
        assert beside.tobytes() == alone.tobytes()
    assert together == []


def test_a_client_that_fails_ends_the_run(together, monkeypatch):
    def broken(gradient, clients, *rest):
        raise InputError("client 2 is out of memory")

    monkeypatch.setattr(descent, "together", broken)
    with pytest.raises(InputError, match="client 2 is out of memory"):
        run("fedavg")


@pytest.mark.parametrize("name", ["gpu", "cuda:7", "meta-0"])
def test_a_device_that_is_not_there_is_a_sentence(name, monkeypatch):
    if name == "cuda:7" and torch.cuda.device_count() > 7:
        pytest.skip("it is there")
    monkeypatch.setenv(device.VARIABLE, name)
    with pytest.raises(FedcoreError, match=f"FEDCORE_DEVICE = '{name}': PyTorch .* has no such"):
        run("fedavg")


def test_histories_name_the_device(monkeypatch):
    from fedcore.experiments import provenance

    task = algorithms.get("fedavg").task
    assert "device" not in provenance.device(task.packages)
    monkeypatch.setenv(device.VARIABLE, "together")
    assert provenance.device(task.packages) == {"device": "together"}
    assert provenance.device(algorithms.get("ssi").task.packages) == {}


@pytest.fixture
def without_numbers(monkeypatch):
    """A device whose tensors hold no numbers: what reads one or lies elsewhere is an error.

    What comes back to NumPy are zeros; the number of trips is counted.
    """
    monkeypatch.setenv(device.VARIABLE, "meta")
    trips = [0]

    def cpu(self):
        trips[0] += 1
        assert self.device.type == "meta"
        return torch.zeros(self.shape, dtype=self.dtype)

    monkeypatch.setattr(torch.Tensor, "cpu", cpu)
    return trips


@pytest.mark.parametrize("name", NAMES)
def test_on_a_device_a_round_comes_back_with_the_end_of_each_descent_alone(name, without_numbers):
    setting = {"rounds": 3, "participation": 1, "epochs": 2}
    if name == "l2gd":
        setting |= {"averaging": 1e-9}  # every round is local
    algorithm = algorithms.get(name)
    execute(algorithm, Problem("p", images()), algorithm.params({**PARAMS, **setting}), 5, [])
    # FedRep's are of head and body, Ditto's of the server's network and the client's own.
    assert without_numbers[0] == 3 * {"fedrep": 2, "ditto": 2}.get(name, 1)


@pytest.mark.parametrize("model", sorted(MODELS.keys() - {"tiny_mlp"}))
def test_all_tensors_of_a_network_lie_on_its_device(model, without_numbers):
    features = FEATURES.get(model, 3072)
    rng = np.random.default_rng(0)
    # One batch each: without numbers an LSTM takes every step of a sequence in Python.
    X = [rng.standard_normal((5, features)).astype(np.float32) for _ in range(2)]
    clients = Clients(X, labels=[np.arange(5.0) % 2] * 2)
    problem = Problem("p", clients, held_out=clients)
    augment = model.startswith("cifar")
    for name, more in (("fedrep", {"head_epochs": 1}), ("per_fedavg", {})):
        run(name, problem=problem, model=model, augment=augment, rounds=1, participation=1, **more)
    assert without_numbers[0] > 0
