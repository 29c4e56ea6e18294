"""What an accelerator asks of the way there, shown on a core and on a device without numbers."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest

from contract.networks import PARAMS
from contract.test_networks import NAMES, ROUNDING, run
from fedcore.cli import blas
from fedcore.errors import FedcoreError, InputError
from fedcore.federation.federation import Federation
from fedcore.problems.clients import Clients, Labelled
from fedcore.testing.samples import images
from refused import refused

torch = pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")

from fedcore.deep import device, one_client, several_clients, training  # noqa: E402
from fedcore.deep.layers import Convolution, Dense, Lstm, Pool, Relu, Reshaped, Softmax  # noqa: E402
from fedcore.deep.networks import Network  # noqa: E402
from fedcore.deep.settings import Params  # noqa: E402
from fedcore.deep.training import Learner  # noqa: E402

META = torch.device("meta")


def test_clients_whose_samples_overlap_keep_their_own(monkeypatch):
    monkeypatch.setenv(device.VARIABLE, "meta")
    learner, (X, y) = Learner(Params(**PARAMS), images()), images().labelled(0)
    whole = Labelled(X, y)
    others = [Labelled(X[:5], y[:5]), Labelled(X, y[::-1]), Labelled(X[::-1], y)]
    first = learner.samples(whole)
    assert [len(learner.samples(data).y) for data in others] == [5, len(y), len(y)]
    assert all(learner.samples(data).x is not first.x for data in others)
    again = Labelled(X[:], y[:])  # other views of the same numbers
    assert learner.samples(again).x is first.x


@pytest.fixture
def cut():
    """PyTorch as it would be by other settings; pytest's own way cannot undo these."""
    product, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = product.allow_tf32, cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark
    product.allow_tf32 = cudnn.allow_tf32 = cudnn.benchmark = True
    cudnn.deterministic = False
    yield
    product.allow_tf32, cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark = before


def test_single_precision_is_not_cut_on_a_device(cut, monkeypatch):
    monkeypatch.setenv(device.VARIABLE, "meta")
    device.find_device.cache_clear()  # another test may have asked
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    assert device.read_device() == (META, True)
    assert torch.backends.cudnn.allow_tf32 and "CUBLAS_WORKSPACE_CONFIG" not in os.environ
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    blas.configure_accelerator()  # as the command line and the jobs of the workflow do
    assert not torch.backends.cuda.matmul.allow_tf32
    assert not torch.backends.cudnn.allow_tf32
    assert torch.backends.cudnn.deterministic and not torch.backends.cudnn.benchmark


@pytest.mark.parametrize(
    "layer",
    [Convolution(4, 3), Pool(), Dense(5), Lstm(4), Softmax(), Relu(), Reshaped(3)],
    ids=str,
)
def test_every_layer_computes_each_client_by_itself(layer):
    """By itself, too: a convolution that mixes clients up might be put right by what follows."""
    shape = (5, 6) if isinstance(layer, Lstm | Reshaped) else (2, 6, 6)
    shape = (7,) if isinstance(layer, Dense | Softmax) else shape
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_normal((3, 4, *shape)))
    own = [torch.tensor(rng.standard_normal((3, *p.shape))) for p in layer.parameters(shape)]
    found = several_clients.COMPUTE[type(layer)](layer, x, None, *own)
    for i in range(3):
        alone = one_client.COMPUTE[type(layer)](layer, x[i], None, *(part[i] for part in own))
        np.testing.assert_allclose(found[i], alone, rtol=0, atol=1e-13)


def test_a_core_by_its_number_is_a_core_and_mps_refuses_double_precision(monkeypatch):
    monkeypatch.setenv(device.VARIABLE, "cpu:0")
    assert device.read_device() == device.CPU
    monkeypatch.setattr(device, "read_device", lambda: device.Device(torch.device("mps"), True))
    refused(lambda: Learner(Params(**PARAMS), images()), InputError, "mps")
    Learner(Params(**PARAMS), images(dtype=np.float32))


FULL = {  # where it happens
    "together": (training, "descend_several"), "cpu": (training, "descend_one"),
    "representation": (Network, "apply"), "samples": (training, "Batch"),
}  # fmt: skip


@pytest.mark.parametrize("way", FULL)
@pytest.mark.parametrize("kind", [torch.OutOfMemoryError, RuntimeError])
def test_too_little_memory_is_a_sentence_and_another_error_none(way, kind, monkeypatch):
    said = ["CUDA out of memory. Tried to allocate 2.00 GiB. See https://pytorch.org\n more"]

    def full(*args):
        raise kind(said[0])

    monkeypatch.setattr(*FULL[way], full)
    monkeypatch.setenv(device.VARIABLE, "together" if way == "together" else "cpu")
    refused(lambda: run("fedavg"), FedcoreError, "memory", "FEDCORE_DEVICE=cpu")
    said[0] = "mat1 and mat2 shapes cannot be multiplied"
    if kind is RuntimeError:
        with pytest.raises(RuntimeError, match="multiplied"):
            run("fedavg")


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_diverges_together_ends_with_a_mark_and_says_nothing(name, monkeypatch):
    monkeypatch.setenv(device.VARIABLE, "together")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = run(name, rate=1e200, rounds=40, participation=1)
    assert found.columns["diverged"][-1] == 1 and not found.columns["diverged"][:-1].any()


def test_a_client_asked_twice_goes_on_from_its_own_state(monkeypatch):
    """Two steps of one client share its state."""
    monkeypatch.setenv(device.VARIABLE, "together")
    learner = Learner(Params(**PARAMS), images())

    @learner.step
    def step(data, state, message):
        batches = learner.batches(learner.samples(data), state.rng, 1)
        own = getattr(state, "own", learner.start(1))
        state.own = learner.descend(own, learner.whole.gradient, batches)
        return state.own

    def asked(of):
        return Federation(images(), 5, check=False, labelled=True).gather(step, of=of)

    twice, once = asked([0, 1, 1]), asked([0, 1])
    np.testing.assert_allclose(twice[:2], once, rtol=0, atol=ROUNDING)
    assert np.abs(twice[2] - twice[1]).max() > 1e-3


@pytest.mark.parametrize("augment", [False, True])
def test_every_batch_of_a_network_with_dropout_has_a_seed_of_its_own(augment):
    """Of the head, too; two clients draw other ones."""
    rng = np.random.default_rng(0)
    pictures = Clients([rng.standard_normal((8, 3072))], labels=[np.arange(8.0)])
    learner = Learner(Params(model="cifar100_cnn", batch=4, augment=augment), pictures)
    data, body = pictures.labelled(0), learner.split(learner.start(0))[0]
    seeds = []
    for client in range(2):
        rng = np.random.default_rng(client)
        batches = learner.batches(learner.samples(data), rng, 2)
        seeds += [b.noise for b in [*batches, *learner.head_batches(body, data, rng, 2)]]
    assert len(set(seeds)) == 16 and None not in seeds
    small = Learner(Params(**PARAMS), images())
    plain = small.batches(small.samples(images().labelled(0)), rng, 1)
    assert {b.noise for b in plain} == {None}
