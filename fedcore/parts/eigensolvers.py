"""Iterations for the dominant eigenspaces of symmetric matrices H, which need only products with H.

Each function works on a stack of matrices H. The basis for each H is a matrix X of p orthonormal
rows. X and X H have shape (…, p, n). A solver is a function ``solver(H, pairs, signs)`` that takes
the latest pairs (X, X H) and returns the next one, for which it multiplies once. No n × n matrix is
formed. The results for one matrix H do not depend on the other matrices of the stack.

A stopping rule ``rule(limits, X, XH)`` takes thresholds, as `Limits`, and the first pair (X, X H).
The rule returns a function ``enough(old, X, XH)``, which gets each new pair and the previous basis
``old``, and returns for each matrix H whether to stop. The numbers of rules, such as (13), are
those of equations of Wang, Liu & Zhang (see `fedcore.algorithms.faps`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import scipy.linalg

from fedcore.linalg import orth, orth_householder

Pair = tuple[np.ndarray, np.ndarray]
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


class Matrices(Protocol):
    """A stack of symmetric n × n matrices H."""

    def times(self, X: np.ndarray) -> np.ndarray:
        """Return X H for each matrix, where X has shape (…, p, n)."""

    def of(self, chosen: np.ndarray) -> Matrices:
        """Return the matrices for which `chosen`, a Boolean array, is true."""


def power(H: Matrices, pairs: Sequence[Pair], signs: str) -> Pair:
    """Make a step of subspace iteration, ``X ← orth(X H)``."""
    X = SIGNS[signs](pairs[-1][1])
    return X, H.times(X)


def ritz(H: Matrices, pairs: Sequence[Pair], signs: str) -> Pair:
    """Make a step of subspace iteration and a Rayleigh–Ritz step (Rutishauser 1970; Stewart 1976).

    For signs ``arbitrary``, Ritz vectors have the signs of LAPACK's eigenvectors. For signs
    ``positive``, Ritz vector i has a non-negative inner product with row i of X.
    """
    X, XH = power(H, pairs, signs)
    S = transposed(np.linalg.eigh(X @ transposed(XH))[1])[..., ::-1, :]
    if signs == "positive":
        diagonal = np.diagonal(S, axis1=-2, axis2=-1)[..., None]
        S = S * np.where(diagonal < 0, -1.0, 1.0).astype(S.dtype)
    return S @ X, S @ XH


def krylov(H: Matrices, pairs: Sequence[Pair], signs: str) -> Pair:
    """Make a step of LMSVD: subspace iteration from the best basis in the span of `pairs`.

    The method is from Liu, Wen & Zhang, *Limited memory block Krylov subspace optimization for
    computing dominant singular value decompositions* (SISC 2013).
    """
    X = SIGNS[signs](_best_image(pairs))
    return X, H.times(X)


SOLVERS = {"power": power, "ritz": ritz, "krylov": krylov}


def iterate(
    H: Matrices, X: np.ndarray, XH: np.ndarray, enough: Enough, solver: str, signs: str, steps: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Improve the basis for each matrix H until its stopping rule stops.

    A matrix whose rule has stopped takes part in no further product.

    Parameters
    ----------
    H : Matrices
    X, XH : ndarray of shape (…, p, n)
        Pairs (X, X H) with which the iteration starts.
    enough : callable
        Function that a stopping rule has returned for all these matrices.
    solver, signs : str
        Keys of ``SOLVERS`` and ``SIGNS``.
    steps : int
        Largest number of steps.

    Returns
    -------
    X, XH : ndarray of shape (…, p, n)
    made : ndarray of int of shape (…)
        Number of steps for each matrix.
    """
    going, pairs = np.ones(X.shape[:-2], bool), [(X, XH)]
    made = np.zeros(going.shape, int)
    for _ in range(steps):
        pair = SOLVERS[solver](H, pairs, signs)
        old, X, XH = X, np.array(X), np.array(XH)
        X[going], XH[going] = pair
        made[going] += 1
        on = going & ~enough(old, X, XH)
        if not on.any():
            break
        pairs = [*pairs[-MEMORY:], pair]
        if (on != going).any():
            rest = on[going]
            H, pairs = H.of(rest), [(old_X[rest], old_XH[rest]) for old_X, old_XH in pairs]
            going = on
    return X, XH, made


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


def _best_image(blocks: Sequence[Pair]) -> np.ndarray:
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
