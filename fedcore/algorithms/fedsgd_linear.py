"""FedSGD for linear regression: one representation and one head for all clients.

The method is distributed gradient descent on one representation B and one head w. Client i has m
samples X with labels y. Both gradients are evaluated at the B and w from before the step:

    B ← B − η mean ∇_B fᵢ(B, w),    w ← w − α mean ∇_w fᵢ(B, w),    fᵢ = ‖X B w − y‖² / 2m.

Server and clients send B and w as one matrix, the d×k matrix B with w as an additional last row.
The notebook of Collins, Hassani, Mokhtari & Shakkottai (ICML 2021) leaves XᵀX out of the quadratic
part of the gradient with respect to B; fedcore computes the complete gradient. With
``init="random"`` and without ``start``, the first head w is drawn from N(0, I_k). Otherwise the
first head w is zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.federation.federation import Federation, stacked
from fedcore.federation.ledger import Cost, Shape
from fedcore.parts import representation
from fedcore.parts.representation import Params
from fedcore.problems.clients import Labelled
from fedcore.problems.regression import model_gradient, predict


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run FedSGD.

    Returns
    -------
    dict
        ``V`` is the last representation B, of shape (n_features, n_components). ``head`` is the
        last head w, of shape (n_components,).
    """
    n, k = federation.shape.n_clients, params.n_components
    B = representation.starting_representation(federation, params, rng)
    drawn = params.start is None and params.init == "random"
    model = np.vstack([B, rng.standard_normal(k) if drawn else np.zeros(k)]).astype(B.dtype)

    def report(t: int) -> None:
        record(t, basis=model[:-1], models=np.tile(model[:-1] @ model[-1], (n, 1)))

    report(0)
    for t in record.rounds(params.rounds):
        chosen = params.participants(n, rng)
        federation.broadcast(model, to=chosen)
        model = federation.mean(local_round(params, t), of=chosen)
        report(t)
    return {"V": model[:-1], "head": model[-1]}


def local_round(params: Params, t: int) -> Any:
    """Return the client step of round t = 1, 2, …, which makes one gradient step on B and w."""

    @stacked
    def update(data: Labelled, state: Any, model: np.ndarray) -> np.ndarray:
        X, y = params.batch_of(data, t)
        B, w = model[:-1], model[-1]
        gradient = model_gradient(X, predict(X, B @ w) - y)
        by_row = params.eta * gradient[..., :, None] * w
        by_head = params.head_step * (gradient @ B)[..., None, :]
        return model - np.concatenate([by_row, by_head], axis=-2)

    return update


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run, including the computation of the first B.

    In each round, every participant downloads B and w, and uploads its updated B and w.
    """
    return representation.communication(params, shape, shape.n_features + 1)


ALGORITHM = Algorithm(
    paper="fedrep_linear",
    parameters=Params,
    run=run,
    communication=communication,
    labelled=True,
    citation="The baseline of Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), Section 5.1",
    look=("vermillion", "long-dashed"),
)
