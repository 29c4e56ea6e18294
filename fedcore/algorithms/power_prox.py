"""Factorisation S ≈ U Vᵀ with V from the power initialisation and U by regularised local descent.

V comes from Algorithm 1 of Philippenko, Scaman & Massoulié (AAAI 2025; see `power_iteration`), and
is fixed. Every client minimises ``½ ‖Sⁱ − Uⁱ Vᵀ‖²_F + strength · ρ(Uⁱ)`` by proximal gradient steps
of length 1/σ_max(V)². The regulariser ρ is ½‖·‖²_F (``l2``), ‖·‖₁ (``l1``) or the nuclear norm
(``nuclear``). With ``momentum`` the steps are accelerated as in FISTA, with the momentum weights
β_k = k/(k+3). Once the clients have V, the method needs no communication. A step uses VᵀV and SⁱV,
which each client computes once, and does not read the data. The metric ``objective`` is the loss
without the regulariser.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np
import scipy.linalg

from fedcore.algorithms import Algorithm, power_gd
from fedcore.algorithms.power_iteration import COLUMNS, Scaled, communication
from fedcore.federation.federation import Federation
from fedcore.iterates import ExplicitFactors
from fedcore.validation import NonNegative, one_of


def shrink(U: np.ndarray, threshold: float) -> np.ndarray:
    """Return the proximal operator of ``threshold · ½‖·‖²_F`` at U."""
    return U / (1.0 + threshold)


def soft_threshold(U: np.ndarray, threshold: float) -> np.ndarray:
    """Return the proximal operator of ``threshold · ‖·‖₁`` at U."""
    return np.sign(U) * np.maximum(np.abs(U) - threshold, 0.0)


def singular_value_threshold(U: np.ndarray, threshold: float) -> np.ndarray:
    """Return the proximal operator of ``threshold · ‖·‖_*`` (nuclear norm) at U."""
    left, sigma, right_t = scipy.linalg.svd(U, full_matrices=False, check_finite=False)
    return (left * np.maximum(sigma - threshold, 0.0)) @ right_t


PROXIMAL: dict[str, Callable[[np.ndarray, float], np.ndarray]] = {
    "l2": shrink,
    "l1": soft_threshold,
    "nuclear": singular_value_threshold,
}


@dataclass(frozen=True)
class Params(power_gd.Params):
    """Hyper-parameters that proximal descent adds to those of `power_gd`.

    Attributes
    ----------
    penalty : str
        Regulariser ρ: half the squared Frobenius norm (``l2``), the sum of absolute values
        (``l1``), or the nuclear norm (``nuclear``).
    strength : float
        Weight of the regulariser ρ, in the units of the loss.
    """

    penalty: Annotated[str, one_of(PROXIMAL)] = "l2"
    strength: NonNegative = 0.0


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Compute V by the power initialisation, and U by proximal gradient descent at every client.

    Returns
    -------
    dict
        The entries ``V`` and ``exponent`` of `power_iteration`, and ``U`` with one array of shape
        (n_i, n_components) per client.
    """
    found, counts = power_gd.fixed_basis(federation, params)
    V = found.V
    prox = PROXIMAL[params.penalty]

    def start(data: np.ndarray, state: SimpleNamespace, V: np.ndarray) -> None:
        state.U = state.rng.standard_normal((len(data), V.shape[1])) / np.sqrt(len(data))
        state.lookahead = state.U
        # V is divided by 2^e, its order of magnitude, so that no square overflows.
        W, e = Scaled(V).normalised()
        state.SV, state.gram = np.ldexp(data @ W, -e), W.T @ W
        state.step = 1.0 / (float(np.linalg.norm(W, 2)) or 1.0) ** 2
        state.threshold = float(np.ldexp(state.step * params.strength, -2 * e))

    def descend(beta: float) -> Callable[..., None]:
        def step_once(data: np.ndarray, state: SimpleNamespace, message: Any) -> None:
            gradient = state.lookahead @ state.gram - state.SV
            U = prox(state.lookahead - state.step * gradient, state.threshold)
            state.lookahead = U + beta * (U - state.U)
            state.U = U

        return step_once

    def report(k: int) -> None:
        factors = ExplicitFactors(V, federation.observe)
        record(k, factors=factors, counts=counts)

    federation.local(start)
    report(0)
    for k in record.rounds(params.local_steps):
        federation.local(descend((k - 1) / (k + 2) if params.momentum else 0.0))
        report(k)
    return found.output(U=federation.client_state("U"))


ALGORITHM = Algorithm(
    paper="factorization",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    columns=COLUMNS,
    citation="Philippenko, Scaman & Massoulié (AAAI 2025), Remark 3",
    look=("purple", "solid"),
)
