"""FAPS: federated ADMM-like algorithm with projection splitting.

Numbers such as (12) are those of the paper's equations. Client i keeps its own basis Xᵢ. The
constraint XᵢXᵢᵀ = ZZᵀ ties Xᵢ to the server's Z; its multiplier Λᵢ has low rank and is never
formed, as Wᵢ determines it by (15) and (16):

    Wᵢ = −P⊥_{Xᵢ} AᵢAᵢᵀ Xᵢ,   Λᵢ = XᵢWᵢᵀ + WᵢXᵢᵀ.

In round k the client starts from Xᵢ and iterates towards the dominant p-space of
``Hᵢ = AᵢAᵢᵀ + Λᵢ + βᵢ ZZᵀ`` (12), updates Wᵢ and sends ``Yᵢ = (βᵢ XᵢXᵢᵀ − Λᵢ) Z`` (19). The server
takes Z ← orth(Σᵢ Yᵢ).

The accuracy of the clients' solves (`inner`, `solver`) is a free parameter and sets the rate, the
factor by which the error changes in a round. Let b = Σβᵢ and g = λ_p − λ_{p+1}. Near the answer and
for equal clients, exact solves have the rate b/(b + g), and q steps of ``power`` have
``(b + g cᵠ)/(b + g)``, c = λ_{p+1}/(λ_p + b). A single step is slower than SSI, whose rate is
1 − g/λ_p. If clients differ by more than βᵢ, exact solves do not converge until (25) has raised βᵢ.

With ``inner_start="server"`` the inner iteration starts from Z in place of Xᵢ. Let e_X and e_Z be
the parts of Xᵢ and Z along an eigenvector beyond p, and g the gap to it. By (19), e_Z = (1 − g/b)
e_X: Z is nearer to the answer than Xᵢ. Exact solves give (g e_X + b e_Z)/(b + g) = b/(b + g) e_X. q
steps leave the share cᵠ of the difference to e_Z, so that the rate is
``1 − g/b + (1 − cᵠ) g²/(b (b + g))``: about 1 − g/b for every q, and λ_p/b times as fast as SSI.
For q = 1 the rate is 1 − g/b + g²/(b (λ + b)), with λ the eigenvalue within p. The least value of
this rate over all g is 1 − (λ + b)/(4 b), which is above −1 if b > λ/7: a single step needs b >
λ₁/7.

The paper does not give a limit of the inner steps, here `inner_steps`, nor the constants of (13),
here c₁ = 1/2, c₁' = 1. The stopping rule (26) compares bases, not subspaces, so that it depends on
the `signs` of QR. Rule (25) raises βᵢ unless the distance between Xᵢ and Z has fallen since the
rule was last applied. As this distance is 0 at first, the rule raises every βᵢ after k = 5.

Xᵢ⁽⁰⁾ = Z⁽⁰⁾ spans an invariant space of its Hᵢ, not the dominant one. In exact arithmetic the first
round only rotates the basis, and its message is ``βᵢ Z + P⊥_Z AᵢAᵢᵀ Z``. The invariant space is
unstable: inner steps amplify rounding errors geometrically for as long as (26) sees the basis
rotate. With the stopping rule (26) the path and the number of rounds therefore change with the
rounding of the start, the number of threads and the CPU. With rule (14) they do not change, because
this rule finds a residual of zero and stops at once. A cell with ``twin: rounding`` measures the
difference; see `fedcore.experiments.twins`.

Client steps work on stacks: on the blocks of all starts of a cell at one client, or of clients of
equal size. Blocks are rows, of shape (…, p, n); a single start has no leading axes.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np

from fedcore.algorithms import Algorithm, ssi
from fedcore.algorithms.ssi import communication, starting_basis
from fedcore.federation.execution import of_runs
from fedcore.federation.federation import Federation, stacked
from fedcore.linalg import orth, spectral_norm
from fedcore.parts.eigensolvers import RULES, SIGNS, SOLVERS, Limits, norm, outside, transposed
from fedcore.parts.gram_products import local_multiplication
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
    """All parameters of `ssi.Rounds`, and the following. Every Xᵢ has p columns, as Z has.

    Attributes
    ----------
    inner : str
        Rule that ends the inner iterations. ``relative_change``: stop by (26), when the basis
        changes by at most ε_x of its norm. ``subspace_change``: the same for projections instead of
        bases. ``residual``: stop by (14), when the residual ``‖P⊥ HᵢXᵢ‖_F``, with P⊥ = I − XᵢXᵢᵀ,
        is at most δᵢ times its first value, or of the order of rounding. ``decrease``: stop by
        (13), when ``tr XᵢᵀHᵢXᵢ`` has grown enough. ``fixed``: never stop early, but make all
        `inner_steps`.
    tolerance : float
        ε_x of ``relative_change`` and ``subspace_change``.
    delta : float
        δᵢ of the rule ``residual``.
    inner_steps : int
        Largest number of inner iterations in a round; for ``fixed`` the exact number.
    solver : str
        Inner iteration; see `fedcore.parts.eigensolvers`.
    signs : str
        Signs of the columns of Xᵢ: ``positive`` for diag(R) ≥ 0 in the inner QR, ``arbitrary`` for
        those of LAPACK.
    inner_start : str
        Start of the inner iteration. ``client``: Xᵢ, as printed. ``server``: Z, at one more product
        a round. (13) and (14) compare with Xᵢ in either case.
    beta_factor : float
        βᵢ⁽⁰⁾ / ‖Aᵢ‖², in the norm `beta_norm`.
    beta_norm : str
        Norm of Aᵢ in `beta_factor`; the paper's is the spectral one.
    adapt : bool
        Whether every fifth round applies rule (25), which may raise βᵢ by a tenth.
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
    """Run Algorithm 1; see the module's text.

    Returns
    -------
    dict
        ``basis`` of shape (n_features, n_components); after at least one round also ``X`` and
        ``W``, one array of this shape per client each.
    """
    client = of_runs(stacked(partial(improved, params)))

    def held() -> dict[str, Any]:
        """Xᵢ and Wᵢ of the clients, for histories that keep them; before any message, from Z."""
        pairs = federation.observe(own_iterate, Z)
        return {"X": [X for X, _ in pairs], "W": [W for _, W in pairs]}

    Z = starting_basis(federation, params, rng)
    record(0, basis=Z, counts={"inner_products": 0, "penalty": 0.0}, clients=held)
    k = 0
    for k in record.rounds(params.rounds):
        federation.broadcast(Z)
        Z = orth(federation.sum(client))
        counts = {
            "inner_products": int(sum(federation.observe(products_so_far))),
            "penalty": float(sum(federation.observe(own_penalty))),
        }
        record(k, basis=Z, counts=counts, clients=held)
    found: dict[str, Any] = {"basis": Z}
    if k > 0:  # rounds in which the mean was sent leave no Xᵢ
        federation.local(finish)
        found |= {name: federation.client_state(name) for name in ("X", "W")}
    return found


