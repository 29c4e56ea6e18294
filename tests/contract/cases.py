"""What the contract suite must be told about each algorithm, as a small table.

An algorithm that needs only ``n_components`` is covered by the general tests without an entry; the
tests against an oracle fail, with a sentence that names this file, until it has one. The oracles
are the methods written down in the plainest form, on the stacked matrix, with NumPy alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Found = tuple[np.ndarray, np.ndarray | None]  # V, and U of all clients stacked


class Draws:
    """The random streams that a federation promises: the server's, and one per client id."""

    def __init__(self, seed: int, n_clients: int) -> None:
        self.server = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(0,)))
        self.clients = [
            np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1, i)))
            for i in range(n_clients)
        ]

    def gaussian(self, clients: list[np.ndarray], r: int) -> list[np.ndarray]:
        return [g.standard_normal((len(s), r)) for g, s in zip(self.clients, clients, strict=True)]


Oracle = Callable[[list[np.ndarray], Draws, Any], Found]


@dataclass(frozen=True)
class Case:
    """One line of the table.

    Attributes
    ----------
    oracle : callable, optional
        ``(clients, draws, params) -> (V, U)`` in direct form.
    floor : callable, optional
        ``(S, r) -> params`` with which the method must reach the Eckart–Young floor.
    needs : callable
        ``(S, r) -> params`` without a default, and those that make the result depend on S alone.
    settings : tuple of mapping
        What to vary where communication and oracle are compared.
    random : bool
        Whether another seed gives another result.
    local_start : bool
        Whether clients draw what V depends on even when `start` is given.
    refused : mapping
        Values out of range that no type can tell.
    """

    oracle: Oracle | None = None
    floor: Callable[[np.ndarray, int], dict[str, Any]] | None = None
    needs: Callable[[np.ndarray, int], dict[str, Any]] = lambda S, r: {}
    settings: tuple[Mapping[str, Any], ...] = ({},)
    random: bool = True
    local_start: bool = False
    refused: tuple[tuple[str, Any], ...] = ()


def singular_vectors(clients: list[np.ndarray], draws: Draws, params: Any) -> Found:
    """The leading right singular vectors of the stack, by NumPy's SVD."""
    return np.linalg.svd(np.vstack(clients))[2][: params.n_components].T, None


def sketch(clients: list[np.ndarray], draws: Draws, params: Any) -> Found:
    """``(SᵀS)^α Sᵀ Φ`` for every draw of Φ, and the best-conditioned of them."""
    S = np.vstack(clients)
    sketches = [
        S.T
        @ (
            np.vstack(draws.gaussian(clients, params.n_components))
            if params.start is None
            else S @ params.start
        )
        for _ in range(params.samples)
    ]
    power = np.linalg.matrix_power(S.T @ S, params.power)
    if params.select == "initial":
        return power @ min(sketches, key=np.linalg.cond), None
    return min((power @ V for V in sketches), key=np.linalg.cond), None


def least_squares(clients: list[np.ndarray], draws: Draws, params: Any) -> Found:
    """``Û = S V (VᵀV)† = S (V†)ᵀ``."""
    V, _ = sketch(clients, draws, params)
    return V, np.vstack(clients) @ np.linalg.pinv(V).T


def gradient_descent(clients: list[np.ndarray], draws: Draws, params: Any) -> Found:
    """``U ← Ũ − γ (Ũ Vᵀ − S) V`` with Ũ = U or Nesterov's point, then the prox if there is one."""
    V, _ = sketch(clients, draws, params)
    V = np.linalg.qr(V)[0] if params.orthonormalise else V
    step = 1 / np.linalg.svd(V)[1][0] ** 2
    found = []
    for S, gaussian in zip(clients, draws.gaussian(clients, params.n_components), strict=True):
        U = point = gaussian / np.sqrt(len(S))
        for k in range(params.local_steps):
            new = point - step * (point @ V.T - S) @ V
            if getattr(params, "strength", 0):
                new = prox(new, step * params.strength, params.penalty)
            point = new + (k / (k + 3) if params.momentum else 0) * (new - U)
            U = new
        found.append(U)
    return V, np.vstack(found)


def prox(U: np.ndarray, weight: float, penalty: str) -> np.ndarray:
    """Minimiser of ``½‖X − U‖² + weight · penalty(X)``."""
    if penalty == "l2":
        return U / (1 + weight)
    if penalty == "l1":
        return np.where(np.abs(U) > weight, U - weight * np.sign(U), 0)
    left, sigma, right_t = np.linalg.svd(U, full_matrices=False)
    return left @ np.diag(np.clip(sigma - weight, 0, None)) @ right_t


