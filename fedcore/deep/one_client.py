"""Compute the outputs of layers for one client's m samples, from inputs of shape (m, …)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from fedcore.deep import layers as kinds
from fedcore.deep.batches import Batch
from fedcore.deep.layers import Layer

Noise: TypeAlias = torch.Generator | None  # of dropout, while training


def dropped(layer: kinds.Dropout, x: Tensor, noise: Noise) -> Tensor:
    """Zero random entries of `x` and scale up the others; without `noise`, return `x`."""
    return x if noise is None else scaled(layer, x, kept(layer, x, noise))


def kept(layer: kinds.Dropout, x: Tensor, noise: torch.Generator) -> Tensor:
    """Return a random mask of the entries kept by dropout; it is drawn on the CPU.

    The mask is therefore the same on all devices.
    """
    return torch.rand(x.shape, generator=noise, dtype=x.dtype) >= layer.share


def scaled(layer: kinds.Dropout, x: Tensor, kept: Tensor) -> Tensor:
    """Return `x` with dropped entries set to zero and kept entries scaled up."""
    return x * kept.to(x.device) / (1 - layer.share)


def _convolved(x: Tensor, kernels: Tensor, constant: Tensor) -> Tensor:
    """Convolve images with kernels; channels come last in memory, which is faster on a CPU."""
    x = x.contiguous(memory_format=torch.channels_last)
    return F.conv2d(x, kernels.permute(0, 3, 1, 2), constant)


def last_output(layer: kinds.Lstm, x: Tensor, noise: Any, *own: Tensor) -> Tensor:
    """Return an LSTM's state after the last vector of each sample."""
    nothing = x.new_zeros(1, len(x), layer.width)
    # cuDNN computes gradients only if `train` is true; elsewhere, `train` changes nothing.
    options = {"has_biases": True, "num_layers": 1, "dropout": 0.0, "train": True}
    return torch.lstm(x, (nothing, nothing), own, **options, bidirectional=False, batch_first=True)[
        1
    ][0]


def reshaped(layer: kinds.Reshaped, x: Tensor, noise: Any) -> Tensor:
    """Change (m, words, numbers) into (m, numbers, words) as described in `layers.Reshaped`."""
    lines = x.shape[:0:-1]  # numbers, words
    blocks = (block.transpose(0, 1) for block in x.split(layer.block))
    return torch.cat([b.reshape(lines[0], -1, lines[1]).transpose(0, 1) for b in blocks])


# ``(layer, inputs, noise, *tensors) -> outputs``
Compute = dict[type[Layer], Callable[..., Tensor]]
COMPUTE: Compute = {
    kinds.Convolution: lambda layer, x, noise, weight, constant: _convolved(x, weight, constant),
    kinds.Dense: lambda layer, x, noise, weight, constant: F.linear(x.flatten(1), weight, constant),
    kinds.Dropout: dropped,
    kinds.Lstm: last_output,
    kinds.Pool: lambda layer, x, noise: F.max_pool2d(x, 2),
    kinds.Relu: lambda layer, x, noise: F.relu(x),
    kinds.Reshaped: reshaped,
    kinds.Softmax: lambda layer, x, noise: F.softmax(x, dim=-1),
}


def noise_of(batch: Batch) -> Noise:
    """Return the random generator for a batch's dropout, or None without dropout."""
    return None if batch.noise is None else torch.Generator().manual_seed(batch.noise)


def loss(scores: Tensor, y: Tensor) -> Tensor:
    """Return the mean cross-entropy of a batch."""
    return F.cross_entropy(scores, y)


@torch.no_grad()
def linear_gradient(weight: Tensor, constant: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the gradient of the mean cross-entropy, if the network is one fully connected layer.

    A closed form is used, because it takes half the time of PyTorch's automatic differentiation.
    """
    x = batch.x.flatten(1)
    error = F.softmax(torch.addmm(constant, x, weight.t()), dim=1)
    error[torch.arange(len(x), device=x.device), batch.y] -= 1
    error /= len(x)
    return error.t() @ x, error.sum(0)
