"""Stochastic block model: one adjacency matrix per client, with the same communities for all.

The model is Model II of Guo, Li, Chang, Wang & Zhang, *FedPower: privacy-preserving distributed
eigenspace estimation*. Each of 20 clients has a network with 1000 nodes in two communities and no
loops. With ``W = [[.25, .1], [.1, .25]]``, nodes of communities a and b are joined with probability
``0.8 W_ab`` at the first half of the clients, and ``0.6 W_ab`` at the second half. Every row of the
adjacency matrices is scaled to unit norm. The paper does not give the sizes of the communities; in
fedcore, all communities are equally large, up to rounding. The row of a node without a neighbour
stays zero.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedcore.arrays import floats
from fedcore.errors import InputError
from fedcore.validation import Count, NonNegative, checked, require_valid, whole


@checked
def generate(
    rng: np.random.Generator,
    *,
    n_clients: Count = 20,
    nodes: int = 1000,
    communities: Count = 2,
    within: NonNegative = 0.25,
    between: NonNegative = 0.1,
    scales: Sequence[float] = (0.8, 0.6),
) -> list[np.ndarray]:
    """Draw every client's adjacency matrix, and scale its rows to unit norm.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_clients, nodes, communities : int
        Numbers of clients m, nodes d and communities k. The nodes of a community are consecutive.
    within, between : float
        Diagonal (`within`) and other (`between`) entries of the matrix W of edge probabilities.
    scales : sequence of float
        Numbers by which W is multiplied. The clients are divided as evenly as possible into
        consecutive groups, one group for each number.

    Returns
    -------
    list of ndarray of shape (nodes, nodes)

    Raises
    ------
    InputError
        If a value is out of range, or an edge probability is outside [0, 1].
    """
    require_valid(whole(max(2, communities)), nodes=nodes)
    factors = floats(scales, "scales")
    if factors.ndim != 1 or not len(factors) or not np.isfinite(factors).all():
        raise InputError(f"scales must be a list of finite numbers, got {scales!r}")
    if factors.min() < 0.0 or factors.max() * max(within, between) > 1.0:
        raise InputError(
            "within and between, multiplied by any number of scales (the largest is "
            f"{factors.max():g}), must lie in [0, 1]"
        )
    community = np.arange(nodes) * communities // nodes
    W = np.where(community[:, None] == community[None, :], float(within), float(between))
    parts = np.array_split(np.arange(n_clients), len(scales))
    clients = []
    for scale, part in zip(scales, parts, strict=True):
        probability = float(scale) * W
        for _ in part:
            upper = np.triu(rng.random((nodes, nodes)) < probability, 1)
            matrix = (upper | upper.T).astype(np.float64)
            norms = np.linalg.norm(matrix, axis=1, keepdims=True)
            clients.append(matrix / np.where(norms > 0.0, norms, 1.0))
    return clients
