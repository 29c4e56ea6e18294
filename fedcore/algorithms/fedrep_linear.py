"""FedRep for linear regression, and with gradient steps on the heads GD-GD and 10GD-GD.

In every round a share r of the clients take part:

    wᵢ ← argmin_w ‖X B w − y‖² / 2m,    Bᵢ ← B − η ∇_B ‖X B wᵢ − y‖² / 2m,    B ← QR(mean Bᵢ).

With ``head_steps`` τ the head makes τ gradient steps of size α from its last value instead of the
minimisation: τ = 1 is the paper's GD-GD and τ = 10 its 10GD-GD. Heads stay with the clients.

The parameter ``step`` is η σ̄², with ``head_sigma`` = σ̄ = σ_max(W*)/√n if known (``reference``),
so that ``step`` = 1/4 is the largest step of Theorem 1; ``head_sigma`` = 1 makes ``step`` equal to
η. A round uses all samples of a client, as the paper's experiments do. With ``batch`` it uses only
the first ``batch`` samples; with ``fresh`` as well, every round uses the next ``batch`` samples, as
in Algorithm 2 and the theory. Without ``orthonormalise`` the server keeps B as the mean, as in the
authors' notebook; the notebook's *sum* over clients is a mean with r n times the step.
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
    """All parameters of `fedcore.parts.representation`, and the following.

    Attributes
    ----------
    head_steps : int, optional
        τ, gradient steps on the head in a round; when not given, the exact minimiser, of smallest
        norm if there are several.
    orthonormalise : bool
        Whether the server replaces the mean by the Q of its QR factorisation.
    """

    head_steps: Count | None = None
    orthonormalise: bool = True


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run FedRep; see the module's text.

    Returns
    -------
    dict
        ``V``, the last B, of shape (n_features, n_components), and ``heads`` of shape (n_clients,
        n_components).
    """

    def held() -> dict[str, Any]:
        """wᵢ of the clients, for histories that keep them."""
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
    """Client step of round t = 1, 2, …: the head, then one step on the representation."""

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
    """B down and Bᵢ up for every participant and round, and the cost of the start."""
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
