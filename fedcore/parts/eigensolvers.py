"""Iterations for the dominant eigenspace of a symmetric matrix H, from products H X alone.

A solver is a generator ``solver(product, X, HX, signs)``. It starts from an orthonormal X of shape
(n, p) and H X, and yields one pair (X, H X) per product. No n × n matrix is formed.

A rule ``rule(limits, X, HX)`` takes the first pair and returns ``enough(old, X, HX)``, which says
whether to stop at a new pair; ``old`` is the basis before it. Equation numbers are those of Wang,
Liu & Zhang (see `fedcore.algorithms.faps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.linalg

from fedcore.linalg import orth, orth_householder, outside

Product = Callable[[np.ndarray], np.ndarray]
Pairs = Iterator[tuple[np.ndarray, np.ndarray]]
Enough = Callable[[np.ndarray, np.ndarray, np.ndarray], bool]

MEMORY = 3  # blocks that `krylov` keeps besides the latest; the first choice of Liu, Wen & Zhang
RANK_TOLERANCE = 1e-8  # relative to the largest singular value; directions below it are dropped


SIGNS = {"positive": orth, "arbitrary": orth_householder}


def power(product: Product, X: np.ndarray, HX: np.ndarray, signs: str) -> Pairs:
    """Subspace iteration, ``X ← orth(H X)``."""
    while True:
        X = SIGNS[signs](HX)
        HX = product(X)
        yield X, HX


def ritz(product: Product, X: np.ndarray, HX: np.ndarray, signs: str) -> Pairs:
    """Subspace iteration with a Rayleigh–Ritz step (Rutishauser 1970; Stewart 1976).

    Signs ``arbitrary`` are those of LAPACK's eigenvectors. Signs ``positive`` give every Ritz
    vector a non-negative inner product with the column of X of the same number.
    """
    while True:
        X = SIGNS[signs](HX)
        HX = product(X)
        S = scipy.linalg.eigh(X.T @ HX, check_finite=False)[1][:, ::-1]
        if signs == "positive":
            S = S * np.where(np.diagonal(S) < 0, -1.0, 1.0).astype(S.dtype)
        X, HX = X @ S, HX @ S
        yield X, HX


def krylov(product: Product, X: np.ndarray, HX: np.ndarray, signs: str) -> Pairs:
    """Subspace iteration from the best basis in the span of the latest iterates (LMSVD).

    Liu, Wen & Zhang, *Limited memory block Krylov subspace optimization for computing dominant
    singular value decompositions* (SIAM J. Sci. Comput. 2013).
    """
    blocks = [(X, HX)]
    while True:
        X = SIGNS[signs](_best_image(blocks))
        HX = product(X)
        blocks = [*blocks[-MEMORY:], (X, HX)]
        yield X, HX


SOLVERS = {"power": power, "ritz": ritz, "krylov": krylov}


class Limits(NamedTuple):
    """Thresholds of the rules.

    Attributes
    ----------
    tolerance : float
        ε_x of (26).
    delta : float
        δ of (14).
    scale : float
        ``c₁'‖A‖₂² + β`` of (13), with c₁' = 1.
    """

    tolerance: float
    delta: float
    scale: float


def relative_change(limits: Limits, X: np.ndarray, HX: np.ndarray) -> Enough:
    """(26), ``‖X − X'‖_F ≤ ε_x ‖X‖_F``: a column that changes sign counts as a change."""
    return lambda old, X, HX: bool(np.linalg.norm(X - old) <= limits.tolerance * np.linalg.norm(X))


def subspace_change(limits: Limits, X: np.ndarray, HX: np.ndarray) -> Enough:
    """(26) for projections instead of bases, ``‖XXᵀ − X'X'ᵀ‖_F ≤ ε_x ‖XXᵀ‖_F``."""
    return lambda old, X, HX: bool(
        np.sqrt(2.0) * np.linalg.norm(outside(old, X)) <= limits.tolerance * np.linalg.norm(X)
    )


def residual(limits: Limits, X: np.ndarray, HX: np.ndarray) -> Enough:
    """(14): ``‖P⊥ H X‖_F`` is at most δ times its first value, or of the order of rounding."""
    goal = limits.delta * np.linalg.norm(outside(X, HX))

    def enough(old: np.ndarray, X: np.ndarray, HX: np.ndarray) -> bool:
        rounding = 500 * np.finfo(HX.dtype).eps * np.linalg.norm(HX)
        return bool(np.linalg.norm(outside(X, HX)) <= max(goal, rounding))

    return enough


def decrease(limits: Limits, X: np.ndarray, HX: np.ndarray) -> Enough:
    """(13): ``½ tr XᵀHX`` has grown by ``c₁ ‖P⊥ H X‖_F² / (c₁'‖A‖₂² + β)``, c₁ = ½."""
    goal = np.sum(X * HX) + np.linalg.norm(outside(X, HX)) ** 2 / limits.scale
    return lambda old, X, HX: bool(np.sum(X * HX) >= goal)


def never(limits: Limits, X: np.ndarray, HX: np.ndarray) -> Enough:
    """Never stop: the caller's number of steps decides."""
    return lambda old, X, HX: False


RULES = {
    "relative_change": relative_change,
    "subspace_change": subspace_change,
    "residual": residual,
    "decrease": decrease,
    "fixed": never,
}


def _best_image(blocks: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """H times the p leading Ritz vectors of H in the span of all blocks (Rayleigh–Ritz)."""
    X, HX = blocks[-1]
    if len(blocks) == 1:
        return HX
    left, sizes, right = scipy.linalg.svd(
        np.hstack([block for block, _ in blocks]), full_matrices=False, check_finite=False
    )
    kept = sizes > RANK_TOLERANCE * sizes[0]
    image = np.hstack([image for _, image in blocks]) @ (right[kept].T / sizes[kept])
    S = scipy.linalg.eigh(left[:, kept].T @ image, check_finite=False)[1]
    return image @ S[:, ::-1][:, : X.shape[1]]
