"""FAPS: federated ADMM-like algorithm with projection splitting.

Wang, Liu & Zhang, *Seeking consensus on subspaces in federated principal component analysis*
(JOTA 2024), Algorithm 1. Client i keeps its own basis Xᵢ, which the constraint XᵢXᵢᵀ = ZZᵀ ties to
the server's Z, with a multiplier of low rank that is never formed (15), (16):

    Wᵢ = −P⊥_{Xᵢ} AᵢAᵢᵀ Xᵢ,   Λᵢ = XᵢWᵢᵀ + WᵢXᵢᵀ.

In round k the client improves Xᵢ towards the dominant p-space of ``Hᵢ = AᵢAᵢᵀ + Λᵢ + βᵢ ZZᵀ`` (12)
by inner subspace iterations ``Xᵢ ← orth(Hᵢ Xᵢ)`` from Xᵢ, renews Wᵢ and sends
``Yᵢ = (βᵢ XᵢXᵢᵀ − Λᵢ) Z`` (19); the server takes Z ← orth(Σᵢ Yᵢ).

When the inner iterations end (`inner`) is the method's free parameter. ``relative_change`` is (26),
what the paper's experiments use, with ε_x = 1e−2: once warm it ends after one step, and one step is
no faster than SSI. ``residual`` is (14) of the theory, ``‖P⊥ Hᵢ Xᵢ‖_F`` down by δᵢ or to rounding.
``fixed`` makes `inner_steps`. Exact solves have the rate b/(λ_p − λ_{p+1} + b), b = Σβᵢ, where
clients are alike, and do not settle where clients differ by more than βᵢ, until (25) has raised it.

Left open by the paper: the inner steps have no limit there, here 30; the sufficient decrease (13)
has unnamed constants and is not checked; (26) compares bases, not subspaces, so that QR must fix
signs. Xᵢ⁽⁰⁾ = Z⁽⁰⁾ is an invariant, not the dominant, space of its Hᵢ: round one only turns Xᵢ
(and amplifies rounding), and its message is the bare ``βᵢ Z + P⊥_Z AᵢAᵢᵀ Z``. Since d⁽⁰⁾ = 0, (25)
raises every βᵢ after k = 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.algorithms import ssi
from fedcore.algorithms.ssi import communication as communication
from fedcore.algorithms.ssi import starting_basis
from fedcore.checks import (
    require_at_least,
    require_flag,
    require_non_negative,
    require_one_of,
    require_positive,
)
from fedcore.federation import Federation
from fedcore.linalg import orth, spectral_norm
from fedcore.steps import gram_product

PAPER = "faps"
COLUMNS = {
    "inner_products": ("products", "of AᵢAᵢᵀ with an n×p block, by all clients so far"),
}
RULES = ("relative_change", "residual", "fixed")
PERIOD, MU, THETA = 5, 0.01, 0.1  # of the adaptive penalty (25)


@dataclass(frozen=True)
class Params(ssi.Params):
    """Those of `ssi` (every Xᵢ has p columns, too), and what is this method's own.

    Attributes
    ----------
    inner : {"relative_change", "residual", "fixed"}, default="relative_change"
        When the inner iterations end.
    tolerance : float, default=1e-2
        ε_x of the rule ``relative_change``.
    delta : float, default=0.5
        δᵢ of the rule ``residual``.
    inner_steps : int, default=30
        Inner iterations in a round: all of them for ``fixed``, at most so many for the others.
    beta_factor : float, default=0.15
        βᵢ⁽⁰⁾ / ‖Aᵢ‖₂².
    adapt : bool, default=True
        Raise βᵢ by a tenth where the rule (25), asked every fifth round, says so.
    """

    inner: str = "relative_change"
    tolerance: float = 1e-2
    delta: float = 0.5
    inner_steps: int = 30
    beta_factor: float = 0.15
    adapt: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(1, inner_steps=self.inner_steps)
        require_one_of(RULES, inner=self.inner)
        require_non_negative(tolerance=self.tolerance, delta=self.delta)
        require_positive(beta_factor=self.beta_factor)
        require_flag(adapt=self.adapt)


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Algorithm 1; see the module's text.

    Returns
    -------
    dict
        ``basis`` of shape (n_features, n_components); of every client ``X`` and ``W`` of this
        shape, once there was a round.
    """

    def client(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
        if not hasattr(state, "X"):
            state.X, state.k, state.products = Z, 0, 0
            state.beta = params.beta_factor * spectral_norm(data) ** 2
            _multiply(data, state)
            state.W = _off(state.X, -state.AAX)
        distance = np.sqrt(2.0) * np.linalg.norm(_off(state.X, Z))  # ‖XᵢXᵢᵀ − ZZᵀ‖_F
        _improve(data, state, Z, params)
        Y = state.beta * state.X @ (state.X.T @ Z) - _multiplier(state.X, state.W, Z)
        if params.adapt and state.k % PERIOD == 0:
            if state.k and state.distance <= (1 + MU) * distance:
                state.beta *= 1 + THETA
            state.distance = distance
        state.k += 1
        return Y

    Z = starting_basis(federation, params, rng)
    stop = record(0, basis=Z, counts={"inner_products": 0})
    for k in range(1, params.rounds + 1):
        if stop:
            break
        federation.broadcast(Z)
        Z = orth(federation.sum(client))
        products = sum(federation.client_state("products"))
        stop = record(k, basis=Z, counts={"inner_products": products})
    found: dict[str, Any] = {"basis": Z}
    if federation.ledger.rounds:
        found |= {name: federation.client_state(name) for name in ("X", "W")}
    return found


def _improve(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray, params: Params) -> None:
    """Inner SSI on Hᵢ from Xᵢ, with the Λᵢ of the Xᵢ that the round began with; then Wᵢ."""
    X_k, W_k = state.X, state.W

    def H() -> np.ndarray:
        """Hᵢ times the present Xᵢ."""
        coupling = _multiplier(X_k, W_k, state.X)
        return state.AAX + coupling + state.beta * Z @ (Z.T @ state.X)

    HX = H()
    enough = params.delta * np.linalg.norm(_off(state.X, HX))
    for _ in range(params.inner_steps):
        old, state.X = state.X, orth(HX)
        _multiply(data, state)
        HX = H()
        if params.inner == "relative_change":
            change = np.linalg.norm(state.X - old)
            if change <= params.tolerance * np.linalg.norm(state.X):
                break
        elif params.inner == "residual":
            rounding = 500 * np.finfo(HX.dtype).eps * np.linalg.norm(HX)
            if np.linalg.norm(_off(state.X, HX)) <= max(enough, rounding):
                break
    state.W = _off(state.X, -state.AAX)


def _multiply(data: np.ndarray, state: SimpleNamespace) -> None:
    state.AAX = gram_product(data, state, state.X)
    state.products += 1


def _multiplier(X: np.ndarray, W: np.ndarray, B: np.ndarray) -> np.ndarray:
    """Λ B = X (Wᵀ B) + W (Xᵀ B)."""
    return X @ (W.T @ B) + W @ (X.T @ B)


def _off(X: np.ndarray, B: np.ndarray) -> np.ndarray:
    """P⊥_X B = B − X (Xᵀ B)."""
    return B - X @ (X.T @ B)
