"""Theorems and corollaries of the paper `factorization`, held against its runs.

Theorems 2 and 3 and Corollary 1 bound κ(V)² and the excess ``‖S − U Vᵀ‖²_F − Σ_{i>r} σᵢ²`` of the
exact solution in probability; Theorem 1 bounds the excess after T steps of the descent.
"""

from __future__ import annotations

import math

import numpy as np

from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Rows, known

PROBABILITIES = (0.001, 0.003, 0.01, 0.05, 0.1, 0.2)
RESOLUTION = 1e-27  # of ‖S‖₂²: an excess loss below it drowns in the rounding of V
TEN = 10  # draws of a group: m of the remark to Corollary 1
DIRECTIONS = 200  # eigenvalues of γ VᵀV at which the constant momentum is tried
LARGEST = ("theorem_2", "theorem_2_proof", "theorem_3", "theorem_3_proof")  # columns of `draws`


def bounds(results: Results) -> Rows:
    """Theorems 2 and 3: the share of draws of Φ that exceed the bound, and the allowed share.

    A theorem's bound holds with probability 1 − c·p, c = 3 and 2; the allowed share is c·p.
    ``version`` is "body" for the bound of the statement and "appendix" for that of the proof.
    """
    rows = []
    for run in results.runs("many_draws"):
        sigma = run.history.reference["singular_values"]
        r, alpha, d = run.params.n_components, run.params.power, run.data["n_features"]
        kappa_squared, above = run.last("kappa") ** 2, excess(run)
        for p in PROBABILITIES:
            for version in ("body", "appendix"):
                for theorem, factor, measured, bound in (
                    (2, 3, kappa_squared, kappa_bound(sigma, r, d, alpha, p, version)),
                    (3, 2, above, excess_bound(sigma, r, alpha, p, version)),
                ):
                    if bound < RESOLUTION * sigma[0] ** 2:
                        continue  # below the resolution of double precision
                    rows.append(
                        run.row(
                            theorem=theorem,
                            version=version,
                            alpha=alpha,
                            p=p,
                            draws=len(measured),
                            allowed=min(1.0, factor * p),
                            exceeded=np.mean(~(measured < bound)),
                            bound=bound,
                            median=np.median(measured),
                        )
                    )
    return rows


def draws(results: Results) -> Rows:
    """Theorems 2 and 3: the largest of `PROBABILITIES` at which a draw of Φ keeps the bound.

    It is 0 for a draw that keeps none. ``theorem_2`` and ``theorem_3`` are for the bounds of the
    statements, and the other two for those of the proofs. ``resolved`` says whether the bounds of
    Theorem 3 are above the rounding of V.
    """
    rows = []
    for run in results.runs("many_draws"):
        sigma = run.history.reference["singular_values"]
        r, alpha, d = run.params.n_components, run.params.power, run.data["n_features"]
        kappa_squared, above = run.last("kappa") ** 2, excess(run)
        largest = {name: np.zeros(len(above)) for name in LARGEST}
        for p in PROBABILITIES:
            for version, end in (("body", ""), ("appendix", "_proof")):
                kept = kappa_squared < kappa_bound(sigma, r, d, alpha, p, version)
                largest[f"theorem_2{end}"][kept] = p
                kept = above < excess_bound(sigma, r, alpha, p, version)
                largest[f"theorem_3{end}"][kept] = p
        least = excess_bound(sigma, r, alpha, max(PROBABILITIES), "body")
        resolved = bool(least >= RESOLUTION * sigma[0] ** 2)
        rows += run.rows(alpha=alpha, resolved=resolved, **largest)
    return rows


def printed_draws() -> Rows:
    """Theorem 2 and Corollary 1: the number of draws ``⌊−log₂(1 − P)⌋`` that is printed for P."""
    return [
        {"probability": probability, "draws": math.floor(-math.log2(1 - probability))}
        for probability in (0.25, 0.5, 0.75, 0.875)
    ]


