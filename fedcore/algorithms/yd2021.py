"""Factorisation S ≈ U Vᵀ by distributed simultaneous gradient descent after Ye and Du (2021).

Table 2 of Philippenko, Scaman & Massoulié (AAAI 2025) compares this method with their own. The
method begins with small random U and V of scale s. An iteration makes the steps ``U ← U − η ∇_U F``
and ``V ← V − η ∇_V F`` on the loss F = ½‖S − UVᵀ‖²_F, with both gradients at the old U and V. The
theory's step size η is so small that the loss hardly changes in a feasible number of rounds.
Philippenko et al. print the number of iterations that the theory needs. The function
`iterations_of_theory` computes this number.

The code of Philippenko et al. starts from Ward and Kolda's initialisation (see `wk2023`). In each
step, that code sums the gradient without naming an axis, and therefore subtracts the *sum of all
entries* of the gradient from V. The method in fedcore starts as Ye and Du do, and subtracts the
gradient itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.algorithms.wk2023 import descent
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.parts.params import Parameters
from fedcore.validation import CountOrZero, Positive, one_of

READINGS = ("aaai", "head")


def _known_spectrum(S: np.ndarray, r: int) -> dict[str, float]:
    sigma = np.linalg.svd(S, compute_uv=False)
    return {"sigma_max": float(sigma[0]), "sigma_r": float(sigma[r - 1])}


@dataclass(frozen=True)
class Params(Parameters):
    """Hyper-parameters of simultaneous gradient descent after Ye and Du.

    Attributes
    ----------
    n_components : int
        Rank r of the factorisation.
    sigma_max : float
        Largest singular value of S, in data units. `sigma_max` and `sigma_r` determine the step
        size and the scale of the first U and V.
    sigma_r : float
        The r-th singular value of S, in data units.
    reading : str
        Version of the theory's constants: ``aaai`` as printed by Philippenko et al., or ``head`` as
        in their later code (see `constants`).
    rounds : int
        Number of iterations, each with one communication round.
    start : ndarray of shape (n_features, n_components), optional
        The first V; by default drawn at random.
    """

    sigma_max: Positive
    sigma_r: Positive
    reading: Annotated[str, one_of(READINGS)] = "aaai"
    rounds: CountOrZero = 100


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Compute U and V by simultaneous gradient descent.

    Returns
    -------
    dict
        Factor ``V`` of shape (n_features, n_components), and ``U``, one array of shape (n_i,
        n_components) per client.
    """
    n, d, r = federation.shape.n_samples, federation.shape.n_features, params.n_components
    scale, step = constants(params.sigma_max, params.sigma_r, n, d, r, reading=params.reading)
    V = scale * rng.standard_normal((d, r)) if params.start is None else params.start

    def start(data: np.ndarray, state: SimpleNamespace, message: Any) -> None:
        state.U = scale * state.rng.standard_normal((len(data), r))

    def descend(data: np.ndarray, state: SimpleNamespace, V: np.ndarray) -> np.ndarray:
        gradient = V @ (state.U.T @ state.U) - data.T @ state.U
        state.U = state.U - step * (state.U @ (V.T @ V) - data @ V)
        return gradient

    federation.local(start)
    return descent(federation, descend, step, V, params.rounds, record)


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run.

    In each iteration, every client downloads the d×r matrix V and uploads its gradient.
    """
    block = shape.n_clients * shape.n_features * params.n_components
    return Cost(params.rounds, params.rounds * block, params.rounds * block)


def constants(
    sigma_max: float, sigma_r: float, n: int, d: int, r: int, *, reading: str
) -> tuple[float, float]:
    """Return the scale s of the first U and V, and the step size η, in Ye and Du's theorem.

    The formulas are ``s = σ_r / (√(σ₁ r³) (d + n))`` and ``η = σ_r s² / (m σ₁³)``. With
    ``reading="aaai"`` m is d, as in Table 2 of Philippenko, Scaman & Massoulié (AAAI 2025). With
    ``reading="head"`` m is r, as in their later code.

    Parameters
    ----------
    sigma_max, sigma_r : float
        Singular values σ₁ and σ_r of S.
    n, d, r : int
        Number of samples, number of features, and rank.
    reading : {"aaai", "head"}

    Returns
    -------
    scale, step : float
    """
    shift = 512 * round(math.frexp(sigma_max)[1] / 512)  # σ₁³ may leave the range, η does not
    sigma_max, sigma_r = math.ldexp(sigma_max, -shift), math.ldexp(sigma_r, -shift)
    scale = sigma_r / (np.sqrt(sigma_max * r**3) * (d + n))
    step = sigma_r * scale**2 / ({"aaai": d, "head": r}[reading] * sigma_max**3)
    return np.ldexp(scale, shift // 2), np.ldexp(step, -shift)


def iterations_of_theory(
    sigma_max: float, sigma_r: float, n: int, d: int, r: int, *, reading: str, error: float = 1.0
) -> float:
    """Return the number of iterations after which Ye and Du's theorem bounds the loss by `error`.

    With ``reading="aaai"`` the number is ``T = [ln(d σ_r / s) + ln σ_r] / (η σ_r)``, independent of
    `error`. With ``reading="head"`` the number is ``T = ln(r σ_r² / (s · error)) / (η σ_r)``. Here
    s and η are the results of `constants`, which explains all parameters except `error`.
    """
    scale, step = constants(sigma_max, sigma_r, n, d, r, reading=reading)
    log_term = {
        "aaai": np.log(d * sigma_r / scale) + np.log(sigma_r),
        "head": np.log(r * sigma_r**2 / (scale * error)),
    }[reading]
    return float(log_term / (step * sigma_r))


ALGORITHM = Algorithm(
    paper="factorization",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    case={"needs": _known_spectrum, "clients_draw_start": True},
    citation=(
        "Ye & Du, *Global convergence of gradient descent for asymmetric low-rank matrix "
        "factorization* (NeurIPS 2021)"
    ),
    look=("sky", "solid"),
)
