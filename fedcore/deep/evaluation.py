"""The clients' networks, as objects from which metrics get the clients' class scores."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedcore.deep.device import read_device, room
from fedcore.deep.networks import Network

Vectors = np.ndarray | Sequence[np.ndarray]  # one for all clients, or one each
ROWS = 25  # samples computed at once: what a core can hold in its cache
ROWS_OF_ACCELERATOR = 1000


@dataclass(frozen=True)
class Networks:
    """A network for every client; the class fulfils the protocol `fedcore.iterates.Classifiers`.

    Attributes
    ----------
    body, head : Network
        Layers of the body and of the head.
    held : ndarray
        Vector of the parameters that the server holds.
    bodies, heads : ndarray, or sequence of ndarray
        Parameters of the bodies and heads: one vector for all clients, or one vector per client.
    """

    body: Network
    head: Network
    held: np.ndarray
    bodies: Vectors
    heads: Vectors

    def parameters(self) -> Iterator[np.ndarray]:
        """Yield the vectors in `bodies` and `heads`; one shared by all clients comes only once."""
        for vectors in (self.bodies, self.heads):
            yield from [vectors] if isinstance(vectors, np.ndarray) else vectors

    def scores(self, samples: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return, for each client, the scores of its samples, shape (n_i, classes)."""
        inputs = [self.body.inputs(X) for X in samples]
        features = _outputs(self.body, self.bodies, inputs)
        return [scores.cpu().numpy() for scores in _outputs(self.head, self.heads, features)]


@dataclass(frozen=True)
class Adapted:
    """Networks that are computed from the server's network when `scores` is called.

    Attributes
    ----------
    held : ndarray
        Vector of the parameters that the server holds.
    make : callable
        Function ``() -> Networks`` that computes the clients' networks.
    """

    held: np.ndarray
    make: Callable[[], Networks]

    def parameters(self) -> Iterator[np.ndarray]:
        """Yield the parameters that the server holds."""
        yield self.held

    def scores(self, samples: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return, for each client, the scores of its samples, shape (n_i, classes)."""
        return self.make().scores(samples)


def in_pieces(network: Network, w: np.ndarray, x: Tensor) -> Tensor:
    """Return a network's outputs, computed for a few samples at a time in the precision of `w`."""
    device = read_device().where
    vector = torch.tensor(w, device=device)
    rows = ROWS if device.type == "cpu" else ROWS_OF_ACCELERATOR
    rows = max(rows - rows % network.block, network.block)
    what = f"a network's outputs for {len(x)} samples"
    with room(device, what, "fewer samples of a client"):
        return torch.cat([network.apply(vector, piece.to(vector)) for piece in x.split(rows)])


def _outputs(network: Network, vectors: Vectors, inputs: list[Tensor]) -> list[Tensor]:
    """Return the outputs of each client's network for this client's inputs.

    If all clients use the same network, their samples are evaluated together. The exception is a
    network whose output for a sample depends on other samples (`network.block` above 1).
    """
    if isinstance(vectors, np.ndarray) and network.block > 1:
        vectors = [vectors] * len(inputs)
    if isinstance(vectors, np.ndarray):
        sizes = [len(x) for x in inputs]
        return list(in_pieces(network, vectors, torch.cat(inputs)).split(sizes))
    return [in_pieces(network, w, x) for w, x in zip(vectors, inputs, strict=True)]
