"""FedRep for linear regression, with its variants GD-GD and 10GD-GD.

The method is Algorithm 2 of Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), here called the
paper. In every round a share r of the clients takes part. Participant i with m samples X and labels
y fits its head wᵢ, and makes a gradient step on the shared representation B:

    wᵢ ← argmin_w ‖X B w − y‖² / 2m,    Bᵢ ← B − η ∇_B ‖X B wᵢ − y‖² / 2m,    B ← QR(mean Bᵢ).

If ``head_steps`` = τ is given, the client does not minimise over wᵢ, but makes τ gradient steps of
size α from its last wᵢ. The paper calls the method GD-GD for τ = 1, and 10GD-GD for τ = 10. The
heads never leave the clients.

The parameter ``step`` is η σ̄², where ``head_sigma`` is σ̄. Let W* be the matrix of the n clients'
true heads. With σ̄ = σ_max(W*)/√n, the largest value that the paper's Theorem 1 allows is ``step``
= 1/4. In configuration files, ``head_sigma: reference`` stands for this σ̄ of the true heads. With
``head_sigma`` = 1, ``step`` is equal to η.

By default a round uses all samples of a client, as the paper's experiments do. With ``batch`` a
round uses only the first ``batch`` samples of each client. With ``batch`` and ``fresh`` every round
uses the next ``batch`` samples, as in the paper's Algorithm 2 and theory. Without
``orthonormalise`` the server takes the mean of the Bᵢ itself as B, as in the authors' notebook. The
notebook takes the *sum* of the gradients of the r n participants, which is the same as their mean
with a step r n times as long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.federation.federation import Federation, stacked
from fedcore.federation.ledger import Cost, Shape
from fedcore.linalg import orth
from fedcore.parts import representation
from fedcore.parts.representation import local_models
from fedcore.problems.clients import Labelled
from fedcore.problems.regression import least_squares, model_gradient, predict
from fedcore.validation import Count


@dataclass(frozen=True)
class Params(representation.Params):
    """Hyper-parameters that FedRep adds to those of `fedcore.parts.representation.Params`.

    Attributes
    ----------
    head_steps : int, optional
        Number τ of gradient steps on the head in a round. By default the head is the exact
        least-squares solution, of smallest norm if there are several.
    orthonormalise : bool
        If true, the server orthonormalises the mean of the participants' representations by a QR
        factorisation.
    """

    head_steps: Count | None = None
    orthonormalise: bool = True


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run FedRep.

    Returns
    -------
    dict
        ``V`` is the last representation B, of shape (n_features, n_components). ``heads``, of shape
        (n_clients, n_components), has one client's head in each row.
    """

    def held() -> dict[str, Any]:
        """Return the clients' heads wᵢ, for history files that store them."""
        return {"w": federation.client_state("w")}

    B = representation.starting_representation(federation, params, rng)
    record(0, basis=B, models=local_models(federation, B), clients=held)
    for t in record.rounds(params.rounds):
        chosen = params.participants(federation.shape.n_clients, rng)
        federation.broadcast(B, to=chosen)
        B = federation.mean(local_round(params, t), of=chosen)
        if params.orthonormalise and np.isfinite(B).all():
            B = orth(B)
        record(t, basis=B, models=local_models(federation, B), clients=held)
    return {"V": B, "heads": np.array(federation.client_state("w"))}


def local_round(params: Params, t: int) -> Any:
    """Return the client step of round t = 1, 2, …, which updates first the head, then B."""

    @stacked
    def update(data: Labelled, state: Any, B: np.ndarray) -> np.ndarray:
        X, y = params.batch_of(data, t)
        A = X @ B
        if params.head_steps is None:
            w = least_squares(A, y)
        else:
            w = state.w
            for _ in range(params.head_steps):
                w = w - params.head_step * model_gradient(A, predict(A, w) - y)
        state.w = w
        gradient = model_gradient(X, predict(A, w) - y)
        return B - params.eta * gradient[..., :, None] * w[..., None, :]

    return update


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run, including the computation of the first B.

    In each round, every participant downloads B and uploads its updated Bᵢ.
    """
    return representation.communication(params, shape, shape.n_features)


ALGORITHM = Algorithm(
    paper="fedrep_linear",
    parameters=Params,
    run=run,
    communication=communication,
    labelled=True,
    citation=(
        "Collins, Hassani, Mokhtari & Shakkottai, *Exploiting shared representations for "
        "personalized federated learning* (ICML 2021), Algorithm 2"
    ),
    look=("blue", "long-dashed"),
)
