"""FAPS: federated ADMM-like algorithm with projection splitting.

The method is Algorithm 1 of Wang, Liu & Zhang (JOTA 2024), here called the paper. A number in
parentheses, such as (12), refers to an equation or rule of the paper. The samples of client i are
the columns of Aᵢ. The client keeps its own basis Xᵢ, and the constraint XᵢXᵢᵀ = ZZᵀ ties Xᵢ to the
server's basis Z. The Lagrange multiplier Λᵢ of the constraint is a matrix of low rank. No client
forms Λᵢ, because a matrix Wᵢ determines it by (15) and (16):

    Wᵢ = −P⊥_{Xᵢ} AᵢAᵢᵀ Xᵢ,   Λᵢ = XᵢWᵢᵀ + WᵢXᵢᵀ,   P⊥_X = I − XXᵀ.

In each round the client iterates from Xᵢ towards the dominant p-dimensional eigenspace of
``Hᵢ = AᵢAᵢᵀ + Λᵢ + βᵢ ZZᵀ`` (12). The client then updates Wᵢ and sends ``Yᵢ = (βᵢ XᵢXᵢᵀ − Λᵢ) Z``
(19). The server takes Z ← orth(Σᵢ Yᵢ).

The rate, the factor by which the error changes in a round, depends on how accurately the clients
find the dominant eigenspace. The parameters `inner` and `solver` determine this accuracy. Let b =
Σβᵢ be the sum of the penalties, and g = λ_p − λ_{p+1} the gap of the eigenvalues of Σ AᵢAᵢᵀ. If all
clients have equal data and find the eigenspace exactly, the rate close to the solution is b/(b +
g). With q steps of the solver ``power``, the rate is ``(b + g cᵠ)/(b + g)``, where c = λ_{p+1}/(λ_p
+ b). With a single step (q = 1), FAPS is slower than simultaneous subspace iteration (SSI), whose
rate is 1 − g/λ_p. If the clients' matrices AᵢAᵢᵀ differ by more than βᵢ, the method with exact
solutions does not converge until the adaptive rule (25) has raised βᵢ.

With ``inner_start="server"`` the inner iteration, in which a client improves Xᵢ, starts from Z
instead of Xᵢ. Let e_X and e_Z be the parts of Xᵢ and Z along an eigenvector beyond the p leading
ones, and let g now be the gap to this eigenvector's eigenvalue. By (19), e_Z = (1 − g/b) e_X, so Z
is nearer to the solution than Xᵢ. An exact solution replaces e_X by (g e_X + b e_Z)/(b + g) = b/(b
+ g) e_X. After q steps from Z, a share cᵠ of the difference between e_Z and the exact solution is
left. The rate of q steps is therefore ``1 − g/b + (1 − cᵠ) g²/(b (b + g))``. If g is small, the
rate is about 1 − g/b for every q, which is λ_p/b times as fast as SSI. For q = 1 the rate is 1 −
g/b + g²/(b (λ + b)), where λ is one of the p leading eigenvalues. Over all gaps g, the least rate
for q = 1 is 1 − (λ + b)/(4 b). This rate is above −1 if b > λ/7. With a single step, the method
therefore converges only if b > λ₁/7.

The paper states neither a limit on the inner steps nor the constants of rule (13). In fedcore the
limit is `inner_steps`, and the constants are c₁ = 1/2 and c₁' = 1. Stopping rule (26) compares
bases and not subspaces. When this rule stops therefore depends on the `signs` of the QR
factorisation. Rule (25), applied in every fifth round, raises βᵢ unless the distance between Xᵢ and
Z has fallen by about 1 % since the rule was last applied. Because Xᵢ = Z at first, the distance is
0 in round k = 0, and rule (25) always raises βᵢ in round k = 5.

The starting basis Xᵢ⁽⁰⁾ = Z⁽⁰⁾ spans an invariant space of Hᵢ, but not the dominant one. In exact
arithmetic the first round only rotates the basis Xᵢ, and the client sends ``βᵢ Z + P⊥_Z AᵢAᵢᵀ Z``.
The invariant space is unstable: while the basis rotates, rule (26) continues the inner steps, which
amplify rounding errors geometrically. With rule (26) the number of rounds therefore depends on the
rounding of Z⁽⁰⁾, on the number of threads and on the CPU. With rule (14) the number of rounds does
not depend on rounding, because in the first round the rule finds a residual of zero and stops at
once. Experiments with the option ``twin: rounding`` measure the effect of rounding by a second run,
whose Z⁽⁰⁾ differs by one rounding (see `fedcore.experiments.twins`).

A client step (a function that runs at a client) works on a stack of bases: either those of one
client in several runs, or those of several clients with equally many samples. The p vectors of a
basis are stored as rows, so a stack has the shape (…, p, n).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from fedcore.algorithms import Algorithm, ssi
from fedcore.algorithms.ssi import communication, starting_basis
from fedcore.federation.execution import of_runs
from fedcore.federation.federation import Federation, stacked
from fedcore.linalg import orth, spectral_norm
from fedcore.parts.eigensolvers import (
    RULES,
    SIGNS,
    SOLVERS,
    Limits,
    iterate,
    norm,
    outside,
    transposed,
)
from fedcore.parts.gram_products import LocalProducts, local_products
from fedcore.validation import Count, NonNegative, Positive, one_of

COLUMNS = {
    "inner_products": ("products", "of AᵢAᵢᵀ with an n×p block, by all clients so far"),
    "penalty": ("data units squared", "Σᵢ βᵢ after the round, 0 before the first"),
}
NORMS: dict[str, Any] = {"spectral": spectral_norm, "frobenius": np.linalg.norm}
INNER_STARTS = ("client", "server")
PERIOD, MU, THETA = 5, 0.01, 0.1  # of the adaptive penalty (25)


@dataclass(frozen=True)
class Params(ssi.Rounds):
    """Hyper-parameters that FAPS adds to those of `ssi.Rounds`.

    Attributes
    ----------
    inner : str
        Rule that ends the inner iteration, in which client i improves its basis Xᵢ with the matrix
        Hᵢ of equation (12). ``relative_change`` stops by rule (26) of Wang, Liu & Zhang, when the
        basis changes by at most ε_x times its norm. ``subspace_change`` applies rule (26) to
        projections instead of bases. ``residual`` stops by rule (14), when the residual ``‖(I −
        XᵢXᵢᵀ) HᵢXᵢ‖_F`` is at most δᵢ times its first value, or as small as rounding errors.
        ``decrease`` stops by rule (13), when ``tr XᵢᵀHᵢXᵢ`` has grown by the amount that the rule
        requires. ``fixed`` always makes `inner_steps` steps.
    tolerance : float
        Threshold ε_x of ``relative_change`` and ``subspace_change``.
    delta : float
        Factor δᵢ of the rule ``residual``.
    inner_steps : int
        Largest number of inner iterations in a round, and the exact number with the rule ``fixed``.
    solver : str
        Name of the solver of the inner iteration, a key of ``SOLVERS`` in
        `fedcore.parts.eigensolvers`.
    signs : str
        Rule for the signs of the columns of Xᵢ. ``positive`` makes diag(R) ≥ 0 in the QR
        factorisations of the inner iteration, and ``arbitrary`` keeps the signs of LAPACK.
    inner_start : str
        Basis with which the inner iteration starts. ``client`` starts from Xᵢ, as Wang, Liu & Zhang
        print. ``server`` starts from Z, which costs one more product with AᵢAᵢᵀ per round. With
        either start, rules (13) and (14) compare the new basis with Xᵢ.
    beta_factor : float
        First penalty βᵢ⁽⁰⁾ divided by ‖Aᵢ‖², in the norm `beta_norm`.
    beta_norm : str
        Norm of Aᵢ by which `beta_factor` is defined; Wang, Liu & Zhang take the spectral norm.
    adapt : bool
        If true, clients apply rule (25) in every fifth round, which may raise βᵢ by a tenth.
    """

    inner: Annotated[str, one_of(RULES)] = "relative_change"
    tolerance: NonNegative = 1e-2
    delta: NonNegative = 0.5
    inner_steps: Count = 30
    solver: Annotated[str, one_of(SOLVERS)] = "power"
    signs: Annotated[str, one_of(SIGNS)] = "positive"
    inner_start: Annotated[str, one_of(INNER_STARTS)] = "client"
    beta_factor: Positive = 0.15
    beta_norm: Annotated[str, one_of(NORMS)] = "spectral"
    adapt: bool = True


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Algorithm 1 of Wang, Liu & Zhang (JOTA 2024).

    Returns
    -------
    dict
        Orthonormal ``basis`` of shape (n_features, n_components). After at least one round, the
        dict also contains the lists ``X`` and ``W`` of the clients' matrices Xᵢ and Wᵢ, all of
        shape (n_features, n_components).
    """
    client = of_runs(stacked(partial(improved, params)))

    def held() -> dict[str, Any]:
        """Return the clients' Xᵢ and Wᵢ, for history files that store them."""
        pairs = federation.observe(own_iterate, Z)
        return {"X": [X for X, _ in pairs], "W": [W for _, W in pairs]}

    Z = starting_basis(federation, params, rng)
    record(0, basis=Z, counts={"inner_products": 0, "penalty": 0.0}, clients=held)
    k = 0
    for k in record.rounds(params.rounds):
        federation.broadcast(Z)
        Z = orth(federation.sum(client))
        counts = {
            "inner_products": int(sum(federation.client_state("products"))),
            "penalty": float(sum(federation.client_state("beta"))),
        }
        record(k, basis=Z, counts=counts, clients=held)
    found: dict[str, Any] = {"basis": Z}
    if k > 0:  # rounds in which the mean was sent leave no Xᵢ
        bases, images = (federation.client_state(name) for name in ("basis", "image"))
        found["X"] = [X.T for X in bases]
        found["W"] = [outside(X, -image).T for X, image in zip(bases, images, strict=True)]
    return found


