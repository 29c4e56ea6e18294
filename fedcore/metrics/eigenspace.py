"""Metrics of an approximate eigenspace range(Z) of AAᵀ = SᵀS, S the stacked clients.

The metrics use the problem's reference ``AAᵀ = W Σ² Wᵀ`` and C = WᵀZ, without a pass over the data.
Z is the orthonormalised iterate. Rounding limits the residuals to about 1e−15 ‖A‖₂², the error of
the singular values to about 1e−16, and the relative change of `captured` to about 1e−15.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from fedcore.iterates import Iterate
from fedcore.linalg import column_space
from fedcore.metrics import intermediate, metric
from fedcore.problems.problem import Problem


@metric("1", "‖P⊥ AAᵀZ‖_F / ‖A‖_F², the scaled KKT violation")
def kkt(iterate: Iterate, problem: Problem) -> float:
    """Return the scaled KKT violation ``‖P⊥_Z AAᵀ Z‖_F / ‖A‖_F²`` of Wang, Liu & Zhang."""
    return _residual(iterate, problem) / float(np.sum(_spectrum(problem)[0] ** 2))


@metric("1", "‖P⊥ AAᵀZ‖_F / ‖A‖₂²")
def kkt_residual(iterate: Iterate, problem: Problem) -> float:
    """Return ``‖P⊥_Z AAᵀ Z‖_F / ‖A‖₂²``; stopping at 1e−4 explains the paper's errors."""
    return _residual(iterate, problem) / float(_spectrum(problem)[0][0] ** 2)


@metric("data units squared", "Σᵢ ‖AᵢᵀZ‖_F²")
def captured(iterate: Iterate, problem: Problem) -> float:
    """Return ``Σᵢ ‖AᵢᵀZ‖_F²``, whose relative change ends a run in the paper's rule (27)."""
    square = np.sum(_projected(iterate, problem)[-1] ** 2)
    return float(np.ldexp(square, 2 * _spectrum(problem)[1]))


@metric("1", "relative error, in the Frobenius norm, of the p leading singular values")
def singular_value_error(iterate: Iterate, problem: Problem) -> float:
    """Return ``‖Σ(Z) − Σ*‖_F / ‖Σ*‖_F``, Σ(Z) the singular values of AᵀZ, as the paper defines.

    A basis of rank below its number of columns gives zeros for the missing singular values.
    """
    weighted = _projected(iterate, problem)[-1]
    found = scipy.linalg.svdvals(weighted, check_finite=False)
    exact = _spectrum(problem)[0][: iterate.shared.shape[1]]
    found = np.pad(found, (0, len(exact) - len(found)))
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def _spectrum(problem: Problem) -> tuple[np.ndarray, int]:
    """Return Σ / 2^e, and e. σ₁ / 2^e is of order one, so that fourth powers stay in range."""
    exponent = int(np.frexp(problem.singular_values[0])[1])
    return np.ldexp(problem.singular_values, -exponent), exponent


@intermediate
def _residual(iterate: Iterate, problem: Problem) -> float:
    """‖AAᵀZ − Z Zᵀ AAᵀZ‖_F / 4^e with AAᵀZ = W Σ (Σ C) and ZᵀAAᵀZ = (Σ C)ᵀ(Σ C).

    If W is square, the norm is computed in the coordinates of W, in which Z is C.
    """
    Z, C, weighted = _projected(iterate, problem)
    W, product = problem.right_vectors, _spectrum(problem)[0][:, None] * weighted
    if len(W) == len(C):
        Z = C
    else:
        product = W @ product
    return float(np.linalg.norm(product - Z @ (weighted.T @ weighted)))


@intermediate
def _projected(iterate: Iterate, problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return Z, C, and Σ C / 2^e; the norms of the last are those of AᵀZ / 2^e."""
    Z = column_space(iterate.shared)
    C = (Z.T @ problem.right_vectors).T
    return Z, C, _spectrum(problem)[0][:, None] * C


METRICS = (kkt, kkt_residual, captured, singular_value_error)
