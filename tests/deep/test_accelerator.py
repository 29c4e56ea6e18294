"""What an accelerator asks of the way there, shown on a core and on a device without numbers."""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
from contract.networks import PARAMS, SIZE
from contract.test_networks import NAMES, run

from fedcore.cli import blas
from fedcore.errors import FedcoreError, InputError
from fedcore.federation.federation import Federation
from fedcore.problems.clients import Clients, Labelled
from fedcore.testing.samples import images

torch = pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")

from fedcore.deep import descent, device, one, several, training  # noqa: E402
from fedcore.deep.batches import Batch, of_several  # noqa: E402
from fedcore.deep.descent import Descent  # noqa: E402
from fedcore.deep.layers import Convolution, Dense, Lstm, Pool, Relu, Reshaped, Softmax  # noqa: E402
from fedcore.deep.models import MODELS, sample_shape, start  # noqa: E402
from fedcore.deep.networks import Network  # noqa: E402
from fedcore.deep.settings import Params  # noqa: E402
from fedcore.deep.training import Learner  # noqa: E402

META = torch.device("meta")


def test_an_lstm_computes_for_training(monkeypatch):
    """CuDNN gives no gradient else; a core does."""
    asked, plain = [], torch.lstm

    def lstm(*args, **options):
        asked.append(options["train"])
        return plain(*args, **options)

    monkeypatch.setattr(torch, "lstm", lstm)
    model = MODELS["sent140_lstm"]
    network = Network(model.body + model.head, sample_shape("sent140_lstm", 600))
    w = torch.tensor(start("sent140_lstm", 600, 0, np.dtype(np.float32)))
    batch = Batch(torch.zeros(3, 2, 300), torch.tensor([0, 1, 0]), 1)
    network.gradient(w, batch)
    network.gradient(torch.stack([w, w]), of_several([batch, batch]))
    assert asked == [True] * 3


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


def uneven_descents(steps):
    """Three clients, of which the last has fewer batches and one of another size."""
    rng = np.random.default_rng(0)

    def batch(m):
        return Batch(torch.tensor(rng.standard_normal((m, 9))), torch.tensor([0] * m))

    batches = [[batch(5)] * (2 * steps), [batch(5)] * (2 * steps), [batch(5)] * steps + [batch(2)]]
    return [Descent(rng.standard_normal(SIZE), own, (np.ones(SIZE),)) for own in batches]


def test_copies_to_the_device_do_not_grow_with_the_steps(monkeypatch):
    """A copy makes the accelerator wait."""
    model, counts = MODELS["tiny_mlp"], []
    network, plain = Network(model.body + model.head, (9,)), torch.tensor
    copies = []

    def tensor(*args, **options):
        copies.append(1)
        return plain(*args, **options)

    for steps in (2, 7):
        clients = uneven_descents(steps)
        with monkeypatch.context() as patched:
            patched.setattr(descent.torch, "tensor", tensor)
            descent.together(
                lambda w, b, f: network.gradient(w, b) + f, clients, 0.1, 0.5, torch.device("cpu")
            )
        counts.append(len(copies))
        copies.clear()
    assert counts == [4, 4]  # starts, fixed vectors, and the rows of two groups


def test_dropout_of_all_clients_is_copied_at_once(monkeypatch):
    copies, plain = [], torch.Tensor.to

    def to(self, *args, **options):
        copies.append(self.shape)
        return plain(self, *args, **options)

    monkeypatch.setattr(torch.Tensor, "to", to)
    layer = MODELS["cifar100_cnn"].head[0]
    noise = [torch.Generator().manual_seed(seed) for seed in range(3)]
    several.COMPUTE[type(layer)](layer, torch.empty(3, 4, 8, device=META), noise)
    assert set(copies) == {(3, 4, 8)}


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
    device._named.cache_clear()  # another test may have asked
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    assert device.chosen() == (META, True)
    assert torch.backends.cudnn.allow_tf32 and "CUBLAS_WORKSPACE_CONFIG" not in os.environ
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", "")
    blas.settle_device()  # as the command line and the jobs of the workflow do
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
    found = several.COMPUTE[type(layer)](layer, x, None, *own)
    for i in range(3):
        alone = one.COMPUTE[type(layer)](layer, x[i], None, *(part[i] for part in own))
        np.testing.assert_allclose(found[i], alone, rtol=0, atol=1e-13)


def test_a_core_by_its_number_is_a_core(monkeypatch):
    monkeypatch.setenv(device.VARIABLE, "cpu:0")
    assert device.chosen() == device.CPU


