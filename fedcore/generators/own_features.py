"""Clients without a common feature: each client has normal entries in features of its own.

What client i sends in one exchange is then zero outside of its features, so that a sum over clients
shows the part of each client. For `fedpower`, the weights of the clients in the server's sum can be
read from it.
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
        Number of features of a client; the features of client i begin at ``i * own``.

    Returns
    -------
    list of ndarray of shape (samples, n_clients * own)
    """
    clients = [np.zeros((samples, n_clients * own)) for _ in range(n_clients)]
    for i, client in enumerate(clients):
        client[:, i * own : (i + 1) * own] = rng.standard_normal((samples, own))
    return clients