def improved(params: Params, data: np.ndarray, state: Any, Z: np.ndarray) -> np.ndarray:
    """Client step: improve Xᵢ, which is ``state.basis``, with the product AᵢAᵢᵀXᵢ; return Yᵢ."""
    Z, first = transposed(Z), not hasattr(state, "basis")
    most = (1 + params.inner_steps) * Z.shape[-2]
    multiply = local_multiplication(data, state, Z.dtype, most)
    if first:
        several = np.broadcast_shapes(data.shape[:-2], Z.shape[:-2])
        state.k, state.products = 0, np.ones(several, int)
        state.beta = params.beta_factor * _square(data, state, params.beta_norm) * np.ones(several)
        state.basis = np.broadcast_to(Z, several + Z.shape[-2:])
        state.image = multiply(state.basis)
    X, image, Z = state.basis, state.image, np.broadcast_to(Z, state.basis.shape)
    distance = np.sqrt(2.0) * norm(outside(X, Z))  # ‖XᵢXᵢᵀ − ZZᵀ‖_F
    beta = np.asarray(state.beta)[..., None, None].astype(Z.dtype)
    W = outside(X, -image)
    left, right = np.concatenate([W, X, Z], axis=-2), np.concatenate([X, W, beta * Z], axis=-2)

    def coupled(B: np.ndarray) -> np.ndarray:
        """``B (Λᵢ + βᵢ ZZᵀ) = B (Hᵢ − AᵢAᵢᵀ)``."""
        return (B @ transposed(left)) @ right

    def product(B: np.ndarray) -> np.ndarray:
        return multiply(B) + coupled(B)

    XH = image + coupled(X)
    scale = state.beta
    if params.inner == "decrease":
        scale = scale + _square(data, state, "spectral")
    enough = RULES[params.inner](Limits(params.tolerance, params.delta, scale), X, XH)
    made = np.zeros_like(state.products)
    if params.inner_start == "server" and not first:  # Xᵢ and Z are one in the first round
        X, XH, made = Z, product(Z), made + 1
    going = np.ones(X.shape[:-2], bool)
    solver = SOLVERS[params.solver](product, X, XH, params.signs)
    for new, new_H in itertools.islice(solver, params.inner_steps):
        stops = enough(X, new, new_H)
        X, XH = (np.where(going[..., None, None], *pair) for pair in ((new, X), (new_H, XH)))
        made, going = made + going, going & ~stops
        if not going.any():
            break
    state.products, state.image = state.products + made, XH - coupled(X)
    state.basis = X
    W = outside(X, -state.image)
    XZ = Z @ transposed(X)
    Y = beta * (XZ @ X) - (Z @ transposed(W)) @ X - XZ @ W
    if params.adapt and np.max(state.k) % PERIOD == 0:
        if not first:
            raised = state.distance <= (1 + MU) * distance
            state.beta = np.where(raised, (1 + THETA) * state.beta, state.beta)
        state.distance = distance
    state.k = state.k + 1
    return transposed(Y)


@stacked
def finish(data: np.ndarray, state: Any, Z: np.ndarray) -> None:
    """Client step: leave Xᵢ and Wᵢ as blocks of features, of shape (n, p)."""
    state.X = transposed(state.basis)
    state.W = transposed(outside(state.basis, -state.image))


def own_iterate(data: np.ndarray, state: Any, Z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Client step: the client's Xᵢ and Wᵢ as blocks of features; Xᵢ = Z before the first round."""
    X = getattr(state, "basis", Z.T)
    return X.T, outside(X, -((X @ data.T) @ data)).T


@stacked
def products_so_far(data: np.ndarray, state: Any, Z: np.ndarray) -> Any:
    """Client step: the number of products that the client has made."""
    return state.products


@stacked
def own_penalty(data: np.ndarray, state: Any, Z: np.ndarray) -> Any:
    """Client step: the client's βᵢ."""
    return state.beta


def signs_follow(params: Params) -> bool:
    """Return whether the method, with these signs, commutes with rotations of the features."""
    return params.signs == "positive"


def _square(data: np.ndarray, state: Any, kind: str) -> Any:
    """‖Aᵢ‖² in the given norm; computed once and kept with the data."""
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