def restarts(results: Results) -> Rows:
    """Several draws of Φ: a row per ten draws.

    ``kappa_squared``, ``excess`` and ``log5_excess`` are of the first draw, and ``kappa_order`` and
    ``log5_order`` are those of Corollary 2. ``rate_one`` says whether its κ² is below κ²_{1/6}
    (Theorem 2, m = 1 and P = 1/2), ``error_one`` whether its excess is below (1) of Corollary 1,
    and ``reduced`` whether its excess is at most (σ_{r+1}/σ_r)⁴ of that with one multiplication
    less (Take-away 1). ``resolved`` says whether (1) is stated for this α, and is above the
    rounding of V.
    """
    rows, before = [], {}
    for run in results.runs("many_draws"):
        sigma = run.history.reference["singular_values"]
        r, alpha, d = run.params.n_components, run.params.power, run.data["n_features"]
        kappas, above = tens(run.last("kappa") ** 2), tens(excess(run))
        limit = corollary_bound(sigma, r, alpha)
        resolved = bool(alpha >= 1 and limit >= RESOLUTION * sigma[0] ** 2)
        square = kappa_bound(sigma, r, d, alpha, 1 / 6, "body")
        below = above < limit
        before[run.problem, alpha] = above[:, 0]
        last = before.get((run.problem, alpha - 1))
        reduced = None if last is None else above[:, 0] <= last * (sigma[r] / sigma[r - 1]) ** 4
        for k, ten in enumerate(above):
            lost = bool(np.isnan(ten[0]) or np.isnan(kappas[k, 0]))
            unknown = lost or not resolved
            rows.append(
                run.row(
                    repeat=k,
                    alpha=alpha,
                    resolved=resolved,
                    kappa_squared=kappas[k, 0],
                    kappa_order=kappa_order(run),
                    excess=ten[0],
                    log5_excess=float(log5(ten[0])),
                    log5_order=log5_order(run),
                    rate_one=None if lost else bool(kappas[k, 0] < square),
                    error_one=None if unknown else bool(below[k, 0]),
                    reduced=None if lost or reduced is None else bool(reduced[k]),
                )
            )
    return rows


def theorem_1(results: Results) -> Rows:
    """Theorem 1 on every step of Figures 2 and 3, client by client.

    ``share`` is the largest ``Fᵢ(U_T) − Fᵢ(Ûᵢ)`` over ``(1 − κ⁻²)^T (Fᵢ(U₀) − Fᵢ(Ûᵢ))``, or with
    momentum over ``2 (1 − κ⁻¹)^T (Fᵢ(U₀) − Fᵢ(Ûᵢ))``, of all clients and steps; ``share_constant``
    is for the constant momentum (κ − 1)/(κ + 1), see `constant_momentum_share`. Steps whose loss
    was not measured, as in a quick run, do not count.
    """
    rows = []
    for run in results.runs("fig2", "fig3"):
        momentum, kappa, steps = run.params.momentum, run.last("kappa"), run["iteration"]
        above = run.history.clients["client_excess"]
        rate = 1 - kappa[:, None] ** (-1 if momentum else -2)
        bound = (2 if momentum else 1) * rate ** np.maximum(steps, 0)
        seen = (steps > 0) & (bound > np.finfo(float).tiny)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = above / (bound[:, :, None] * above[:, :1])
        ratio = np.where(seen[:, :, None] & (above[:, :1] > 0), ratio, np.nan)
        worst = np.fmax.reduce(ratio, axis=(1, 2))
        rows += run.rows(
            alpha=run.params.power,
            momentum=momentum,
            select=run.params.select,
            kappa=kappa,
            share=known(np.where(run.diverged, np.nan, worst), run.diverged),
            share_constant=[
                constant_momentum_share(k, int(t), (k - 1) / (k + 1)) if momentum else None
                for k, t in zip(kappa.tolist(), steps.max(axis=1), strict=True)
            ],
        )
    return rows


