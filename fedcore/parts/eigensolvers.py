"""Iterations for the dominant eigenspaces of symmetric matrices H, which need only products with H.

Each function works on a stack of matrices H. The basis for each H is a matrix X of p orthonormal
rows. X and X H have shape (…, p, n). A solver is a generator ``solver(product, X, XH, signs)`` that
starts from a pair (X, X H) and yields one new pair per product. No n × n matrix is formed. The
results for one matrix H do not depend on the other matrices of the stack.

A stopping rule ``rule(limits, X, XH)`` takes thresholds, as `Limits`, and the first pair (X, X H).
The rule returns a function ``enough(old, X, XH)``, which gets each new pair and the previous basis
``old``, and returns for each matrix H whether to stop. The numbers of rules, such as (13), are
those of equations of Wang, Liu & Zhang (see `fedcore.algorithms.faps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import scipy.linalg

from fedcore.linalg import orth, orth_householder

Product = Callable[[np.ndarray], np.ndarray]
Pairs = Iterator[tuple[np.ndarray, np.ndarray]]
Enough = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

MEMORY = 3  # blocks that `krylov` keeps besides the latest; the first choice of Liu, Wen & Zhang
RANK_TOLERANCE = 1e-8  # relative to the largest singular value; directions below it are dropped


def transposed(stack: np.ndarray) -> np.ndarray:
    """Return the transpose of every matrix of a stack."""
    return np.swapaxes(stack, -1, -2)


def outside(X: np.ndarray, M: np.ndarray) -> np.ndarray:
    """Return ``M − (M Xᵀ) X``, the part of M's rows that is orthogonal to the rows of X."""
    return M - (M @ transposed(X)) @ X


def norm(stack: np.ndarray) -> np.ndarray:
    """Return the Frobenius norm of every matrix of a stack."""
    entries = stack.reshape(*stack.shape[:-2], 1, -1)
    return np.sqrt(entries @ transposed(entries))[..., 0, 0]


def positive(M: np.ndarray) -> np.ndarray:
    """Orthonormalise the rows of M, with the signs of a QR factorisation that has diag(R) ≥ 0."""
    return transposed(orth(transposed(M)))


def arbitrary(M: np.ndarray) -> np.ndarray:
    """Orthonormalise the rows of M, with the signs that LAPACK's QR factorisation gives."""
    each = [orth_householder(one.T).T for one in M.reshape(-1, *M.shape[-2:])]
    return np.reshape(each, M.shape)


SIGNS = {"positive": positive, "arbitrary": arbitrary}


def power(product: Product, X: np.ndarray, XH: np.ndarray, signs: str) -> Pairs:
    """Run subspace iteration, ``X ← orth(X H)``."""
    while True:
        X = SIGNS[signs](XH)
        XH = product(X)
        yield X, XH


def ritz(product: Product, X: np.ndarray, XH: np.ndarray, signs: str) -> Pairs:
    """Run subspace iteration with a Rayleigh–Ritz step (Rutishauser 1970; Stewart 1976).

    For signs ``arbitrary``, Ritz vectors have the signs of LAPACK's eigenvectors. For signs
    ``positive``, Ritz vector i has a non-negative inner product with row i of X.
    """
    while True:
        X = SIGNS[signs](XH)
        XH = product(X)
        S = transposed(np.linalg.eigh(X @ transposed(XH))[1])[..., ::-1, :]
        if signs == "positive":
            diagonal = np.diagonal(S, axis1=-2, axis2=-1)[..., None]
            S = S * np.where(diagonal < 0, -1.0, 1.0).astype(S.dtype)
        X, XH = S @ X, S @ XH
        yield X, XH


def krylov(product: Product, X: np.ndarray, XH: np.ndarray, signs: str) -> Pairs:
    """Run LMSVD: subspace iteration from the best basis in the span of the latest iterates.

    The method is from Liu, Wen & Zhang, *Limited memory block Krylov subspace optimization for
    computing dominant singular value decompositions* (SISC 2013).
    """
    blocks = [(X, XH)]
    while True:
        X = SIGNS[signs](_best_image(blocks))
        XH = product(X)
        blocks = [*blocks[-MEMORY:], (X, XH)]
        yield X, XH


