"""Gradient descent with momentum, of one client, or of several that advance together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from fedcore.deep.batches import Batch, of_several

Gradient = Callable[..., Tensor]  # ``(w, batch, *fixed) -> gradient``


class Descent(NamedTuple):
    """Where a client begins, a batch for each step, and vectors that its gradient needs."""

    start: np.ndarray
    batches: Sequence[Batch]
    fixed: tuple[np.ndarray, ...]


def alone(
    gradient: Gradient, client: Descent, rate: float, momentum: float, device: torch.device
) -> np.ndarray:
    """Return where the descent of one client ends."""
    end = torch.tensor(client.start, device=device)
    fixed = [torch.tensor(vector, device=device) for vector in client.fixed]
    step = torch.zeros_like(end)
    for batch in client.batches:
        step.mul_(momentum).add_(gradient(end, batch, *fixed))
        end.sub_(step, alpha=rate)
    found: np.ndarray = end.cpu().numpy()
    return found


def together(
    gradient: Gradient,
    clients: Sequence[Descent],
    rate: float,
    momentum: float,
    device: torch.device,
) -> list[np.ndarray]:
    """Return where the descent of each client ends; a step of all is one call of `gradient`.

    Clients whose batches differ in size make this step by themselves, and a client without further
    batches stays where it is.
    """

    def stacked(vectors: Sequence[np.ndarray]) -> Tensor:
        return torch.tensor(np.stack(vectors), device=device)

    end = stacked([client.start for client in clients])
    fixed = [stacked(vectors) for vectors in zip(*(c.fixed for c in clients), strict=True)]
    step = torch.zeros_like(end)
    there: dict[tuple[int, ...], Tensor] = {}  # rows on the device, where each copy is a wait
    for t in range(max(len(client.batches) for client in clients)):
        for members in _alike(clients, t):
            batch = of_several([clients[i].batches[t] for i in members])
            if len(members) == len(clients):
                step.mul_(momentum).add_(gradient(end, batch, *fixed))
                end.sub_(step, alpha=rate)
                continue
            if members not in there:
                there[members] = torch.tensor(members, device=device)
            rows = there[members]
            found = gradient(end[rows], batch, *(vectors[rows] for vectors in fixed))
            moved = step[rows].mul_(momentum).add_(found)
            step[rows] = moved
            end[rows] = end[rows].sub_(moved, alpha=rate)
    return [w.copy() for w in end.cpu().numpy()]


def _alike(clients: Sequence[Descent], t: int) -> list[tuple[int, ...]]:
    """Return the clients that make step t, by the size of their batch."""
    sizes: dict[int, list[int]] = {}
    for i, client in enumerate(clients):
        if t < len(client.batches):
            sizes.setdefault(len(client.batches[t].y), []).append(i)
    return [tuple(members) for members in sizes.values()]
