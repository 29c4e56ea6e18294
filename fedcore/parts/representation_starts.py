"""Starting representations B⁰ of linear regressions with a shared representation.

``moments``
    The k leading eigenvectors of ``(1/n) Σᵢ Zᵢ``, ``Zᵢ = (1/m) Σⱼ y² x xᵀ`` (Collins et al.,
    Algorithm 2): one round, d² numbers up from every client.
``pgd``
    Projected gradient descent on the coefficients of all clients, one row each, without factors (Tu
    et al. 2016, Algorithm 1, which Collins et al. name in Appendix A.1): ``init_rounds`` times a
    gradient step on every row and the projection to rank k. A client sends its row, d numbers, and
    projects it itself with the k leading right singular vectors that come back, so that B⁰ are the
    last of these and its first head is what they leave of its row.
``random``
    B⁰ orthonormalises a Gaussian matrix; heads start from N(0, s² I_k), each client its own, with
    s = ``init_heads``.

A given start is orthonormalised. With it, and with ``moments``, heads start from zero. Where a
round takes a batch of the samples, a start takes the first one, which ``fresh`` rounds do not use
again.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.errors import InputError
from fedcore.federation.federation import Federation, stacked
from fedcore.federation.ledger import Cost, Shape
from fedcore.linalg import haar, orth, top_eigenvectors
from fedcore.problems.clients import Labelled
from fedcore.problems.regression import model_gradient, predict

METHODS = ("moments", "pgd", "random")


def starting_representation(
    federation: Federation, params: Any, rng: np.random.Generator
) -> np.ndarray:
    """B⁰, shape (d, k), by ``params.init``; leaves the clients' first heads in ``state.w``."""
    k = params.n_components
    if params.start is None and params.init == "pgd":
        return _projected_descent(federation, params)

    def at_zero(data: Labelled, state: Any, message: Any) -> None:
        state.w = np.zeros((*data.X.shape[:-2], k), data.X.dtype)

    def gaussian(data: Labelled, state: SimpleNamespace, message: Any) -> None:
        state.w = (params.init_heads * state.rng.standard_normal(k)).astype(data.X.dtype)

    @stacked
    def moments(data: Labelled, state: Any, message: Any) -> np.ndarray:
        X, y = params.batch_of(data, 0)
        return np.swapaxes((y**2)[..., None] * X, -1, -2) @ X / X.shape[-2]

    if params.start is None and params.init == "random":
        federation.local(gaussian)
        return haar(federation.shape.n_features, k, rng)
    federation.local(stacked(at_zero))
    if params.start is not None:
        return orth(params.start)
    return top_eigenvectors(federation.mean(moments), k)


def communication(params: Any, shape: Shape) -> Cost:
    """What `starting_representation` costs."""
    n, d, k = shape.n_clients, shape.n_features, params.n_components
    if params.start is not None or params.init == "random":
        return Cost(0, 0, 0)
    if params.init == "moments":
        return Cost(1, n * d * d, 0)
    rounds = params.init_rounds
    return Cost(rounds, rounds * n * d, rounds * n * d * k)


def _projected_descent(federation: Federation, params: Any) -> np.ndarray:
    """Every client holds a row θ of the matrix; the server turns rows into a subspace."""

    @stacked
    def first_step(data: Labelled, state: Any, message: Any) -> np.ndarray:
        X, y = params.batch_of(data, 0)
        state.theta = params.init_step * model_gradient(X, y)  # from θ = 0
        return state.theta

    @stacked
    def step(data: Labelled, state: Any, V: np.ndarray) -> np.ndarray:
        X, y = params.batch_of(data, 0)
        theta = (state.theta @ V) @ V.T
        gradient = model_gradient(X, predict(X, theta) - y)
        state.theta = theta - params.init_step * gradient
        return state.theta

    @stacked
    def first_head(data: Labelled, state: Any, V: np.ndarray) -> None:
        state.w = state.theta @ V

    n, k = federation.shape.n_clients, params.n_components
    if n < k:
        raise InputError(
            f"init: pgd takes {k} directions from a row of each client and needs at least {k} "
            f"clients, got {n}; take moments or random"
        )
    for t in range(params.init_rounds):
        rows = np.asarray(federation.gather(step if t else first_step))
        V = top_eigenvectors(rows.T @ rows, k)
        federation.broadcast(V)
    federation.local(first_head)
    return V
