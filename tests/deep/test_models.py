"""What is known of a network without PyTorch, against PyTorch's own layers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from fedcore import algorithms
from fedcore.deep import models
from fedcore.deep.models import MODELS
from fedcore.errors import InputError

# Parameters of the authors' networks, counted by hand: of the network, and of its last layer.
PRINTED = {
    "cifar10_cnn": (3072, 307_842, 650),
    "cifar100_cnn": (3072, 1_075_044, 12_900),
    "femnist_mlp": (784, 784 * 256 + 256 + 256 * 64 + 64 + 650, 650),
    "femnist_mlp3": (784, 550_346, 650),
    "sent140_lstm": (7500, 4 * 128 * (300 + 128 + 2) + 1290 + 22, 22),
    "sent140_reshaped": (7500, 4 * 128 * (25 + 128 + 2) + 1290 + 22, 22),
    "tiny_mlp": (9, 55, 15),
}
FEATURES = {name: features for name, (features, *_) in PRINTED.items()}
every_model = pytest.mark.parametrize("name", MODELS)


@pytest.fixture(scope="module")
def torch():
    found = pytest.importorskip("torch", reason="networks need PyTorch, the extra deep")
    found.set_num_threads(1)
    return found


@every_model
def test_the_numbers_of_parameters_are_those_of_the_authors(name):
    features, whole, head = PRINTED[name]
    sizes = models.sizes(name, features)
    assert (sizes.whole, sizes.head) == (whole, head)
    assert len(models.start(name, features, 0, np.dtype(np.float32))) == whole


def test_lg_fedavg_keeps_the_convolutions_or_all_but_the_output_or_the_lstm():
    params = algorithms.get("lg_fedavg").params
    lower = {name: params({"model": name}).lower_size(FEATURES[name]) for name in MODELS}
    assert lower["cifar10_cnn"] == 64 * 76 + 64 * 1601
    assert lower["cifar100_cnn"] == 64 * 76 + 128 * 1601
    assert lower["femnist_mlp"] == models.sizes("femnist_mlp", 784).body
    assert lower["sent140_lstm"] == 4 * 128 * (300 + 128 + 2)
    assert lower["sent140_reshaped"] == 4 * 128 * (25 + 128 + 2)
    more = params({"model": "cifar10_cnn", "lower": 8}).lower_size(FEATURES["cifar10_cnn"])
    assert more == lower["cifar10_cnn"] + 120 * 1601  # the first fully connected layer
    with pytest.raises(InputError, match="lower must be at most 10"):
        params({"model": "cifar10_cnn", "lower": 11})


def as_modules(torch, name):
    """The network built of PyTorch's own modules."""
    nn = torch.nn

    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(300, 128, batch_first=True)

        def forward(self, x):
            return self.lstm(x)[0][:, -1]

    class Reshaped(Last):
        """As in models/Nets.py of the authors: words, tweets, numbers, viewed otherwise."""

        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(25, 128)

        def forward(self, x):
            return self.lstm(x.transpose(0, 1).contiguous().view(300, len(x), 25))[0][-1]

    def lstm(last):
        return nn.Sequential(last, nn.Linear(128, 10), nn.ReLU(), nn.Dropout(0.5), nn.Linear(10, 2))

    def cnn(maps, one, two, *end):
        return nn.Sequential(
            nn.Conv2d(3, 64, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, maps, 5), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(maps * 25, one), nn.ReLU(),
            nn.Linear(one, two), nn.ReLU(), *end,
        )  # fmt: skip

    def mlp(*widths):
        pairs = itertools.pairwise(widths)
        return nn.Sequential(*(m for a, b in pairs for m in (nn.Linear(a, b), nn.ReLU())))[:-1]

    return {
        "cifar10_cnn": lambda: cnn(64, 120, 64, nn.Linear(64, 10)),
        "cifar100_cnn": lambda: cnn(128, 256, 128, nn.Dropout(0.6), nn.Linear(128, 100)),
        "femnist_mlp": lambda: mlp(784, 256, 64, 10),
        "femnist_mlp3": lambda: nn.Sequential(mlp(784, 512, 256, 64, 10), nn.Softmax(dim=1)),
        "sent140_lstm": lambda: lstm(Last()),
        "sent140_reshaped": lambda: lstm(Reshaped()),
        "tiny_mlp": lambda: mlp(9, 4, 3),
    }[name]().double()