def improved(params: Params, data: np.ndarray, state: Any, Z: np.ndarray) -> np.ndarray:
    """Client step: improve the basis Xᵢ by the inner iteration, and return Yᵢ of equation (19).

    The client keeps Xᵢ in ``state.basis``, the product AᵢAᵢᵀXᵢ in ``state.image``, the penalty βᵢ
    in ``state.beta``, and its number of products with AᵢAᵢᵀ in ``state.products``.
    """
    Z, first = transposed(Z), not hasattr(state, "basis")
    most = (1 + params.inner_steps) * Z.shape[-2]
    products = local_products(data, state, Z.dtype, most)
    if first:
        several = np.broadcast_shapes(data.shape[:-2], Z.shape[:-2])
        state.k, state.products = 0, np.ones(several, int)
        state.beta = params.beta_factor * _square(data, state, params.beta_norm) * np.ones(several)
        state.basis = np.broadcast_to(Z, several + Z.shape[-2:])
        state.image = products.times(state.basis)
    X, image, Z = state.basis, state.image, np.broadcast_to(Z, state.basis.shape)
    beta = np.asarray(state.beta)[..., None, None].astype(Z.dtype)
    W = outside(X, -image)
    left, right = np.concatenate([W, X, Z], axis=-2), np.concatenate([X, W, beta * Z], axis=-2)
    H = _Matrices(products, left, right)
    XH = image + H.coupled(X)
    scale = state.beta
    if params.inner == "decrease":
        scale = scale + _square(data, state, "spectral")
    enough = RULES[params.inner](Limits(params.tolerance, params.delta, scale), X, XH)
    B, BH, one = X, XH, 0
    if params.inner_start == "server" and not first:  # Xᵢ and Z are one in the first round
        B, BH, one = Z, H.times(Z), 1
    B, BH, steps = iterate(H, B, BH, enough, params.solver, params.signs, params.inner_steps)
    state.products, state.image = state.products + one + steps, BH - H.coupled(B)
    if params.adapt and np.max(state.k) % PERIOD == 0:
        distance = np.sqrt(2.0) * norm(outside(X, Z))  # ‖XᵢXᵢᵀ − ZZᵀ‖_F
        if not first:
            raised = state.distance <= (1 + MU) * distance
            state.beta = np.where(raised, (1 + THETA) * state.beta, state.beta)
        state.distance = distance
    X = state.basis = B
    W = outside(X, -state.image)
    XZ = Z @ transposed(X)
    Y = beta * (XZ @ X) - (Z @ transposed(W)) @ X - XZ @ W
    state.k = state.k + 1
    return transposed(Y)