SOLVERS = {"power": power, "ritz": ritz, "krylov": krylov}


class Limits(NamedTuple):
    """Thresholds of the stopping rules.

    Attributes
    ----------
    tolerance : float
        The largest relative change ε_x at which rule (26) stops.
    delta : float
        The factor δ of rule (14), which stops when the residual has fallen to δ times its first
        value.
    scale : float or ndarray of shape (…)
        The divisor ``c₁'‖A‖₂² + β`` of rule (13), with c₁' = 1.
    """

    tolerance: float
    delta: float
    scale: float | np.ndarray


def relative_change(limits: Limits, X: np.ndarray, XH: np.ndarray) -> Enough:
    """Stop by rule (26), if ``‖X − X'‖_F ≤ ε_x ‖X‖_F``, where X' is the previous basis.

    A row that changes only its sign counts as changed.
    """
    return lambda old, X, XH: norm(X - old) <= limits.tolerance * norm(X)


def subspace_change(limits: Limits, X: np.ndarray, XH: np.ndarray) -> Enough:
    """Stop by rule (26) for projections, if ``‖XᵀX − X'ᵀX'‖_F ≤ ε_x ‖XᵀX‖_F``.

    X' is the previous basis.
    """
    return lambda old, X, XH: np.sqrt(2.0) * norm(outside(old, X)) <= limits.tolerance * norm(X)


def residual(limits: Limits, X: np.ndarray, XH: np.ndarray) -> Enough:
    """Stop by rule (14), if the residual ``‖X H P⊥‖_F`` is at most δ times its first value.

    P⊥ is the projection I − XᵀX. Whatever δ is, the iteration also stops if the residual is as
    small as rounding errors.
    """
    goal = limits.delta * norm(outside(X, XH))

    def enough(old: np.ndarray, X: np.ndarray, XH: np.ndarray) -> np.ndarray:
        rounding = 500 * np.finfo(XH.dtype).eps * norm(XH)
        return norm(outside(X, XH)) <= np.maximum(goal, rounding)

    return enough


def decrease(limits: Limits, X: np.ndarray, XH: np.ndarray) -> Enough:
    """Stop by rule (13), if ``½ tr X H Xᵀ`` has grown by a required amount since the first basis X.

    The required growth is ``c₁ ‖X H P⊥‖_F² / (c₁'‖A‖₂² + β)``, where X is the first basis, c₁ = ½
    and P⊥ = I − XᵀX.
    """
    goal = _traces(X, XH) + norm(outside(X, XH)) ** 2 / limits.scale
    return lambda old, X, XH: _traces(X, XH) >= goal


def never(limits: Limits, X: np.ndarray, XH: np.ndarray) -> Enough:
    """Never stop; the iteration ends when the caller has taken its number of steps."""
    return lambda old, X, XH: np.zeros(X.shape[:-2], bool)


RULES = {
    "relative_change": relative_change,
    "subspace_change": subspace_change,
    "residual": residual,
    "decrease": decrease,
    "fixed": never,
}


def _traces(X: np.ndarray, XH: np.ndarray) -> np.ndarray:
    return np.sum(X * XH, axis=(-2, -1))


def _best_image(blocks: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return X H for each H; the rows of X are the p leading Ritz vectors in the blocks' span."""
    X, XH = blocks[-1]
    if len(blocks) == 1:
        return XH
    rows, images = (np.concatenate(stacks, axis=-2) for stacks in zip(*blocks, strict=True))
    pairs = (stack.reshape(-1, *stack.shape[-2:]) for stack in (rows, images))
    best = [_best(own, image, X.shape[-2]) for own, image in zip(*pairs, strict=True)]
    return np.reshape(best, X.shape)


def _best(rows: np.ndarray, images: np.ndarray, p: int) -> np.ndarray:
    right, sizes, left = scipy.linalg.svd(rows, full_matrices=False, check_finite=False)
    kept = sizes > RANK_TOLERANCE * sizes[0]
    image = (right[:, kept] / sizes[kept]).T @ images
    S = scipy.linalg.eigh(left[kept] @ image.T, check_finite=False)[1]
    return S[:, ::-1][:, :p].T @ image
