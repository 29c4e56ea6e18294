"""Matrix of independent random entries, divided among clients.

Figure 1 of Wang, Liu & Zhang (*Seeking consensus on subspaces in federated principal component
analysis*) uses a "random matrix". The paper states its numbers of features and samples, but not the
distribution of its entries. This model is fedcore's choice of the random matrix.
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
    """Draw the clients' matrices; all entries are independent, from N(0, 1) or uniform in [−1, 1].

    Parameters
    ----------
    rng : numpy.random.Generator
    n_features, n_samples, n_clients : int
        Numbers n of features, m of all samples, and d of clients. Samples are divided as evenly as
        possible.
    kind : str
        Distribution of the entries.

    Returns
    -------
    iterator of ndarray of shape (n_i, n_features)

    Raises
    ------
    InputError
        If a value is out of range, or there are fewer samples than clients.
    """
    require_valid(whole(n_clients), n_samples=n_samples)
    shapes = [(len(part), n_features) for part in np.array_split(range(n_samples), n_clients)]
    normal = kind == "normal"
    return (rng.standard_normal(s) if normal else rng.uniform(-1.0, 1.0, s) for s in shapes)
