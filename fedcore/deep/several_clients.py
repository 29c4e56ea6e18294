"""Compute the outputs of layers for several clients at once, each with its own parameters.

Inputs (n, m, …) for m samples of each of n clients, and parameters (n, …), have a leading axis of
clients. One call of PyTorch serves all n clients, because one client's step is too small to keep an
accelerator busy. Functions with the same names for one client are in `fedcore.deep.one_client`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor
from torch.nn import functional as F

from fedcore.deep import layers as kinds
from fedcore.deep import one_client
from fedcore.deep.batches import Batch

Noise: TypeAlias = Sequence[torch.Generator] | None


def _beside(x: Tensor) -> Tensor:
    """Return images (n, m, channels, …) in the shape (m, n · channels, …) that pooling requires.

    Images that come from `_apart` are not copied.
    """
    return x.transpose(0, 1).flatten(1, 2)


def _apart(x: Tensor, clients: int) -> Tensor:
    """Undo `_beside`: return images (m, n · channels, …) as (n, m, channels, …)."""
    return x.unflatten(1, (clients, -1)).transpose(0, 1)


def _convolved(x: Tensor, kernels: Tensor, constant: Tensor) -> Tensor:
    """Convolve images with kernels, by one matrix product per client over all image patches."""
    size = kernels.shape[2]
    lines = x.transpose(1, 2).unfold(3, size, 1).unfold(4, size, 1)  # n c m h w k k
    patches = lines.permute(0, 5, 6, 1, 2, 3, 4).reshape(len(x), size * size * x.shape[2], -1)
    found = torch.baddbmm(constant[..., None], kernels.flatten(2), patches)
    return found.unflatten(2, lines.shape[2:5]).transpose(1, 2)


def _dropped(layer: kinds.Dropout, x: Tensor, noise: Noise) -> Tensor:
    if noise is None:
        return x
    kept = [one_client.kept(layer, own, generator) for own, generator in zip(x, noise, strict=True)]
    return one_client.scaled(layer, x, torch.stack(kept))  # in one copy to the device


def _last_outputs(layer: kinds.Lstm, x: Tensor, noise: Any, *own: Tensor) -> Tensor:
    """Return the last state of each client's LSTM, by one call of PyTorch's LSTM per client."""
    clients = zip(x, *own, strict=True)
    return torch.stack([one_client.last_output(layer, x, None, *rest) for x, *rest in clients])


COMPUTE: one_client.Compute = one_client.COMPUTE | {
    kinds.Convolution: lambda layer, x, noise, weight, constant: _convolved(x, weight, constant),
    kinds.Dense: lambda layer, x, noise, weight, constant: torch.baddbmm(
        constant[:, None], x.flatten(2), weight.mT
    ),
    kinds.Dropout: _dropped,
    kinds.Lstm: _last_outputs,
    kinds.Pool: lambda layer, x, noise: _apart(F.max_pool2d(_beside(x), 2), len(x)),
    kinds.Reshaped: lambda layer, x, noise: torch.stack(
        [one_client.reshaped(layer, own, None) for own in x]
    ),
}


def noise_of(batch: Batch) -> Noise:
    """Return one random generator per client, for dropout, or None without dropout."""
    seeds = () if batch.noise is None else batch.noise
    return [torch.Generator().manual_seed(seed) for seed in seeds] or None


def loss(scores: Tensor, y: Tensor) -> Tensor:
    """Return the sum over clients of the mean cross-entropy of their batches.

    The loss of a client depends only on its own parameters, so the gradient of the sum consists of
    the clients' gradients.
    """
    return F.cross_entropy(scores.flatten(0, 1), y.flatten(), reduction="sum") / y.shape[1]


@torch.no_grad()
def linear_gradient(weight: Tensor, constant: Tensor, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return each client's gradient, in closed form, for networks of one fully connected layer."""
    x, y = batch.x.flatten(2), batch.y[..., None]
    error = F.softmax(torch.baddbmm(constant[:, None], x, weight.mT), dim=-1)
    error.scatter_add_(-1, y, error.new_full(y.shape, -1))
    error /= y.shape[1]
    return error.mT @ x, error.sum(1)
