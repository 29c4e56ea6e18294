"""Theorem 8 of the paper `faps`, held against runs with the penalties of Assumption 6.

With b = Σβᵢ and g = λ_p − λ_{p+1}, such a run takes b/g rounds for every factor e, some hundred on
a small problem with a large gap.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from fedcore.linalg import outside
from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Rows

C1 = 0.4  # c₁ of (13); a test holds the runs to it, with c₁' = 1


def theorem_8(results: Results) -> Rows:
    """The two statements of Theorem 8, a row per start, for equal penalties under Assumption 6.

    ``residual`` is ‖P⊥AAᵀZ‖_F / ‖A‖₂² after the last round. Let m(N) be the least sum of the
    theorem among the first N iterates. ``largest`` is the largest N m(N), the C that this run asks
    for, and ``share`` is this over the C of Appendix B; see `constant`.
    """
    return [row for run in results.runs("theorem8") for row in run.rows(**shares(run))]


def shares(run: Run) -> dict[str, np.ndarray]:
    """Return the last residual, the largest n times the least, and its share of the constant."""
    residual, sigma = run["kkt_residual"], run.history.reference["singular_values"]
    draws = np.atleast_2d(sigma)
    top = draws[np.arange(len(residual)) % len(draws), 0] ** 2
    distances = bases_apart(run, top)
    least = np.minimum.accumulate((top[:, None] * residual) ** 2 + distances**2, axis=1)
    largest = (least * np.arange(1, residual.shape[1] + 1)).max(axis=1)
    d, beta = run.data["n_clients"], run.last("penalty") / run.data["n_clients"]
    share = largest / constant(d, beta, top)
    return {"residual": run.last("kkt_residual"), "largest": largest, "share": share}


def bases_apart(run: Run, top: np.ndarray) -> np.ndarray:
    """Bound every ``dᵢ = ‖XᵢXᵢᵀ − ZZᵀ‖_F`` from the Z's alone, shape (repeats, records).

    No history has the Xᵢ. By (33) the distance of the new Xᵢ to the old Z is at most `shrinking`
    times the old dᵢ, and to the new Z by no more than the distance of the two Z larger.
    """
    Z = run.history.iterates["shared"]
    moved = np.sqrt(2.0) * np.array(
        [[np.linalg.norm(outside(*pair)) for pair in pairwise(z)] for z in Z]
    )
    d = run.data["n_clients"]
    factor = shrinking(d, run.last("penalty") / d, top, run.params.delta)
    found = np.zeros((len(Z), Z.shape[1]))
    for k in range(1, Z.shape[1]):
        found[:, k] = factor * found[:, k - 1] + moved[:, k - 1]
    return found


def shrinking(d: int, beta: np.ndarray, square: np.ndarray, delta: float) -> np.ndarray:
    """Return the factor of (33) for d equal penalties, at ‖Aᵢ‖₂² = `square`."""
    sigma = np.sqrt(1 - 1 / (2 * d))
    return 2 * (delta * beta + 4 * square) / (np.sqrt(2.0) * sigma * beta - 8 * square)


def constant(d: int, beta: np.ndarray, square: np.ndarray) -> np.ndarray:
    """Return C of (37) and (38) for p = 1, d equal penalties and ‖Aᵢ‖₂² ≤ `square`.

    Lemma 12 quotes its c₂ from elsewhere. For p = 1, with r = zᵀQz, one step gives
    ``q(Z) − q(Z⁺) ≥ (r − ε) ‖P⊥Qz‖² / (2 ‖Qz‖²)`` if no eigenvalue of Q is below −ε, and
    ‖Λᵢ‖₂ ≤ ‖Aᵢ‖₂²/2 gives r − ε ≥ σ² b − Σ‖Aᵢ‖₂² and ‖Qz‖ ≤ b + Σ‖Aᵢ‖₂²/2. The same bound of Λᵢ
    gives ``L⁽⁰⁾ − L ≤ Σ (‖Aᵢ‖₂²/2 + ‖Aᵢ‖₂⁴/(8 βᵢ))`` for every L.
    """
    sigma_squared, b, a = 1 - 1 / (2 * d), d * beta, d * square
    c4 = C1 * sigma_squared * beta / 4 - (1 + np.sqrt(2 * d)) / d * square
    c2 = (sigma_squared * b - a) / (2 * (b + a / 2) ** 2)
    inverse_c3 = ((b + 4 * a) / np.sqrt(2 * d * c4) + c2**-0.5) ** 2
    return (inverse_c3 + 1 / c4) * a * (0.5 + square / (8 * beta))
