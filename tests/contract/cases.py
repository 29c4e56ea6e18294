"""Table of the algorithms for the contract suite.

An algorithm without an entry says its case itself, as ``case=`` of its declaration. The checks
against an oracle fail, with a message that names both places, until there is one. An oracle is the
method in its plainest form, on the stacked matrix, with NumPy alone. Those of fedcore's methods are
here, and not in their modules, because an edit of a module runs its cells again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from contract import private_oracles as private
from fedcore import algorithms, testing
from fedcore.testing import Case, Draws
from fedcore.testing.cases import Solution
from fedcore.testing.samples import labels_of


def gaussian(clients: list[np.ndarray], draws: Draws, r: int) -> list[np.ndarray]:
    """Return a Gaussian matrix of each client, one row per sample and r columns."""
    return [g.standard_normal((len(s), r)) for g, s in zip(draws.clients, clients, strict=True)]


def singular_vectors(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """The leading right singular vectors of the stack, by NumPy's SVD."""
    return np.linalg.svd(np.vstack(clients))[2][: params.n_components].T, None


def sketch(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """``(SᵀS)^α Sᵀ Φ`` for every draw of Φ, and the best-conditioned of them."""
    S = np.vstack(clients)
    given = None if params.start is None else S @ params.start
    phi = lambda: np.vstack(gaussian(clients, draws, params.n_components))  # noqa: E731
    sketches = [S.T @ (phi() if given is None else given) for _ in range(params.samples)]
    power = np.linalg.matrix_power(S.T @ S, params.power)
    if params.select == "initial":
        return power @ min(sketches, key=np.linalg.cond), None
    return min((power @ V for V in sketches), key=np.linalg.cond), None


def least_squares(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """``Û = S V (VᵀV)† = S (V†)ᵀ``."""
    V, _ = sketch(clients, draws, params)
    return V, np.vstack(clients) @ np.linalg.pinv(V).T


def gradient_descent(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """``U ← Ũ − γ (Ũ Vᵀ − S) V`` with Ũ = U or Nesterov's point, then the prox if there is one."""
    V, _ = sketch(clients, draws, params)
    V = np.linalg.qr(V)[0] if params.orthonormalise else V
    step = 1 / np.linalg.svd(V)[1][0] ** 2
    found = []
    for S, own in zip(clients, gaussian(clients, draws, params.n_components), strict=True):
        U = point = own / np.sqrt(len(S))
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


def alternating_descent(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
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


def simultaneous_descent(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """Ye and Du: both gradients at the old point."""
    S, r = np.vstack(clients), params.n_components
    (n, d), high, low = S.shape, params.sigma_max, params.sigma_r
    scale = low / (np.sqrt(high * r**3) * (d + n))
    step = low * scale**2 / ((d if params.reading == "aaai" else r) * high**3)
    V = scale * draws.server.standard_normal((d, r)) if params.start is None else params.start
    U = scale * np.vstack(gaussian(clients, draws, r))
    for _ in range(params.rounds):
        residual = U @ V.T - S
        U, V = U - step * residual @ V, V - step * residual.T @ U
    return V, U


def first_basis(clients: list[np.ndarray], draws: Draws, params: Any) -> np.ndarray:
    size = (clients[0].shape[1], params.n_components)
    return private.same_sign(
        draws.server.uniform(-1, 1, size) if params.start is None else params.start
    )


def subspace_iteration(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """``(SᵀS)^rounds Z``: the range needs no orthonormalisation in between."""
    S, Z = np.vstack(clients), first_basis(clients, draws, params)
    return np.linalg.qr(np.linalg.matrix_power(S.T @ S, params.rounds) @ Z)[0], None


def local_power(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """Li et al.'s loop over machines, each with its Gram matrix."""
    Z, grams = first_basis(clients, draws, params), [s.T @ s for s in clients]
    for k in range(params.rounds):
        q = {
            "constant": params.local_steps,
            "linear": max(params.local_steps - k, 1),
            "halving": max(params.local_steps // 2**k, 1),
        }[params.schedule]
        bases = [Z] * len(grams)
        for _ in range(q - 1):
            bases = [private.same_sign(G @ B) for G, B in zip(grams, bases, strict=True)]
        total = np.zeros_like(Z)
        for G, B in zip(grams, bases, strict=True):
            total += G @ B @ rotation(B, bases[0], params.alignment)
        Z = private.same_sign(total)
    return Z, None


def private_power(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """Algorithms 2 and 3 of Guo et al., t by t, with their A_i; every client computes."""
    m, n, T, r = len(clients), sum(map(len, clients)), params.iterations, params.n_components
    if params.clip:
        clients = [s / np.maximum(np.linalg.norm(s, axis=1, keepdims=True), 1) for s in clients]
    A, nu = [m / n * s.T @ s for s in clients], 0.0
    if params.epsilon is not None:
        assert params.calibration == "paper"
        log = np.log(1 / params.delta)
        largest = max(np.sqrt(T / params.epsilon), 2 * np.sqrt(2 * T * log) / params.epsilon)
        nu = 2 * np.sqrt(r) * m / n * largest
    sync, step = {0}, 0
    while max(sync) < T:
        p = {"constant": params.local_steps, "linear": params.local_steps - step}[params.schedule]
        sync, step = sync | {max(sync) + max(p, 1)}, step + 1
    Z = first_basis(clients, draws, params)
    bases = [Z] * m
    for t in range(T):
        if t in sync:
            bases = [Z] * m
            weights = [1] * m
            if params.participants is not None:
                drawn = draws.server.choice(m, params.participants, replace=params.replacement)
                weights = [int(np.sum(drawn == i)) for i in range(m)]
        sending = [i for i in range(m) if i == 0 or weights[i]]
        noise = {i: draws.noise[i].standard_normal(Z.shape) for i in sending if nu}
        products = [A[i] @ bases[i] + nu * noise.get(i, 0.0) for i in range(m)]
        if t + 1 in sync or t + 1 == T:
            if t + 1 not in sync:  # the output rule of the paper
                bases = products = [private.same_sign(Y) for Y in products]
            Z = private.same_sign(
                sum(
                    weights[i] * products[i] @ rotation(bases[i], bases[0], params.alignment)
                    for i in sending
                )
            )
        else:
            bases = [private.same_sign(Y) for Y in products]
    return Z, None


def rotation(basis: np.ndarray, target: np.ndarray, alignment: str) -> np.ndarray:
    """Orthogonal matrix that takes a basis to another, by the name of the alignment."""
    if alignment == "procrustes":
        left, _, right_t = np.linalg.svd(basis.T @ target)
        return left @ right_t
    signs = np.sign(np.diag(basis.T @ target))
    return np.diag(signs if alignment == "sign" else np.ones(len(signs)))


def averaged_projections(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """Leading eigenvectors of the mean of the clients' n × n projections."""
    tops = [np.linalg.svd(s)[2][: params.n_components].T for s in clients]
    mean = sum(V @ V.T for V in tops) / len(tops)
    return np.linalg.eigh(mean)[1][:, -params.n_components :], None


def krylov_space(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """Rayleigh–Ritz on a growing basis, then one power step; a restart when the basis is full.

    The next block comes from the SVD of the complement of AAᵀ V to the whole basis V.
    """
    S, p = np.vstack(clients), params.n_components
    A, V = S.T @ S, first_basis(clients, draws, params)
    Z, room = V, min(params.memory, len(A) // p) * p
    for _ in range(params.rounds):
        ritz = V @ np.linalg.eigh(V.T @ A @ V)[1][:, ::-1]
        Z = A @ ritz[:, :p]
        left, sizes, _ = np.linalg.svd(A @ V - V @ (V.T @ A @ V))
        assert sizes[p - 1] > 1e-8 * sizes[0], "the space is exhausted: no oracle for what follows"
        kept = V if V.shape[1] + p <= room else ritz[:, : room // p // 2 * p]
        V = np.hstack([kept, left[:, :p]])
    return np.linalg.qr(Z)[0], None


def heavy_ball(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """``Y ← AAᵀ Y − β Y₋`` without normalisation; β given, or from all earlier pairs of blocks."""
    S, p = np.vstack(clients), params.n_components
    A, Y_old = S.T @ S, np.zeros((S.shape[1], params.n_components))
    Y = first_basis(clients, draws, params)
    largest = params.sigma_next**2 if params.sigma_next is not None else 0.0
    for k in range(params.rounds):
        if params.sigma_next is None and k:
            V = np.linalg.qr(np.hstack([Y, Y_old]))[0]
            largest = max(largest, np.linalg.eigvalsh(V.T @ A @ V)[-p - 1])
        Y, Y_old = A @ Y - (largest / 2) ** 2 * Y_old, Y
    return np.linalg.qr(Y)[0], None


def projection_splitting(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """FAPS with all its n × n matrices written out."""
    Z, A = first_basis(clients, draws, params), [s.T @ s for s in clients]
    squares = {"spectral": lambda a: np.linalg.norm(a, 2), "frobenius": np.trace}
    beta = [params.beta_factor * squares[params.beta_norm](a) for a in A]
    X, distances = [Z] * len(A), []

    def off(B: np.ndarray) -> np.ndarray:
        return np.eye(len(B)) - B @ B.T

    def multiplier(a: np.ndarray, B: np.ndarray) -> np.ndarray:
        return -B @ B.T @ a @ off(B) - off(B) @ a @ B @ B.T

    def violation(H: np.ndarray, B: np.ndarray) -> float:
        return float(np.linalg.norm(off(B) @ H @ B))

    for k in range(params.rounds):
        distances.append([np.linalg.norm(x @ x.T - Z @ Z.T) for x in X])
        Q = np.zeros_like(A[0])
        for i, a in enumerate(A):
            H = a + multiplier(a, X[i]) + beta[i] * Z @ Z.T
            wanted = max(params.delta * violation(H, X[i]), 1e-13 * np.linalg.norm(H))
            if params.inner_start == "server":
                X[i] = Z
            for _ in range(params.inner_steps):
                before, X[i] = X[i], private.same_sign(H @ X[i])
                change = np.linalg.norm(X[i] - before) / np.linalg.norm(X[i])
                if params.inner == "relative_change" and change <= params.tolerance:
                    break
                if params.inner == "residual" and violation(H, X[i]) <= wanted:
                    break
            Q += beta[i] * X[i] @ X[i].T - multiplier(a, X[i])
        Z = private.same_sign(Q @ Z)
        for i in range(len(A)):
            if params.adapt and k and k % 5 == 0 and distances[k - 5][i] <= 1.01 * distances[k][i]:
                beta[i] *= 1.1
    return Z, None


def first_representation(
    clients: list[np.ndarray], draws: Draws, params: Any
) -> tuple[np.ndarray, list[np.ndarray]]:
    """B⁰ and the first heads, client by client."""
    k, labels = params.n_components, labels_of(clients, params.n_components)
    zero = [np.zeros(k) for _ in clients]
    if params.batch is not None:
        clients = [s[: params.batch] for s in clients]
        labels = [y[: params.batch] for y in labels]
    if params.start is not None:
        return private.same_sign(params.start), zero
    if params.init == "random":
        heads = [params.init_heads * g.standard_normal(k) for g in draws.clients]
        return private.same_sign(draws.server.standard_normal((clients[0].shape[1], k))), heads
    if params.init == "moments":
        mean = sum(
            sum(t**2 * np.outer(x, x) for x, t in zip(s, y, strict=True)) / len(s)
            for s, y in zip(clients, labels, strict=True)
        )
        return np.linalg.eigh(mean)[1][:, ::-1][:, :k], zero
    M = np.zeros((len(clients), clients[0].shape[1]))
    for _ in range(params.init_rounds):
        left, sigma, right_t = np.linalg.svd(M, full_matrices=False)
        M = left[:, :k] * sigma[:k] @ right_t[:k]
        for i, (s, y) in enumerate(zip(clients, labels, strict=True)):
            M[i] -= params.init_step * s.T @ (s @ M[i] - y) / len(s)
    padded = np.pad(M, ((0, max(0, k - len(M))), (0, 0)))
    V = np.linalg.svd(padded, full_matrices=False)[2][:k].T
    return V, [V.T @ row for row in M]


def rounds_of_regression(
    clients: list[np.ndarray], draws: Draws, params: Any
) -> Iterator[list[tuple[int, np.ndarray, np.ndarray]]]:
    """Yield the participants of each round with the samples that they use."""
    labels = labels_of(clients, params.n_components)
    for t in range(1, params.rounds + 1):
        n = len(clients)
        chosen = range(n)
        if params.participation < 1:
            part = max(1, round(params.participation * n))
            chosen = sorted(draws.server.choice(n, part, replace=False))
        first = t * params.batch if params.fresh else 0
        used = slice(None) if params.batch is None else slice(first, first + params.batch)
        yield [(i, clients[i][used], labels[i][used]) for i in chosen]


def shared_regression(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """Algorithm 2 of Collins et al., client by client."""
    B, heads = first_representation(clients, draws, params)
    for participants in rounds_of_regression(clients, draws, params):
        replies = []
        for i, X, y in participants:
            if params.head_steps is None:
                heads[i] = np.linalg.lstsq(X @ B, y, rcond=None)[0]
            for _ in range(params.head_steps or 0):
                heads[i] = heads[i] - params.head_step * B.T @ X.T @ (X @ B @ heads[i] - y) / len(X)
            gradient = np.outer(X.T @ (X @ B @ heads[i] - y), heads[i]) / len(X)
            replies.append(B - params.step / params.head_sigma**2 * gradient)
        B = sum(replies) / len(replies)
        B = private.same_sign(B) if params.orthonormalise else B
    return B, np.array(heads)


def single_regression(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """Distributed gradient descent on one (B, w)."""
    B, _ = first_representation(clients, draws, params)
    random = params.start is None and params.init == "random"
    w = draws.server.standard_normal(B.shape[1]) if random else np.zeros(B.shape[1])
    for participants in rounds_of_regression(clients, draws, params):
        slopes = [X.T @ (X @ B @ w - y) / len(X) for _, X, y in participants]
        slope = sum(slopes) / len(slopes)
        eta = params.step / params.head_sigma**2
        B, w = B - eta * np.outer(slope, w), w - params.head_step * B.T @ slope
    return B, None


def local_regressions(clients: list[np.ndarray], draws: Draws, params: Any) -> Solution:
    """Right singular vectors of the clients' own solutions."""
    k, labels = params.n_components, labels_of(clients, params.n_components)
    found = [np.linalg.lstsq(s, y, rcond=None)[0] for s, y in zip(clients, labels, strict=True)]
    rows = np.pad(np.array(found), ((0, max(0, k - len(found))), (0, 0)))
    return np.linalg.svd(rows, full_matrices=False)[2][:k].T, None


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


def wrong(**values: tuple[Any, ...]) -> tuple[tuple[str, Any], ...]:
    """Parameters with values that are refused."""
    return tuple((name, value) for name, given in values.items() for value in given)


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
# The iterative eigenspace methods default to thousands of rounds; twelve suffice for the tests.
FEW_ROUNDS: dict[str, Any] = {"rounds": 12}
AS_LOCAL_POWER: dict[str, Any] = {"epsilon": None, "alignment": "none", "iterations": 12}
MANY_ROUNDS: dict[str, Any] = {"rounds": 60}  # enough at (σ₄/σ₃)² = 0.018, the rate of SSI
# Regressions with few, uneven samples; one client has as many samples as there are components.
REGRESSIONS: tuple[dict[str, Any], ...] = (
    {"rounds": 0},
    {"rounds": 5},
    {"rounds": 0, "init": "pgd"},
    {"rounds": 4, "init": "pgd", "init_rounds": 3, "step": 0.1, "head_sigma": 0.5},
    {"rounds": 4, "init": "random", "init_heads": 0.5, "participation": 0.5},
    {"rounds": 4, "batch": 2, "init": "random"},  # 3 x 3 would be nearly singular
    {"rounds": 2, "batch": 1, "fresh": True, "init": "random"},
)
NOISELESS: dict[str, Any] = {"epsilon": None}
PRIVATE: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-3, "clip": True}  # rows are longer than 1
BUDGETS = wrong(epsilon=(0.0,), delta=(0.0, 1.0))
NOISELESS_LONG = {**NOISELESS, **MANY_ROUNDS}
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
        refused=wrong(strength=(-1.0,)),
    ),
    "wk2023": Case(
        alternating_descent,
        lambda S, r: {"rounds": 3000},
        needs=known_norm,
        settings=({"rounds": 0}, {"rounds": 12}, {"rounds": 5, "sigma_max": None}),
        refused=wrong(C=(0.0,), mu=(-0.5,), sigma_max=(0.0,)),
    ),
    "yd2021": Case(
        simultaneous_descent,
        practical_step,
        needs=known_spectrum,
        settings=({"rounds": 0}, {"rounds": 6}, {"rounds": 6, "reading": "head"}),
        clients_draw_start=True,
        refused=(("sigma_max", 0.0), ("sigma_r", -1.0)),
    ),
    "ssi": Case(
        subspace_iteration,
        lambda S, r: MANY_ROUNDS,
        needs=lambda S, r: FEW_ROUNDS,
        settings=({"rounds": 0}, {"rounds": 1}, {"rounds": 4}),
        refused=wrong(tol=(1.0,)),
    ),
    "local_power": Case(
        local_power,
        lambda S, r: MANY_ROUNDS,
        needs=lambda S, r: FEW_ROUNDS,
        settings=(
            {"rounds": 0},
            {"rounds": 5, "local_steps": 1},
            *(
                {"rounds": 4, "local_steps": 5, "schedule": schedule, "alignment": alignment}
                for schedule in ("constant", "linear", "halving")
                for alignment in ("none", "sign", "procrustes")
            ),
        ),
        depends_on_split=True,
        refused=(("local_steps", 0),),
    ),
    # With an alignment the result depends on the first client, its reference.
    "fedpower": Case(
        private_power,
        lambda S, r: AS_LOCAL_POWER | {"iterations": 60},
        needs=lambda S, r: AS_LOCAL_POWER,
        settings=(
            {"iterations": 0},
            {"iterations": 5, "local_steps": 1},
            {"iterations": 10, "local_steps": 4, "schedule": "constant"},
            *(
                {"iterations": T, "local_steps": 4, "alignment": alignment, **noise}
                for T in (9, 12)
                for alignment in ("none", "sign", "procrustes")
                for noise in ({}, {"epsilon": 300.0, "clip": True})
            ),
        ),
        depends_on_split=True,
        refused=(
            *BUDGETS,
            *wrong(epsilon=(-1.0,), local_steps=(0,), target=(0, 4), participants=(0,)),
        ),
    ),
    "faps": Case(
        projection_splitting,
        lambda S, r: {"rounds": 400, "inner": "residual"},
        needs=lambda S, r: FEW_ROUNDS,
        settings=(
            {"rounds": 0},
            # (26) counts inner steps; where it is nearly met, rounding decides of the last of them.
            {"rounds": 1, "tolerance": 0.02},
            {"rounds": 12},
            {"rounds": 12, "adapt": False, "beta_factor": 0.5},
            {"rounds": 7, "inner": "residual"},
            {"rounds": 7, "inner": "fixed", "inner_steps": 2},
            {"rounds": 7, "inner": "residual", "beta_norm": "frobenius"},
            {"rounds": 7, "inner_start": "server"},
            {"rounds": 7, "inner_start": "server", "inner": "residual", "delta": 0.1},
            {"rounds": 7, "inner_start": "server", "inner": "fixed", "inner_steps": 1},
        ),
        depends_on_split=True,
        refused=wrong(
            tolerance=(-1.0,),
            delta=(-0.1,),
            inner_steps=(0,),
            solver=("lanczos",),
            signs=("negative",),
            inner_start=("neighbour",),
            beta_factor=(0.0,),
            beta_norm=("nuclear",),
        ),
    ),
    "one_shot": Case(
        averaged_projections,
        lambda S, r: {},
        random=False,
        depends_on_split=True,
        needs_equal_clients=True,
    ),
    # In 9 dimensions three blocks of three exhaust the space: the oracle needs fewer rounds, or a
    # smaller memory.
    "block_krylov": Case(
        krylov_space,
        lambda S, r: FEW_ROUNDS,
        needs=lambda S, r: FEW_ROUNDS,
        settings=({"rounds": 0}, {"rounds": 1}, {"rounds": 2}, {"rounds": 4, "memory": 2}),
        refused=wrong(tol=(1.0,), memory=(1,)),
    ),
    "fedrep_linear": Case(
        shared_regression,
        settings=(
            *REGRESSIONS,
            {"rounds": 3, "head_steps": 1, "init": "random"},
            {"rounds": 3, "head_steps": 10, "head_step": 0.1, "participation": 0.7},
            {"rounds": 3, "orthonormalise": False, "init": "pgd"},
        ),
        random=False,
        depends_on_split=True,
        refused=(("step", 0.0), ("participation", 1.5), ("head_steps", 0), ("batch", 0)),
    ),
    "fedsgd_linear": Case(
        single_regression,
        settings=REGRESSIONS,
        random=False,
        depends_on_split=True,
        refused=(("step", -1.0), ("participation", 0.0), ("head_sigma", 0.0)),
    ),
    "local_linear": Case(local_regressions, random=False, depends_on_split=True),
    "momentum_power": Case(
        heavy_ball,
        lambda S, r: MANY_ROUNDS,
        needs=lambda S, r: FEW_ROUNDS,
        settings=({"rounds": 1}, {"rounds": 4, "sigma_next": 0.4}, {"rounds": 4}),
        refused=wrong(tol=(1.0,), sigma_next=(-1.0,)),
    ),
    "adaptive_power": Case(
        private.filtered_power,
        lambda S, r: NOISELESS_LONG,
        needs=lambda S, r: NOISELESS,
        settings=(
            {"rounds": 0},
            {"rounds": 3, "clip": True},
            {**PRIVATE, "rounds": 3},
            {**PRIVATE, "rounds": 0},
            {**PRIVATE, "rounds": 2, "calibration": "paper"},
            {**PRIVATE, "rounds": 2, "calibration": "paper", "constant": "proof"},
            {**PRIVATE, "rounds": 2, "ratio": 1.3, "failure": 0.2, "search_share": 0.5},
        ),
        refused=(*BUDGETS, *wrong(failure=(0.0, 1.0), search_share=(0.0, 1.0), ratio=(1.0,))),
    ),
    "adaptive_search": Case(
        private.guessed_power,
        lambda S, r: {**NOISELESS, "unit": 15.0, "guesses": 3},
        needs=lambda S, r: {**NOISELESS, "guesses": 2},
        settings=({"guesses": 2, "unit": 1.5}, {**PRIVATE, "guesses": 3, "unit": 1.0}),
        refused=(*BUDGETS, *wrong(calibration=("paper",), unit=(0.0,), choice_share=(1.0,))),
    ),
    "analyze_gauss": Case(
        private.gaussian_second_moment,
        lambda S, r: NOISELESS,
        needs=lambda S, r: NOISELESS,
        settings=({"clip": True}, PRIVATE, {**PRIVATE, "epsilon": 0.9, "calibration": "paper"}),
        random=False,
        refused=BUDGETS,
    ),
    "noisy_power": Case(
        private.symmetrised_power,
        lambda S, r: NOISELESS_LONG,
        needs=lambda S, r: NOISELESS,
        settings=(
            {"rounds": 0},
            *(
                {**PRIVATE, "rounds": 3, "protects": protects, "calibration": calibration}
                for protects in ("row", "entry", "row_by_entries")
                for calibration in ("tight", "paper")
            ),
        ),
        refused=BUDGETS,
    ),
    "dn26": Case(
        private.perturbed_vectors,
        lambda S, r: NOISELESS,
        needs=lambda S, r: NOISELESS,
        settings=(
            {"protects": "entry"},
            {**PRIVATE, "epsilon": 1.5},
            {**PRIVATE, "epsilon": 500.0, "clip": False, "protects": "entry"},
            {**PRIVATE, "epsilon": 1.5, "calibration": "paper"},
        ),
        random=False,
        depends_on_split=True,
        needs_equal_clients=True,
        refused=BUDGETS,
    ),
    "private_oja": Case(
        private.single_pass,
        needs=lambda S, r: NOISELESS,
        settings=({}, {"batch": 3, "clip": True}, PRIVATE, {**PRIVATE, "batch": 4, "bound": 0.3}),
        depends_on_split=True,
        asymptotic=True,
        sequential=True,
        refused=(*BUDGETS, *wrong(gap=(0.0,), rate=(0.0,), offset=(0.0,), bound=(0.0,))),
    ),
    "dp_pca": Case(
        private.minibatches,
        needs=lambda S, r: NOISELESS,
        settings=({}, {"batches": 3}, {**PRIVATE, "batches": 2}),
        depends_on_split=True,
        asymptotic=True,
        sequential=True,
        refused=(*BUDGETS, *wrong(gap=(0.0,), rate=(0.0,), offset=(0.0,), batches=(0,))),
    ),
}


def case_of(name: str) -> Case:
    """Return the entry of an algorithm, or what its module says if it has none."""
    return CASES[name] if name in CASES else testing.cases.case_of(algorithms.get(name))