def ordered(tensor):
    """A parameter in the order of the vector: channels are on the last axis of kernels."""
    return tensor.permute(0, 2, 3, 1) if tensor.dim() == 4 else tensor


@pytest.fixture(params=MODELS)
def both(request, torch):
    """A network here, the same of PyTorch's modules, one vector of both, and a batch."""
    from fedcore.deep.batches import Batch
    from fedcore.deep.networks import Network

    name, rng = request.param, np.random.default_rng(0)
    model, shape = MODELS[name], models.sample_shape(name, FEATURES[name])
    module = as_modules(torch, name)
    w = torch.tensor(models.start(name, FEATURES[name], 1, np.dtype(np.float64)))
    stored = [ordered(p) for p in module.parameters()]
    for one, values in zip(stored, w.split([p.numel() for p in stored]), strict=True):
        one.data.copy_(values.view(one.shape))
    x = torch.from_numpy(rng.standard_normal((3, *shape)))
    y = torch.from_numpy(rng.integers(model.classes, size=3))
    return Network(model.body + model.head, shape), module, w, Batch(x, y), model, shape


def test_outputs_and_gradients_are_those_of_pytorchs_modules(both, torch):
    network, module, w, batch, *_ = both
    assert network.size == sum(p.numel() for p in module.parameters()) == len(w)
    module.eval()
    outputs = module(batch.x)
    assert outputs.shape[1:] == network.output
    torch.nn.functional.cross_entropy(outputs, batch.y).backward()
    expected = torch.cat([ordered(p.grad).flatten() for p in module.parameters()])
    # Rounding: sums of up to 3200 products in another order.
    torch.testing.assert_close(network.apply(w, batch.x), outputs.detach(), rtol=0, atol=1e-13)
    torch.testing.assert_close(network.gradient(w, batch), expected, rtol=0, atol=1e-13)


def test_the_head_on_the_body_is_the_network(both, torch):
    from fedcore.deep.networks import Network

    network, _, w, batch, model, shape = both
    body = Network(model.body, shape)
    head = Network(model.head, body.output)
    features = body.apply(w[: body.size], batch.x)
    assert torch.equal(head.apply(w[body.size :], features), network.apply(w, batch.x))
    whole = network.gradient(w, batch)[body.size :]
    alone = head.gradient(w[body.size :], batch._replace(x=features))
    torch.testing.assert_close(alone, whole, rtol=0, atol=1e-15)


def test_dropout_is_that_of_its_seed_and_keeps_the_mean(torch):
    from fedcore.deep.batches import Batch
    from fedcore.deep.layers import Dense, Dropout
    from fedcore.deep.networks import Network

    network = Network((Dropout(0.25), Dense(2)), (4000,))
    assert network.random and not Network((Dense(2),), (3,)).random
    w = torch.zeros(network.size, dtype=torch.float64)
    batch = Batch(torch.ones(1, 4000, dtype=torch.float64), torch.tensor([0]), noise=7)
    gradient = network.gradient(w, batch)
    assert torch.equal(gradient, network.gradient(w, batch))
    assert not torch.equal(gradient, network.gradient(w, batch._replace(noise=8)))
    kept = -2 * gradient[:4000]  # at w = 0, the gradient is −1/2 of the inputs
    assert set(kept.tolist()) == {0.0, 4 / 3}
    # 4000 draws with standard deviation 0.43: five standard errors.
    assert float((kept > 0).double().mean()) == pytest.approx(0.75, abs=5 * 0.43 / math.sqrt(4000))


@every_model
def test_the_first_parameters_have_pytorchs_distribution(name):
    w, start = models.start(name, FEATURES[name], 3, np.dtype(np.float64)), 0
    shape = models.sample_shape(name, FEATURES[name])
    for layer in MODELS[name].body + MODELS[name].head:
        for shape_of, bound in layer.parameters(shape):
            part, start = w[start : start + math.prod(shape_of)], start + math.prod(shape_of)
            assert np.abs(part).max() <= bound
            spread = bound / math.sqrt(3)  # of a uniform distribution; five standard errors
            assert abs(part.mean()) <= 5 * spread / math.sqrt(len(part))
        shape = layer.output(shape)
    again = models.start(name, FEATURES[name], 3, np.dtype(np.float64))
    assert start == len(w) and again.tobytes() == w.tobytes() and not w.flags.writeable
