"""Make batches, each with the samples of one training step, and augment images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

MAX_SHIFT = 4  # pixels, as in the code of Collins et al. (ICML 2021)


class Batch(NamedTuple):
    """Samples x, their classes y, and the seed `noise` of dropout, for one training step.

    For one client with m samples, x has shape (m, …) and y has shape (m,). For n clients with m
    samples each, x has shape (n, m, …), y has shape (n, m), and `noise` contains n seeds. Without
    dropout, `noise` is None.
    """

    x: Tensor
    y: Tensor
    noise: Any = None

    def cut(self, share: float) -> tuple[Batch, Batch]:
        """Split the batch: the first fraction `share` of its samples, and the remaining samples.

        The size of the first batch is rounded down, but is at least one. If no samples are left for
        the second batch, both batches contain all samples.
        """
        axis, size = self.y.ndim - 1, self.y.shape[-1]
        first = max(1, int(share * size))
        if first == size:
            return self, self
        parts = (tensor.split([first, size - first], dim=axis) for tensor in (self.x, self.y))
        (x, others), (y, theirs) = parts
        return Batch(x, y, self.noise), Batch(others, theirs, self.noise)


def of_several(batches: Sequence[Batch]) -> Batch:
    """Join batches of equal size, one from each client, into one batch."""
    x, y, noise = zip(*batches, strict=True)
    return Batch(torch.stack(x), torch.stack(y), None if noise[0] is None else noise)


def augmented(x: Tensor, rng: np.random.Generator, ground: Sequence[float] | None = None) -> Tensor:
    """Return randomly moved and mirrored copies of m images `x`, (m, channels, height, width).

    An image moves by up to `MAX_SHIFT` pixels along each axis, and is mirrored with probability
    1/2. Zeros fill the border that becomes empty. If `ground` is given, it has one number for each
    channel, and this number fills the channel's border instead.
    """
    m, channels, height, width = x.shape
    top, left = (torch.from_numpy(part) for part in rng.integers(2 * MAX_SHIFT + 1, size=(2, m)))
    mirrored = torch.from_numpy(rng.integers(2, size=m) == 1)
    rows = top[:, None] + torch.arange(height)
    across = left[:, None] + torch.arange(width)
    across = torch.where(mirrored[:, None], across.flip(1), across)
    each, channel = torch.arange(m)[:, None, None, None], torch.arange(channels)[:, None, None]
    wide = x.new_zeros(m, channels, height + 2 * MAX_SHIFT, width + 2 * MAX_SHIFT)
    if ground is not None:
        wide += x.new_tensor(ground)[:, None, None]
    wide[..., MAX_SHIFT:-MAX_SHIFT, MAX_SHIFT:-MAX_SHIFT] = x
    return wide[each, channel, rows[:, None, :, None], across[:, None, None, :]]
