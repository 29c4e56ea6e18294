"""Theorems and corollaries of the paper `factorization`, held against its runs.

Theorems 2 and 3 and Corollary 1 bound κ(V)² and the excess ``‖S − U Vᵀ‖²_F − Σ_{i>r} σᵢ²`` of the
exact solution in probability; Theorem 1 bounds the excess after T steps of the descent.
"""

from __future__ import annotations

import numpy as np
import scipy  # its parts are loaded when they are used: half a second of every start

from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Rows, flags

PROBABILITIES = (0.001, 0.003, 0.01, 0.05, 0.1, 0.2)
RESOLUTION = 1e-27  # of ‖S‖₂²: an excess loss below it drowns in the rounding of V
TEN = 10  # draws of a group: m of the remark to Corollary 1
DIRECTIONS = 200  # eigenvalues of γ VᵀV at which the constant momentum is tried
SLACK = 1 + 1e-9  # for rounding


def bounds(results: Results) -> Rows:
    """Theorems 2 and 3: the share of draws of Φ that exceed the bound, and the allowed share.

    A theorem's bound holds with probability 1 − c·p, c = 3 and 2; the allowed share is c·p.
    ``version`` is "body" for the bound of the statement and "appendix" for that of the proof.
    ``holds_without_p`` is for the bound without its factor 1/p or 1/p², which has to fail.
    """
    rows = []
    for run in results.runs("theorems"):
        sigma = run.history.reference["singular_values"]
        r, alpha, d = run.params.n_components, run.params.power, run.data["n_features"]
        kappa_squared, above = run.last("kappa") ** 2, excess(run)
        for p in PROBABILITIES:
            for version in ("body", "appendix"):
                power = {"body": 1, "appendix": 2}[version]
                for theorem, factor, measured, bound, scale in (
                    (2, 3, kappa_squared, kappa_bound(sigma, r, d, alpha, p, version), p**2),
                    (3, 2, above, excess_bound(sigma, r, alpha, p, version), p**power),
                ):
                    if bound < RESOLUTION * sigma[0] ** 2:
                        continue  # below the resolution of double precision
                    allowed = min(1.0, factor * p)
                    rows.append(
                        run.row(
                            theorem=theorem,
                            version=version,
                            alpha=alpha,
                            p=p,
                            draws=len(measured),
                            allowed=allowed,
                            exceeded=np.mean(~(measured < bound)),
                            bound=bound,
                            median=np.median(measured),
                            holds=_seldom(measured, bound, allowed),
                            holds_without_p=_seldom(measured, bound * scale, allowed),
                        )
                    )
    return rows


def restarts(results: Results) -> Rows:
    """Several draws of Φ: a row per ten draws.

    ``kappa_squared`` and ``excess`` are of the first draw. ``rate_one`` says whether its κ² is
    below κ²_{1/6} (Theorem 2, m = 1 and P = 1/2), ``error_one`` whether its excess is below (1) of
    Corollary 1, and ``error_ten`` whether one of the ten is. ``reduced`` says whether its excess is
    at most (σ_{r+1}/σ_r)⁴ of that with one multiplication less (Take-away 1). The columns
    ``…_without_p`` are for the bounds without their factor p⁻² (p = 1/6 and 1/4), and have to fail.
    """
    rows, before = [], {}
    for run in results.runs("theorems"):
        sigma = run.history.reference["singular_values"]
        r, alpha, d = run.params.n_components, run.params.power, run.data["n_features"]
        kappas, above = tens(run.last("kappa") ** 2), tens(excess(run))
        limit = corollary_bound(sigma, r, alpha)
        known = alpha >= 1 and limit >= RESOLUTION * sigma[0] ** 2
        square = kappa_bound(sigma, r, d, alpha, 1 / 6, "body")
        below = above < limit
        before[run.problem, alpha] = above[:, 0]
        last = before.get((run.problem, alpha - 1))
        reduced = None if last is None else above[:, 0] <= last * (sigma[r] / sigma[r - 1]) ** 4
        for k, ten in enumerate(above):
            lost = bool(np.isnan(ten).any() or np.isnan(kappas[k]).any())
            unknown = lost or not known
            rows.append(
                run.row(
                    repeat=k,
                    alpha=alpha,
                    kappa_squared=kappas[k, 0],
                    excess=ten[0],
                    rate_one=None if lost else bool(kappas[k, 0] < square),
                    rate_without_p=None if lost else bool(kappas[k, 0] < square / 6**2),
                    error_one=None if unknown else bool(below[k, 0]),
                    error_without_p=None if unknown else bool(ten[0] < limit / 4**2),
                    error_ten=None if unknown else bool(below[k].any()),
                    reduced=None if lost or reduced is None else bool(reduced[k]),
                )
            )
    return rows


