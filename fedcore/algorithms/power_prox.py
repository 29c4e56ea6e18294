"""Power initialisation and regularised local descent on U.

Philippenko, Scaman & Massoulié (AAAI 2025), Remark 3: with V from Algorithm 1 fixed, every client
minimises ``½ ‖Sⁱ − Uⁱ Vᵀ‖²_F + strength · ρ(Uⁱ)`` with ρ = ½‖·‖²_F (``l2``), ‖·‖₁ (``l1``) or the
nuclear norm (``nuclear``), by proximal gradient steps of length 1/σ_max(V)², accelerated with β_k =
k/(k+3) if asked for (FISTA). No communication after V; nothing but VᵀV and SⁱV enters a step, so
that no step passes over the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.linalg

from fedcore.algorithms import power_gd
from fedcore.algorithms.power_iteration import power_initialisation
from fedcore.checks import require_non_negative, require_one_of
from fedcore.factors import ExplicitFactors
from fedcore.federation import Federation
from fedcore.linalg import orth

PAPER = "factorization"


def shrink(U: np.ndarray, threshold: float) -> np.ndarray:
    """Proximal operator of ``threshold · ½‖U‖²_F``."""
    return U / (1.0 + threshold)


def soft_threshold(U: np.ndarray, threshold: float) -> np.ndarray:
    """Proximal operator of ``threshold · ‖U‖₁``."""
    return np.sign(U) * np.maximum(np.abs(U) - threshold, 0.0)


def singular_value_threshold(U: np.ndarray, threshold: float) -> np.ndarray:
    """Proximal operator of ``threshold · ‖U‖_*``."""
    left, sigma, right_t = scipy.linalg.svd(U, full_matrices=False, check_finite=False)
    return (left * np.maximum(sigma - threshold, 0.0)) @ right_t


PROXIMAL: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "l2": shrink,
    "l1": soft_threshold,
    "nuclear": singular_value_threshold,
}


@dataclass(frozen=True)
class Params(power_gd.Params):
    """Those of `power_gd`, and the regulariser.

    Attributes
    ----------
    penalty : {"l2", "l1", "nuclear"}, default="l2"
        ρ.
    strength : float, default=0
        Weight of the regulariser, in the units of the loss.
    """

    penalty: str = "l2"
    strength: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_of(PROXIMAL, penalty=self.penalty)
        require_non_negative(strength=self.strength)


communication = power_gd.communication


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run proximal gradient descent; see the module's text.

    Returns
    -------
    dict
        ``V`` of shape (n_features, n_components) and ``U``, one (n_i, n_components) per client.
    """
    V = power_initialisation(federation, params)
    V = orth(V) if params.orthonormalise else V
    federation.broadcast(V)
    prox = PROXIMAL[params.penalty]

    def start(data: np.ndarray, state: SimpleNamespace, V: np.ndarray) -> None:
        state.U = state.rng.standard_normal((len(data), V.shape[1])) / np.sqrt(len(data))
        state.lookahead = state.U
        state.SV, state.gram = data @ V, V.T @ V
        state.step = 1.0 / float(np.linalg.norm(V, 2)) ** 2

    def descend(beta: float) -> Callable[..., None]:
        def step_once(data: np.ndarray, state: SimpleNamespace, message: Any) -> None:
            gradient = state.lookahead @ state.gram - state.SV
            U = prox(state.lookahead - state.step * gradient, state.step * params.strength)
            state.lookahead = U + beta * (U - state.U)
            state.U = U

        return step_once

    federation.local(start)
    for k in range(params.local_steps + 1):
        stop = record(k, factors=ExplicitFactors(V, federation.client_state("U")))
        if stop or k == params.local_steps:
            break
        federation.local(descend(k / (k + 3) if params.momentum else 0.0))
    return {"V": V, "U": federation.client_state("U")}
