"""Layers of networks, with the shapes of their parameters, inputs and outputs.

For inputs of a given shape, a layer's method ``parameters`` returns the shapes of its parameters,
and its method ``output`` returns the shape of its output. All shapes of inputs and outputs refer to
a single sample. `fedcore.deep.one_client` and `fedcore.deep.several_clients` compute the outputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

Size = tuple[int, ...]


class Parameter(NamedTuple):
    """Shape of a tensor of parameters, and the bound of its initial values.

    Before the training, each entry is drawn from the uniform distribution on [−`bound`, `bound`],
    as in PyTorch's layers of the same kind.
    """

    shape: Size
    bound: float


@dataclass(frozen=True)
class Layer:
    """Base class; by default, a layer has no parameters and keeps the shape of its input."""

    def parameters(self, shape: Size) -> tuple[Parameter, ...]:
        """Return shape and bound of each tensor of parameters, for inputs of this shape."""
        return ()

    def output(self, shape: Size) -> Size:
        """Return the shape of the output for inputs of this shape."""
        return shape


class Relu(Layer):
    """Layer that replaces each negative number by zero."""


class Softmax(Layer):
    """Softmax over the last axis, which gives positive numbers with the sum 1."""


@dataclass(frozen=True)
class Dropout(Layer):
    """Layer that in training zeroes each number with probability `share` and scales up the rest."""

    share: float


@dataclass(frozen=True)
class Dense(Layer):
    """Fully connected layer with biases; it maps all numbers of a sample to `width` numbers."""

    width: int

    def parameters(self, shape: Size) -> tuple[Parameter, ...]:
        """Return the shapes and bounds of the weights and the biases."""
        inputs = math.prod(shape)
        bound = 1 / math.sqrt(inputs)
        return Parameter((self.width, inputs), bound), Parameter((self.width,), bound)

    def output(self, shape: Size) -> Size:
        """Return the shape (width,)."""
        return (self.width,)


@dataclass(frozen=True)
class Convolution(Layer):
    """Convolution of images with `channels` kernels of `size` × `size` pixels, without padding."""

    channels: int
    size: int

    def parameters(self, shape: Size) -> tuple[Parameter, ...]:
        """Return shapes and bounds of kernels (last axis: the input's channels) and biases."""
        kernel = (self.channels, self.size, self.size, shape[0])
        bound = 1 / math.sqrt(math.prod(kernel[1:]))
        return Parameter(kernel, bound), Parameter((self.channels,), bound)

    def output(self, shape: Size) -> Size:
        """Return the shape (channels, height, width)."""
        return (self.channels, *(side - self.size + 1 for side in shape[1:]))


class Pool(Layer):
    """Maximum of each block of 2 × 2 pixels; an odd last row or column is left out."""

    def output(self, shape: Size) -> Size:
        """Return the shape (channels, height, width)."""
        return (shape[0], *(side // 2 for side in shape[1:]))


@dataclass(frozen=True)
class Reshaped(Layer):
    """Layer that changes the order of the numbers in a block of samples.

    Each sample is a text, with one vector for each word. A block consists of `block` consecutive
    samples; the last block of a batch may be smaller. The layer writes a block to memory as an
    array (words, samples, numbers of a vector). It then reads the same memory as an array (numbers
    of a vector, samples, words), without a transposition. The LSTM after this layer therefore makes
    one step for every number of a vector, and each step's input mixes several words and samples.
    """

    block: int

    def output(self, shape: Size) -> Size:
        """Return the shape (numbers of a vector, words)."""
        return shape[::-1]


@dataclass(frozen=True)
class Lstm(Layer):
    """Long short-term memory; it reads a sample's vectors one by one, and returns the last state.

    The state has `width` numbers.
    """

    width: int

    def parameters(self, shape: Size) -> tuple[Parameter, ...]:
        """Return shapes and bounds of the input's and state's weights and of two bias vectors."""
        gates, bound = 4 * self.width, 1 / math.sqrt(self.width)
        shapes = ((gates, shape[1]), (gates, self.width), (gates,), (gates,))
        return tuple(Parameter(s, bound) for s in shapes)

    def output(self, shape: Size) -> Size:
        """Return the shape (width,)."""
        return (self.width,)