@dataclass(frozen=True)
class _Matrices:
    """The matrices Hᵢ of (12), a stack of them; see `fedcore.parts.eigensolvers`.

    Attributes
    ----------
    products : LocalProducts
        Products with AᵢAᵢᵀ.
    left, right : ndarray of shape (…, 3p, n)
        Factors of ``Λᵢ + βᵢ ZZᵀ = leftᵀ right``.
    """

    products: LocalProducts
    left: np.ndarray
    right: np.ndarray

    def times(self, X: np.ndarray) -> np.ndarray:
        return self.products.times(X) + self.coupled(X)

    def coupled(self, X: np.ndarray) -> np.ndarray:
        """Return ``X (Λᵢ + βᵢ ZZᵀ) = X (Hᵢ − AᵢAᵢᵀ)``."""
        return (X @ transposed(self.left)) @ self.right

    def of(self, chosen: np.ndarray) -> _Matrices:
        return _Matrices(self.products.of(chosen), self.left[chosen], self.right[chosen])


def own_iterate(data: np.ndarray, state: Any, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Client step: return Xᵢ and Wᵢ of shape (n_features, p); Xᵢ = Z before the first round."""
    X = getattr(state, "basis", Z.T)
    return X.T, outside(X, -((X @ data.T) @ data)).T


def signs_follow(params: Params) -> bool:
    """Return whether the method with ``params.signs`` commutes with rotations."""
    return params.signs == "positive"


def _square(data: np.ndarray, state: Any, kind: str) -> Any:
    """Return ‖Aᵢ‖² in the norm `kind`; ‖Aᵢ‖ is computed once and kept with the data."""
    name, several = f"{kind}_norm", data.shape[:-2]
    if not hasattr(state.kept, name):
        each = data if several else [data]
        found = np.array([float(NORMS[kind](one)) for one in each])
        setattr(state.kept, name, found.reshape(several))
    return getattr(state.kept, name) ** 2


ALGORITHM = Algorithm(
    paper="faps",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    commutes=signs_follow,
    columns=COLUMNS,
    citation=(
        "Wang, Liu & Zhang, *Seeking consensus on subspaces in federated principal component "
        "analysis* (JOTA 2024), Algorithm 1"
    ),
    look=("green", "dashed"),
)
