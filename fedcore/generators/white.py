"""Matrix of independent entries, split over clients.

This model stands in for the "random matrix" in Figure 1 of Wang, Liu & Zhang (*Seeking consensus on
subspaces in federated principal component analysis*), who give n and m but not the distribution.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from fedcore.validation import Count, checked, one_of, require_valid, whole


@checked
def generate(
    rng: np.random.Generator,
    *,
    n_features: Count = 1000,
    n_samples: int = 10_000,
    n_clients: Count = 8,
    kind: Annotated[str, one_of(("normal", "uniform"))] = "normal",
) -> Iterator[np.ndarray]:
    """Draw independent entries, N(0, 1) or uniform in [−1, 1].

    Parameters
    ----------
    rng : numpy.random.Generator
    n_features, n_samples, n_clients : int
        n, m (samples of all clients, split as evenly as possible) and d.
    kind : str

    Returns
    -------
    iterator of ndarray of shape (n_i, n_features)

    Raises
    ------
    InputError
        For a value out of range, or fewer samples than clients.
    """
    require_valid(whole(n_clients), n_samples=n_samples)
    shapes = [(len(part), n_features) for part in np.array_split(range(n_samples), n_clients)]
    normal = kind == "normal"
    return (rng.standard_normal(s) if normal else rng.uniform(-1.0, 1.0, s) for s in shapes)