def test_mps_refuses_double_precision(monkeypatch):
    monkeypatch.setattr(device, "chosen", lambda: device.Device(torch.device("mps"), True))
    with pytest.raises(InputError, match="mps computes in single precision"):
        Learner(Params(**PARAMS), images())
    Learner(Params(**PARAMS), images(dtype=np.float32))


SAID = (
    "CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 79.10 GiB of "
    "which 1.06 GiB is free. Process 7 has 78.0 GiB memory in use. See https://pytorch.org\n more"
)
FULL = {  # where it happens, and for what memory then lacks and what needs less
    "together": (descent, "together", "cpu has too little memory for 2 clients that advance "
                 "together: take fewer (a smaller participation) or a smaller batch, "),
    "cpu": (descent, "alone", "cpu has too little memory for the training of one client: take a "
            "smaller batch, "),
    "representation": (Network, "apply", "a network's outputs for "),
    "samples": (training, "Batch", "the samples of all clients, which stay there: take fewer "),
}  # fmt: skip


@pytest.mark.parametrize("way", FULL)
@pytest.mark.parametrize("kind", [torch.OutOfMemoryError, RuntimeError])
def test_too_little_memory_is_a_sentence(way, kind, monkeypatch):
    def full(*args):
        raise kind(SAID)

    owner, name, says = FULL[way]
    monkeypatch.setattr(owner, name, full)
    monkeypatch.setenv(device.VARIABLE, "together" if way == "together" else "cpu")
    with pytest.raises(FedcoreError) as caught:
        run("fedavg")
    said = str(caught.value)
    assert says in said and "let no other job use it meanwhile, or take FEDCORE_DEVICE=cpu" in said
    assert said.endswith("of which 1.06 GiB is free)") and "\n" not in said


def test_other_errors_of_a_step_stay_what_they_are(monkeypatch):
    def broken(*args):
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    monkeypatch.setattr(descent, "alone", broken)
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        run("fedavg")


def test_a_device_that_is_full_from_the_start_is_not_called_unknown(monkeypatch):
    def full(*args, **options):
        raise torch.OutOfMemoryError(SAID)

    device._named.cache_clear()
    monkeypatch.setattr(torch, "empty", full)
    monkeypatch.setenv(device.VARIABLE, "cuda:3")
    with pytest.raises(FedcoreError, match="cuda:3 has too little memory for one more process"):
        device.chosen()


@pytest.mark.parametrize("name", NAMES)
def test_a_run_that_diverges_together_ends_with_a_mark_and_says_nothing(name, monkeypatch):
    monkeypatch.setenv(device.VARIABLE, "together")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = run(name, rate=1e200, rounds=40, participation=1)
    assert found.columns["diverged"][-1] == 1 and not found.columns["diverged"][:-1].any()


@pytest.mark.parametrize("plain", [False, True])
def test_a_client_asked_twice_and_a_plain_engine_go_client_by_client(plain, monkeypatch):
    """Two steps of one client share its state, and other engines have one client a place."""
    monkeypatch.setenv(device.VARIABLE, "together")
    groups, both = [], descent.together
    monkeypatch.setattr(
        descent, "together", lambda g, c, *rest: groups.append(len(c)) or both(g, c, *rest)
    )
    learner = Learner(Params(**PARAMS), images())

    @learner.step
    def step(data, state, message):
        batches = learner.batches(learner.samples(data), state.rng, 1)
        state.own = learner.descend(
            getattr(state, "own", learner.start(1)), learner.whole.gradient, batches
        )
        return state.own

    federation = Federation(images(), 5, check=False, labelled=True)
    if plain:
        federation._transport._plain = True
    replies = federation.gather(step, of=[0, 1, 2, 3] if plain else [0, 1, 1])
    assert groups == []
    if not plain:
        assert not np.array_equal(replies[1], replies[2])  # the second goes on from the first


def test_samples_lie_there_once(monkeypatch):
    monkeypatch.setenv(device.VARIABLE, "meta")
    learner, clients = Learner(Params(**PARAMS), images()), images()
    first = [learner.samples(clients.labelled(i)) for i in range(4)]
    again = [learner.samples(clients.labelled(i)) for i in range(4)]
    assert all(a is b for a, b in zip(first, again, strict=True))
    shared = Clients([clients[0]] * 2, labels=[clients.labels[0], clients.labels[0].copy()])
    one, two = (learner.samples(shared.labelled(i)) for i in range(2))
    assert one.y is not two.y


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
