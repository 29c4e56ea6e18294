"""Layers of networks: their parameters, and the shapes of their inputs and outputs.

A layer gives its ``parameters`` for inputs of a shape, and the shape of its ``output``; shapes are
those of one sample. `fedcore.deep.one` and `fedcore.deep.several` compute the outputs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

Size = tuple[int, ...]


class Parameter(NamedTuple):
    """A tensor of parameters of a layer, and the distribution of its first values.

    Before the training, each entry is drawn from the uniform distribution on [−`bound`, `bound`],
    as in PyTorch's layers of the same kind.
    """

    shape: Size
    bound: float


@dataclass(frozen=True)
class Layer:
    """A layer without parameters whose output has the shape of its input."""

    def parameters(self, shape: Size) -> tuple[Parameter, ...]:
        """Return the tensors of the layer for inputs of this shape."""
        return ()

    def output(self, shape: Size) -> Size:
        """Return the shape of the output."""
        return shape


class Relu(Layer):
    """The positive part of every number."""


class Softmax(Layer):
    """Numbers above 0 with the sum 1, in proportion to the exponentials of the inputs."""


@dataclass(frozen=True)
class Dropout(Layer):
    """While training, each number is zero with probability `share`; the others are scaled up."""

    share: float


@dataclass(frozen=True)
class Dense(Layer):
    """Linear map of all numbers of a sample to `width` numbers, with a constant."""

    width: int

    def parameters(self, shape: Size) -> tuple[Parameter, ...]:
        """Weights and constants."""
        inputs = math.prod(shape)
        bound = 1 / math.sqrt(inputs)
        return Parameter((self.width, inputs), bound), Parameter((self.width,), bound)

    def output(self, shape: Size) -> Size:
        """Return one axis."""
        return (self.width,)


@dataclass(frozen=True)
class Convolution(Layer):
    """Convolution of images with `channels` kernels of `size` × `size` pixels, without a border."""

    channels: int
    size: int

    def parameters(self, shape: Size) -> tuple[Parameter, ...]:
        """Kernels, the channels of the input on their last axis, and constants."""
        kernel = (self.channels, self.size, self.size, shape[0])
        bound = 1 / math.sqrt(math.prod(kernel[1:]))
        return Parameter(kernel, bound), Parameter((self.channels,), bound)

    def output(self, shape: Size) -> Size:
        """Return channels, height, width."""
        return (self.channels, *(side - self.size + 1 for side in shape[1:]))


class Pool(Layer):
    """The largest of every 2 × 2 pixels; an odd last row or column is left out."""

    def output(self, shape: Size) -> Size:
        """Return channels, height, width."""
        return (shape[0], *(side // 2 for side in shape[1:]))


@dataclass(frozen=True)
class Reshaped(Layer):
    """Sequences whose numbers are read in another order, across the samples of a block.

    A block is `block` samples that follow one another, or what is left of a batch. Its numbers, in
    the order of an array (words, samples, numbers of a word), are those of an array (numbers of a
    word, samples, words). The next layer therefore takes one step for every number of a word, and
    the input of each step mixes several words and samples.
    """

    block: int

    def output(self, shape: Size) -> Size:
        """Return the length of a word's vector as the length of the sequence."""
        return shape[::-1]


@dataclass(frozen=True)
class Lstm(Layer):
    """The last output, `width` numbers, of a long short-term memory over a sequence of vectors."""

    width: int

    def parameters(self, shape: Size) -> tuple[Parameter, ...]:
        """For four gates: weights of input and state, and two vectors of constants."""
        gates, bound = 4 * self.width, 1 / math.sqrt(self.width)
        shapes = ((gates, shape[1]), (gates, self.width), (gates,), (gates,))
        return tuple(Parameter(s, bound) for s in shapes)

    def output(self, shape: Size) -> Size:
        """Return one axis."""
        return (self.width,)
