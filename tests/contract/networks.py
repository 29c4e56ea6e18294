"""Small problems of classification for tests of networks."""

from __future__ import annotations

import numpy as np

from fedcore.problems.clients import Clients

FEATURES, CLASSES, SIZES = 9, 3, (7, 12, 5, 12)


def images(sizes=SIZES, *, seed=7, draw=0, dtype=np.float64) -> Clients:
    """Gaussian samples with the class of a linear form that differs from client to client."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((FEATURES, CLASSES))
    forms = [common + 0.5 * rng.standard_normal((FEATURES, CLASSES)) for _ in sizes]
    rng = np.random.default_rng([seed, draw])
    x = [rng.standard_normal((size, FEATURES)).astype(dtype) for size in sizes]
    y = [(a @ form).argmax(axis=1).astype(dtype) for a, form in zip(x, forms, strict=True)]
    return Clients(x, labels=y)


def held_out(sizes=SIZES, *, seed=7, dtype=np.float64) -> Clients:
    """Other draws with the same forms, to measure on."""
    return images(sizes, seed=seed, draw=1, dtype=dtype)
