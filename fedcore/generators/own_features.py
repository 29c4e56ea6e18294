"""Clients without common features: each client has non-zero entries only in its own columns.

The entries are normal random numbers. If client i sends products with its Gram matrix, its messages
are zero outside its own features. In the sum of all messages, the features of a client therefore
show only the contribution of this client. With the algorithm `fedpower`, the sum shows the server's
weight for each client.
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
    """Draw the matrices of the clients.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_clients, samples : int
        Number of clients, and number of rows of each client.
    own : int
        Number of features of each client. The features of client i begin at column ``i * own``.

    Returns
    -------
    list of ndarray of shape (samples, n_clients * own)
    """
    clients = [np.zeros((samples, n_clients * own)) for _ in range(n_clients)]
    for i, client in enumerate(clients):
        client[:, i * own : (i + 1) * own] = rng.standard_normal((samples, own))
    return clients
