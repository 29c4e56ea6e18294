"""Tables of the networks' layers, and functions for their sizes and initial parameters.

The networks ``cifar10_cnn``, ``cifar100_cnn``, ``femnist_mlp`` and ``sent140_lstm`` are from
Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), Appendix A.2. Their widths and dropout are
taken from the authors' code. The network ``femnist_mlp3`` follows the authors' code, which has
three hidden layers, and not the paper, which prints two. Like this code, ``femnist_mlp3`` applies a
softmax before the softmax of the loss. The network ``sent140_reshaped`` follows the authors' code,
which mixes the words of four tweets (see `fedcore.deep.layers.Reshaped`). The network ``tiny_mlp``
is for tests and examples. The head of a network is the last fully connected layer, with any dropout
directly before this layer and any softmax after it. The other layers are the body, and the output
of the body is the representation. The outputs of a network are scores, and their cross-entropy is
the loss.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from fedcore.deep.layers import (
    Convolution,
    Dense,
    Dropout,
    Layer,
    Lstm,
    Pool,
    Relu,
    Reshaped,
    Size,
    Softmax,
)
from fedcore.errors import InputError


@dataclass(frozen=True)
class Model:
    """A network of layers, divided into a body and a head.

    Attributes
    ----------
    sample : tuple of int
        Shape of a sample; −1 stands for a size that depends on the number of features.
    body, head : tuple of Layer
        Layers that compute the representation, and layers of the head, which computes the scores
        from the representation.
    lower : int
        Number of first layers of the body that stay with the clients in the method LG-FedAvg
        (Appendix A.2 of Collins et al.).
    """

    sample: Size
    body: tuple[Layer, ...]
    head: tuple[Layer, ...]
    lower: int

    @property
    def classes(self) -> int:
        """Number of classes."""
        shape: Size = ()
        for layer in self.head:
            shape = layer.output(shape)
        return shape[0]


def _cnn(maps: int, *widths: int) -> tuple[Layer, ...]:
    """Return two convolutions with 64 and `maps` kernels, followed by fully connected layers."""
    # ReLU after pooling gives the same as ReLU before pooling, for a quarter of the numbers.
    convolutions = (Convolution(64, 5), Pool(), Relu(), Convolution(maps, 5), Pool(), Relu())
    return convolutions + _mlp(*widths)


def _mlp(*widths: int) -> tuple[Layer, ...]:
    """Return fully connected layers, each followed by a ReLU."""
    return sum(((Dense(width), Relu()) for width in widths), ())


TEXT_SHAPE = (-1, 300)  # words × GloVe's vector of a word
_LSTM = (Lstm(128), Dense(10), Relu())
MODELS = {
    "cifar10_cnn": Model((3, 32, 32), _cnn(64, 120, 64), (Dense(10),), lower=6),
    "cifar100_cnn": Model((3, 32, 32), _cnn(128, 256, 128), (Dropout(0.6), Dense(100)), lower=6),
    "femnist_mlp": Model((-1,), _mlp(256, 64), (Dense(10),), lower=4),
    "femnist_mlp3": Model((-1,), _mlp(512, 256, 64), (Dense(10), Softmax()), lower=6),
    "sent140_lstm": Model(TEXT_SHAPE, _LSTM, (Dropout(0.5), Dense(2)), lower=1),
    "sent140_reshaped": Model(TEXT_SHAPE, (Reshaped(4), *_LSTM), (Dropout(0.5), Dense(2)), lower=2),
    "tiny_mlp": Model((-1,), (Dense(4), Relu()), (Dense(3),), lower=2),
}


def sample_shape(name: str, n_features: int) -> Size:
    """Return the shape in which the model `name` takes a sample of `n_features` numbers.

    Raises
    ------
    InputError
        If the samples of the model cannot have `n_features` numbers.
    """
    sample = MODELS[name].sample
    known = math.prod(side for side in sample if side > 0)
    if n_features % known or (-1 not in sample and n_features != known):
        sides = " × ".join("any" if side < 0 else str(side) for side in sample)
        raise InputError(
            f"{name} takes samples of {sides} numbers, and these samples have {n_features}: take "
            "another model"
        )
    return tuple(n_features // known if side < 0 else side for side in sample)


def size(layers: tuple[Layer, ...], shape: Size) -> int:
    """Return the number of parameters of `layers` for samples of the given shape."""
    total = 0
    for layer in layers:
        total += sum(math.prod(p.shape) for p in layer.parameters(shape))
        shape = layer.output(shape)
    return total


@dataclass(frozen=True)
class Sizes:
    """Numbers of parameters of a network and of its parts.

    Attributes
    ----------
    whole, body, head : int
        Number of parameters of the whole network, of its body and of its head.
    """

    whole: int
    body: int

    @property
    def head(self) -> int:
        """Number of parameters of the head."""
        return self.whole - self.body


def sizes(name: str, n_features: int) -> Sizes:
    """Return the numbers of parameters of the model `name` for samples of `n_features` numbers."""
    model, shape = MODELS[name], sample_shape(name, n_features)
    parts = model.body + model.head, model.body
    return Sizes(*(size(part, shape) for part in parts))


@functools.lru_cache(maxsize=1)  # all clients of a run hold this one array
def start(name: str, n_features: int, seed: int, dtype: np.dtype) -> np.ndarray:
    """Draw the initial parameters of the model `name`; equal seeds give equal parameters.

    The distributions are those of PyTorch's layers (see `fedcore.deep.layers.Parameter`).

    Returns
    -------
    ndarray
        All parameters of the network, in one read-only vector.
    """
    model, shape = MODELS[name], sample_shape(name, n_features)
    rng, drawn = np.random.default_rng(seed), []
    for layer in model.body + model.head:
        drawn += [
            rng.uniform(-p.bound, p.bound, math.prod(p.shape)) for p in layer.parameters(shape)
        ]
        shape = layer.output(shape)
    first = np.concatenate(drawn).astype(dtype)
    first.flags.writeable = False
    return first
