"""Clients that have no feature in common: each has normal entries in features of its own.

What client i sends in one exchange is then zero outside of its features, so that a sum over clients
shows everyone's part. `fedpower` reads from it with which weights the server has summed.
"""

from __future__ import annotations

import numpy as np

from fedcore.validation import Count, checked


@checked
def generate(
    rng: np.random.Generator,
    *,
    n_clients: Count = 5,
    samples: Count = 10,
    own: Count = 2,
) -> list[np.ndarray]:
    """Draw the clients.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_clients, samples : int
        Clients, and rows of each.
    own : int
        Features of a client; client i has those from ``i * own`` on.

    Returns
    -------
    list of ndarray of shape (samples, n_clients * own)
    """
    clients = [np.zeros((samples, n_clients * own)) for _ in range(n_clients)]
    for i, client in enumerate(clients):
        client[:, i * own : (i + 1) * own] = rng.standard_normal((samples, own))
    return clients
