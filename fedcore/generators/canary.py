"""Data that differ in one row from their neighbours: what a privacy audit tells apart.

One client of rows of unit norm. The last row is the canary: e₁, or e₂ for the neighbour, the two
rows whose exchange moves a Gram matrix the most. All other rows depend on the size alone.
"""

from __future__ import annotations

import numpy as np

from fedcore.checks import require_at_least, require_flag


def generate(
    rng: np.random.Generator,
    *,
    samples: int = 20,
    n_features: int = 2,
    replaced: bool = False,
    removed: bool = False,
) -> list[np.ndarray]:
    """Rows of unit norm on the sphere, and the canary.

    Parameters
    ----------
    rng : numpy.random.Generator
        Not used: neighbours share their other rows, whatever their names.
    samples, n_features : int
        Rows, the canary among them, and columns.
    replaced, removed : bool, default=False
        Whether the canary is e₂, or zero, and not e₁. A row of zeros has no part in any product.

    Returns
    -------
    list of one ndarray of shape (samples, n_features)
    """
    require_at_least(2, samples=samples, n_features=n_features)
    require_flag(replaced=replaced, removed=removed)
    others = np.random.default_rng((samples, n_features)).standard_normal((samples - 1, n_features))
    others /= np.linalg.norm(others, axis=1, keepdims=True)
    canary = np.zeros((1, n_features))
    canary[0, int(replaced)] = float(not removed)
    return [np.vstack([others, canary])]