def theorem_1(results: Results) -> Rows:
    """Theorem 1 on every step of Figures 2 and 3, with the loss summed over the clients.

    ``holds`` says whether ``F_T − F̂`` never exceeds ``(1 − κ⁻²)^T (F₀ − F̂)``, or with momentum
    ``2 (1 − κ⁻¹)^T (F₀ − F̂)``, while this is above the rounding of F̂; ``worst`` is the largest
    log10 of their quotient. ``holds_accelerated`` is for ``(1 − κ⁻¹)^T``, which plain descent must
    exceed, and ``holds_constant`` for the constant momentum (κ − 1)/(κ + 1), see `momentum_holds`.
    Steps whose loss was not measured, as in a quick run, do not count.
    """
    rows = []
    for run in results.runs("fig2", "fig3"):
        momentum, kappa = run.params.momentum, run.last("kappa")[:, None]
        exact, steps = run.last("exact_objective")[:, None], run["iteration"]
        start = run["objective"][:, :1] - exact
        above = run["objective"] - exact
        slow, fast = (start * np.power(1 - kappa**-k, np.maximum(steps, 0)) for k in (2, 1))
        bound = 2 * fast if momentum else slow
        seen = (steps >= 0) & (bound >= 1e-9 * exact) & ~np.isnan(above)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(seen, np.log10(above / bound), -np.inf)
        most = [int(k) for k in steps.max(axis=1)]
        rows += run.rows(
            alpha=run.params.power,
            momentum=momentum,
            kappa=run.last("kappa"),
            worst=ratio.max(axis=1),
            holds=_kept(run, (~seen | (above <= bound * SLACK)).all(axis=1)),
            holds_accelerated=_kept(run, (~seen | (above <= fast * SLACK)).all(axis=1)),
            holds_constant=[
                momentum_holds(float(k), t, (k - 1) / (k + 1)) if momentum else None
                for k, t in zip(kappa[:, 0], most, strict=True)
            ],
        )
    return rows


def _kept(run: Run, below: np.ndarray) -> np.ndarray:
    """Return whether each repeat's descent kept a bound; one that diverged did not."""
    needed = run["objective"][:, 0], run.last("exact_objective"), run.last("objective")
    return np.asarray(flags(below, *needed, failed=run.diverged))


def momentum_holds(kappa: float, steps: int, beta: float) -> bool:
    """Whether a constant momentum meets ``2 (1 − κ⁻¹)^T`` in every direction and step.

    The error in the direction of the eigenvalue x of γ VᵀV, κ⁻² ≤ x ≤ 1, is multiplied by a number
    p_T, and its part of the excess by p_T². x runs over `DIRECTIONS` values.
    """
    x = np.geomspace(kappa**-2, 1.0, DIRECTIONS)
    p = ahead = np.ones(DIRECTIONS)
    bound = 2.0
    for _ in range(steps):
        old, p = p, (1 - x) * ahead
        ahead = p + beta * (p - old)
        bound *= 1 - 1 / kappa
        if bound < np.finfo(float).tiny:
            break
        if np.max(p**2) > bound * SLACK:
            return False
    return True


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


def _seldom(measured: np.ndarray, bound: float, allowed: float) -> bool:
    """Whether values beyond a bound are no more than allowed: a binomial test at 0.001."""
    beyond = int(np.sum(~(measured < bound)))  # a failed draw counts
    return bool(
        scipy.stats.binomtest(beyond, len(measured), allowed, alternative="greater").pvalue >= 0.001
    )