def alternating_descent(clients: list[np.ndarray], draws: Draws, params: Any) -> Found:
    """Ward and Kolda: a step on U at the old V, then a step on V at the new U."""
    S, r = np.vstack(clients), params.n_components
    sigma = params.sigma_max or np.sqrt(sum(np.linalg.svd(s)[1][0] ** 2 for s in clients))
    step = 9 / (4 * params.C * params.mu * sigma)
    phi_u = draws.server.standard_normal((S.shape[1], r)) / S.shape[1]
    phi_v = draws.server.standard_normal((S.shape[1], r)) / r if params.start is None else None
    phi_v = params.start if phi_v is None else phi_v
    U = S @ phi_u / (np.sqrt(step) * sigma * params.C)
    V = np.sqrt(step) * sigma * (params.C * params.mu / 9) * phi_v
    for _ in range(params.rounds):
        U = U - step * (U @ V.T - S) @ V
        V = V - step * (U @ V.T - S).T @ U
    return V, U


def simultaneous_descent(clients: list[np.ndarray], draws: Draws, params: Any) -> Found:
    """Ye and Du: both gradients at the old point."""
    S, r = np.vstack(clients), params.n_components
    (n, d), high, low = S.shape, params.sigma_max, params.sigma_r
    scale = low / (np.sqrt(high * r**3) * (d + n))
    step = low * scale**2 / ((d if params.reading == "aaai" else r) * high**3)
    V = scale * draws.server.standard_normal((d, r)) if params.start is None else params.start
    U = scale * np.vstack(draws.gaussian(clients, r))
    for _ in range(params.rounds):
        residual = U @ V.T - S
        U, V = U - step * residual @ V, V - step * residual.T @ U
    return V, U


def known_norm(S: np.ndarray, r: int) -> dict[str, Any]:
    return {"sigma_max": float(np.linalg.svd(S)[1][0])}


def known_spectrum(S: np.ndarray, r: int) -> dict[str, Any]:
    sigma = np.linalg.svd(S)[1]
    return {"sigma_max": float(sigma[0]), "sigma_r": float(sigma[r - 1])}


def practical_step(S: np.ndarray, r: int) -> dict[str, Any]:
    """σ₁ and σ_r that make the theory's formulas give the scale 0.1 and the step 0.2/‖S‖.

    ``s = σ_r / (√σ₁ K)`` and ``η = σ_r s² / (d σ₁³)``, K = r^{3/2}(d + n), solved for σ₁ and σ_r.
    """
    (n, d), scale, step = S.shape, 0.1, 0.2 / np.linalg.svd(S)[1][0]
    K = r**1.5 * (d + n)
    high = (scale**3 * K / (d * step)) ** 0.4
    return {"sigma_max": high, "sigma_r": scale * K * np.sqrt(high), "rounds": 3000}


POWERS: tuple[dict[str, Any], ...] = (
    {},
    {"power": 1},
    {"power": 2},
    {"samples": 3},
    {"samples": 3, "power": 2, "select": "initial"},
    {"samples": 3, "power": 2, "select": "final"},
)
DESCENTS: tuple[dict[str, Any], ...] = (
    {"local_steps": 0},
    {"local_steps": 7, "power": 1},
    {"local_steps": 20, "momentum": True},
    {"local_steps": 5, "orthonormalise": True, "power": 2},
    {"local_steps": 5, "samples": 3, "power": 2, "select": "final"},
)
ONE_STEP = {"orthonormalise": True, "local_steps": 1}  # Remark 4: κ = 1

CASES = {
    "centralized_svd": Case(singular_vectors, lambda S, r: {}, random=False),
    # (σ₄/σ₃)^(2·12+1) = 7e-23 of the data used here: range(V) is the top space to rounding.
    "power_iteration": Case(sketch, lambda S, r: {"power": 12}, settings=POWERS),
    "power_exact": Case(least_squares, lambda S, r: {"power": 12}, settings=POWERS),
    "power_gd": Case(
        gradient_descent, lambda S, r: {"power": 12, **ONE_STEP}, settings=POWERS[:3] + DESCENTS
    ),
    "power_prox": Case(
        gradient_descent,
        lambda S, r: {"power": 12, **ONE_STEP},
        settings=(
            *DESCENTS,
            {"local_steps": 9, "strength": 0.7, "penalty": "l2"},
            {"local_steps": 9, "strength": 0.7, "penalty": "l1", "momentum": True},
            {"local_steps": 9, "strength": 0.7, "penalty": "nuclear", "momentum": True},
        ),
        refused=(("strength", -1.0),),
    ),
    "wk2023": Case(
        alternating_descent,
        lambda S, r: {"rounds": 3000},
        needs=known_norm,
        settings=({"rounds": 0}, {"rounds": 12}, {"rounds": 5, "sigma_max": None}),
        refused=(("C", 0.0), ("mu", -0.5), ("sigma_max", 0.0)),
    ),
    "yd2021": Case(
        simultaneous_descent,
        practical_step,
        needs=known_spectrum,
        settings=({"rounds": 0}, {"rounds": 6}, {"rounds": 6, "reading": "head"}),
        local_start=True,
        refused=(("sigma_max", 0.0), ("sigma_r", -1.0)),
    ),
}


def case_of(name: str) -> Case:
    """Entry of an algorithm; the general one for those that need none."""
    return CASES.get(name, Case())
