"""Clients of a round that advance together, as on an accelerator, against client by client."""

from __future__ import annotations

import numpy as np
import pytest

from contract.networks import PARAMS, SIZE
from contract.test_networks import NAMES, ROUNDING, case_of, run
from fedcore import algorithms
from fedcore.errors import FedcoreError
from fedcore.problems.clients import Clients
from fedcore.problems.problem import Problem
from fedcore.testing import Draws
from fedcore.testing.samples import held_out, images
from refused import refused

torch = pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")

from fedcore.deep import device  # noqa: E402
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
    """Let clients advance together, on a core."""
    monkeypatch.setenv(device.VARIABLE, "together")


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


@pytest.mark.parametrize("name", NAMES)
def test_together_the_same_seed_gives_the_same_bytes_and_the_same_ledger(
    name, together, monkeypatch
):
    setting = case_of(name).settings[0]
    found, again = run(name, **setting), run(name, **setting)
    assert [w.tobytes() for w in found.networks[-1]] == [w.tobytes() for w in again.networks[-1]]
    monkeypatch.setenv(device.VARIABLE, "cpu")
    assert found.ledger == run(name, **setting).ledger


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
    for beside, alone in zip(lockstep.run_all(calls), map(descended, range(3)), strict=True):
        assert beside.tobytes() == alone.tobytes()


@pytest.mark.parametrize("name", ["gpu", "cuda:77", "meta-0"])
def test_a_device_that_is_not_there_is_a_sentence(name, monkeypatch):
    monkeypatch.setenv(device.VARIABLE, name)
    refused(lambda: run("fedavg"), FedcoreError, f"FEDCORE_DEVICE = '{name}'")


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

    What comes back to NumPy are zeros.
    """
    monkeypatch.setenv(device.VARIABLE, "meta")

    def cpu(self):
        assert self.device.type == "meta"
        return torch.zeros(self.shape, dtype=self.dtype)

    monkeypatch.setattr(torch.Tensor, "cpu", cpu)


# `sent140_reshaped` is `sent140_lstm` with four times the steps, each of which Python takes.
@pytest.mark.parametrize("model", sorted(MODELS.keys() - {"tiny_mlp", "sent140_reshaped"}))
def test_all_tensors_of_a_network_lie_on_its_device(model, without_numbers):
    features = FEATURES.get(model, 3072)
    rng = np.random.default_rng(0)
    # One batch each: without numbers an LSTM takes every step of a sequence in Python.
    X = [rng.standard_normal((5, features)).astype(np.float32) for _ in range(2)]
    clients = Clients(X, labels=[np.arange(5.0) % 2] * 2)
    problem = Problem("p", clients, held_out=clients)
    augment = model.startswith("cifar")
    methods = {"fedrep": {"head_epochs": 1}, "per_fedavg": {}}
    for name, more in methods.items():
        run(name, problem=problem, model=model, augment=augment, rounds=1, participation=1, **more)
