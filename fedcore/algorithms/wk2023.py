"""Factorisation S ≈ U Vᵀ by distributed alternating gradient descent after Ward and Kolda (2023).

Table 2 of Philippenko, Scaman & Massoulié (AAAI 2025) compares this method with their own. The
first U and V come from Gaussian matrices Φ_U and Φ_V of shape (d, r), the same for all clients.
With the norm σ₁ = ‖S‖₂ of all clients' data S, constants C and μ, step size η = 9/(4 C μ σ₁) and D
= C μ/9, the first factors are:

    Uⁱ₀ = Sⁱ Φ_U / (√η σ₁ C),   V₀ = √η σ₁ D Φ_V.

In every round each client makes a gradient step on Uⁱ with the old V, and sends the gradient of its
loss with respect to V at the new Uⁱ. The server makes a step on V with the sum of the clients'
gradients.

The entries of Φ_U and Φ_V have the *standard deviations* 1/d and 1/r, as in the code of Philippenko
et al. Ward and Kolda take 1/d and 1/r as variances. The parameter ``sigma_max`` is σ₁. If
``sigma_max`` is not given, the clients send ‖Sⁱ‖₂², and the formulas use the upper bound √Σ‖Sⁱ‖₂²
in the place of σ₁.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.federation.federation import Federation, Step
from fedcore.federation.ledger import Cost, Shape
from fedcore.iterates import ExplicitFactors
from fedcore.parts.params import Parameters
from fedcore.validation import CountOrZero, Positive


@dataclass(frozen=True)
class Params(Parameters):
    """Hyper-parameters of alternating gradient descent after Ward and Kolda.

    Attributes
    ----------
    n_components : int
        Rank r of the factorisation.
    rounds : int
        Number of iterations, each with one communication round.
    C, mu : float
        Constants C and μ in the formulas for the first factors and for the step size.
    sigma_max : float, optional
        Largest singular value σ₁ of S, in data units. By default, the method computes an upper
        bound of σ₁ in an additional round, and uses the bound.
    start : ndarray of shape (n_features, n_components), optional
        Matrix Φ_V that determines the first V; by default drawn at random.
    """

    rounds: CountOrZero = 100
    C: Positive = 8.0
    mu: Positive = 0.5
    sigma_max: Positive | None = None

    def step(self, sigma: float) -> float:
        """Return the step size η; `sigma` is the largest singular value of the stacked rows."""
        return 9.0 / (4.0 * self.C * self.mu * sigma)


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Compute U and V by alternating gradient descent.

    Returns
    -------
    dict
        Factor ``V`` of shape (n_features, n_components), and ``U``, one array of shape (n_i,
        n_components) per client.
    """
    d, r = federation.shape.n_features, params.n_components
    sigma = params.sigma_max
    if sigma is None:
        sigma = spectral_norm_bound(federation)
        federation.broadcast(sigma)
        federation.local(hear)
    step = params.step(sigma)
    D = params.C * params.mu / 9.0

    phi_u = rng.standard_normal((d, r)) / d
    phi_v = rng.standard_normal((d, r)) / r if params.start is None else params.start
    V = np.sqrt(step) * sigma * D * phi_v

    def start(data: np.ndarray, state: SimpleNamespace, phi: np.ndarray) -> None:
        sigma = state.sigma if params.sigma_max is None else params.sigma_max
        state.step = params.step(sigma)
        state.U = data @ phi / (np.sqrt(state.step) * sigma * params.C)

    def descend(data: np.ndarray, state: SimpleNamespace, V: np.ndarray) -> np.ndarray:
        state.U = state.U - state.step * (state.U @ (V.T @ V) - data @ V)
        return V @ (state.U.T @ state.U) - data.T @ state.U  # ∇_V ½‖Sⁱ − Uⁱ Vᵀ‖²

    federation.broadcast(phi_u)
    federation.local(start)
    return descent(federation, descend, step, V, params.rounds, record)


def descent(
    federation: Federation, gradient: Step, step: float, V: np.ndarray, rounds: int, record: Any
) -> dict:
    """Run the rounds, which subtract `step` times the sum of the clients' gradients from V.

    The client step `gradient` returns the client's gradient, and also updates the client's
    ``state.U``. The result is a dict of the last ``V`` and ``U``.
    """
    record(0, factors=ExplicitFactors(V, federation.observe))
    for k in record.rounds(rounds):
        federation.broadcast(V)
        V = V - step * federation.sum(gradient)
        record(k, factors=ExplicitFactors(V, federation.observe))
    return {"V": V, "U": federation.client_state("U")}


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run.

    In each round, every client downloads the d×r matrix V and uploads its gradient. Before the
    first round, every client downloads Φ_U and, without `sigma_max`, also uploads and downloads one
    number.
    """
    block = shape.n_clients * shape.n_features * params.n_components
    scalar = params.sigma_max is None
    return Cost(
        rounds=params.rounds + scalar,
        scalars_up=params.rounds * block + scalar * shape.n_clients,
        scalars_down=(params.rounds + 1) * block + scalar * shape.n_clients,
    )


def hear(data: np.ndarray, state: SimpleNamespace, sigma: float) -> None:
    """Client step: store the upper bound of σ₁ that the server has sent."""
    state.sigma = float(sigma)


def spectral_norm_bound(federation: Federation) -> float:
    """Return √Σ‖Sⁱ‖₂², an upper bound of ‖S‖₂, from one number per client."""

    def squared_norm(data: np.ndarray, state: SimpleNamespace, message: Any) -> float:
        return float(np.linalg.norm(data, 2) ** 2)

    return float(np.sqrt(federation.sum(squared_norm)))


ALGORITHM = Algorithm(
    paper="factorization",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    citation=(
        "Ward & Kolda, *Convergence of alternating gradient descent for matrix factorization* "
        "(NeurIPS 2023)"
    ),
    look=("green", "solid"),
)
