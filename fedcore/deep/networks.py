"""Compute the outputs of a network and the gradients of its loss for given parameters.

For one client, the layers' outputs come from `fedcore.deep.one_client`. For several clients,
parameters and batches have a leading axis of clients, and the outputs come from
`fedcore.deep.several_clients`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor as Tensor

from fedcore.deep import layers as kinds
from fedcore.deep import one_client, several_clients
from fedcore.deep.batches import Batch
from fedcore.deep.layers import Layer, Size


class Network:
    """A sequence of layers for samples of a given shape.

    Parameters
    ----------
    layers : tuple of Layer
    shape : tuple of int
        Shape of a sample.
    decay : float
        Factor λ of the weight decay, which adds λ times the weights to their gradient; biases do
        not decay.

    Attributes
    ----------
    size : int
        Number of parameters.
    output : tuple of int
        Shape of the output.
    random : bool
        True if training needs random numbers, for a dropout layer.
    block : int
        Number of consecutive samples of a batch on which the output for one sample depends; 1
        without a `Reshaped` layer.
    """

    def __init__(self, layers: tuple[Layer, ...], shape: Size, decay: float = 0.0) -> None:
        self._layers, self._sample, self._shapes, self._decay = layers, shape, [], decay
        for layer in layers:
            self._shapes.append([p.shape for p in layer.parameters(shape)])
            shape = layer.output(shape)
        self.output = shape
        self._sizes = [math.prod(s) for shapes in self._shapes for s in shapes]
        self.size = sum(self._sizes)
        self._linear = [type(layer) for layer in layers] == [kinds.Dense]
        self.random = any(isinstance(layer, kinds.Dropout) for layer in layers)
        self.block = max((l.block for l in layers if isinstance(l, kinds.Reshaped)), default=1)

    def inputs(self, X: np.ndarray) -> Tensor:
        """Return the rows of `X` as a tensor of samples; callers must not write to the tensor."""
        X = np.ascontiguousarray(X)
        try:
            samples = torch.from_dlpack(X)
        except BufferError:  # an old NumPy or PyTorch does not share read-only arrays
            samples = torch.from_numpy(X.copy())
        return samples.view(-1, *self._sample)

    def apply(self, w: Tensor, x: Tensor) -> Tensor:
        """Return the network's outputs for the samples `x` and parameters `w`, without dropout."""
        with torch.no_grad():
            return self._outputs(one_client.COMPUTE, self._tensors(w), x, None)

    def gradient(self, w: Tensor, batch: Batch, *, decays: bool = True) -> Tensor:
        """Return the gradient of a batch's mean cross-entropy at `w`, plus any weight decay.

        For n clients, `w` has one row of parameters for each client, and `batch` joins their
        batches. The result then has one row, a gradient, for each client.
        """
        lead = w.ndim - 1  # the axis of clients, if any
        tensors = [part.detach().requires_grad_() for part in self._tensors(w)]
        clients = several_clients if lead else one_client
        if self._linear:
            found = clients.linear_gradient(*tensors, batch)
        else:
            scores = self._outputs(clients.COMPUTE, tensors, batch.x, clients.noise_of(batch))
            found = torch.autograd.grad(clients.loss(scores, batch.y), tensors)
        if self._decay and decays:
            pairs = zip(found, tensors, strict=True)
            found = [g + self._decay * p.detach() if p.ndim > 1 + lead else g for g, p in pairs]
        return torch.cat([part.flatten(lead) for part in found], dim=-1)

    def _tensors(self, w: Tensor) -> list[Tensor]:
        """Return all layers' parameter tensors; for a single client, they are views of `w`."""
        shapes, lead = [shape for of_layer in self._shapes for shape in of_layer], w.shape[:-1]
        parts = w.split(self._sizes, dim=-1)
        return [p.reshape(*lead, *s) for p, s in zip(parts, shapes, strict=True)]

    def _outputs(
        self, compute: one_client.Compute, tensors: list[Tensor], x: Tensor, noise: Any
    ) -> Tensor:
        left = iter(tensors)
        for layer, shapes in zip(self._layers, self._shapes, strict=True):
            own = [next(left) for _ in shapes]
            x = compute[type(layer)](layer, x, noise, *own)
        return x