def constant_momentum_share(kappa: float, steps: int, beta: float) -> float:
    """Largest excess of a constant momentum over ``2 (1 − κ⁻¹)^T``, of every direction and step.

    The error in the direction of the eigenvalue x of γ VᵀV, κ⁻² ≤ x ≤ 1, is multiplied by a number
    p_T, and its part of the excess by p_T². x runs over `DIRECTIONS` values.
    """
    x = np.geomspace(kappa**-2, 1.0, DIRECTIONS)
    p = ahead = np.ones(DIRECTIONS)
    bound, worst = 2.0, 0.0
    for _ in range(steps):
        old, p = p, (1 - x) * ahead
        ahead = p + beta * (p - old)
        bound *= 1 - 1 / kappa
        if bound < np.finfo(float).tiny:
            break
        worst = max(worst, float(np.max(p**2)) / bound)
    return worst


def kappa_bound(sigma: np.ndarray, r: int, d: int, alpha: int, p: float, version: str) -> float:
    """Theorem 2: with probability 1 − 3p, κ(V)² is below this.

    ``p⁻² (9 r² (σ₁/σ_r)^{2(2α+1)} + 4 r (d + ln(2/p)) (σ_{r+1}/σ_r)^e)`` with e = 2α in the
    statement ("body") and 2(2α + 1) at the end of the proof ("appendix").
    """
    exponent = {"body": 2 * alpha, "appendix": 2 * (2 * alpha + 1)}[version]
    head = 9 * r**2 * (sigma[0] / sigma[r - 1]) ** (2 * (2 * alpha + 1))
    tail = 4 * r * (d + np.log(2 / p)) * (sigma[r] / sigma[r - 1]) ** exponent
    return float((head + tail) / p**2)


def excess_bound(sigma: np.ndarray, r: int, alpha: int, p: float, version: str) -> float:
    """Theorem 3: with probability 1 − 2p, min_U ‖S − U Vᵀ‖²_F − Σ_{i>r} σᵢ² is below this.

    ``2 r c Σ_{i>r} σᵢ² (σ₁² − σᵢ²)/σ_r² (σᵢ/σ_r)^{4α}`` with ``c = p⁻¹ (ln p⁻² + r ln 2)`` in the
    statement ("body") and ``p⁻² (ln p⁻¹ + r ln 2)`` in the proof ("appendix").
    """
    constant = {
        "body": (np.log(p**-2) + r * np.log(2)) / p,
        "appendix": (np.log(1 / p) + r * np.log(2)) / p**2,
    }[version]
    return 2 * r * float(constant) * _tail(sigma, r, alpha)


def corollary_bound(sigma: np.ndarray, r: int, alpha: int) -> float:
    """Corollary 1, (1): one of m draws has an excess below this with probability 1 − 2^−m."""
    return 32 * float(np.log(4)) * r * (r + 1) * _tail(sigma, r, alpha)


def _tail(sigma: np.ndarray, r: int, alpha: int) -> float:
    """``Σ_{i>r} σᵢ² (σ₁² − σᵢ²)/σ_r² (σᵢ/σ_r)^{4α}``."""
    tail = sigma[r:] ** 2
    ratio = (sigma[0] ** 2 - tail) / sigma[r - 1] ** 2 * (tail / sigma[r - 1] ** 2) ** (2 * alpha)
    return float(np.sum(tail * ratio))


def tens(values: np.ndarray) -> np.ndarray:
    """Return values in groups of ten, shape (groups, 10), without those that are left over."""
    return values[: len(values) // TEN * TEN].reshape(-1, TEN)


def excess(run: Run) -> np.ndarray:
    """Excess loss of the exact solution as in the theorems, with ‖·‖² instead of ½‖·‖²."""
    return 2.0 * run.last("exact_excess")


def kappa_order(run: Run) -> float:
    """Return r², Corollary 2's order of κ²."""
    return float(run.params.n_components**2)


def log5_order(run: Run) -> float:
    """Return log₅ of ``d r² ξ^(4α+2)``, Corollary 2's order of ε, with λ = 1 and ξ = 1e−6."""
    order = run.data["n_features"] * run.params.n_components**2 * 1e-6 ** (4 * run.params.power + 2)
    return float(np.log(order) / np.log(5.0))


def log5(values: np.ndarray) -> np.ndarray:
    """Return logarithms to the base 5, in which the paper prints its errors."""
    return np.log(values) / np.log(5.0)
