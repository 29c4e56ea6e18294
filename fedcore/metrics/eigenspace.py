"""Metrics of an approximate eigenspace range(Z) of AAᵀ = SᵀS, where S stacks the clients' samples.

Z is an orthonormal basis of the column space of the algorithm's current matrix. The metrics use the
problem's exact eigendecomposition ``AAᵀ = W Σ² Wᵀ`` and C = WᵀZ, without a pass over the data.
Rounding errors are about 1e−15 ‖A‖₂² for residuals, 1e−16 for singular values, and 1e−15 for the
relative change of `captured`.
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
    """Return the KKT violation of Wang, Liu & Zhang, ``‖(I − ZZᵀ) AAᵀZ‖_F / ‖A‖_F²``."""
    return _residual(iterate, problem) / float(np.sum(_spectrum(problem)[0] ** 2))


@metric("1", "‖P⊥ AAᵀZ‖_F / ‖A‖₂²")
def kkt_residual(iterate: Iterate, problem: Problem) -> float:
    """Return ``‖(I − ZZᵀ) AAᵀZ‖_F / ‖A‖₂²``, the residual relative to the largest eigenvalue.

    Wang, Liu & Zhang report the errors of runs that stop at a residual of 1e−4.
    """
    return _residual(iterate, problem) / float(_spectrum(problem)[0][0] ** 2)


@metric("data units squared", "Σᵢ ‖AᵢᵀZ‖_F²")
def captured(iterate: Iterate, problem: Problem) -> float:
    """Return ``‖AᵀZ‖_F²``; the stop rule (27) of Wang, Liu & Zhang limits its relative change."""
    square = np.sum(_projected(iterate, problem)[-1] ** 2)
    return float(np.ldexp(square, 2 * _spectrum(problem)[1]))


@metric("1", "relative error, in the Frobenius norm, of the p leading singular values")
def singular_value_error(iterate: Iterate, problem: Problem) -> float:
    """Return ``‖Σ(Z) − Σ*‖_F / ‖Σ*‖_F``, the error of the singular values Σ(Z) of AᵀZ.

    Σ* contains the exact leading singular values of A, as many as the algorithm's current matrix
    has columns. If this matrix is rank-deficient, missing singular values in Σ(Z) count as zero.
    """
    weighted = _projected(iterate, problem)[-1]
    found = scipy.linalg.svdvals(weighted, check_finite=False)
    exact = _spectrum(problem)[0][: iterate.shared.shape[1]]
    found = np.pad(found, (0, len(exact) - len(found)))
    return float(np.linalg.norm(found - exact) / np.linalg.norm(exact))


def _spectrum(problem: Problem) -> tuple[np.ndarray, int]:
    """Return the scaled singular values Σ / 2^e, and the exponent e.

    The largest scaled value is of order one, so that fourth powers do not over- or underflow.
    """
    exponent = int(np.frexp(problem.singular_values[0])[1])
    return np.ldexp(problem.singular_values, -exponent), exponent


@intermediate
def _residual(iterate: Iterate, problem: Problem) -> float:
    """Return ‖AAᵀZ − Z Zᵀ AAᵀZ‖_F / 4^e, where `_spectrum` returns the exponent e.

    The products are AAᵀZ = W Σ (Σ C) and ZᵀAAᵀZ = (Σ C)ᵀ(Σ C). If W is square, the norm is computed
    in the basis W, where Z has the coordinates C.
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
    """Return Z, C = WᵀZ, and Σ C / 2^e, which has the same norms as AᵀZ / 2^e."""
    Z = column_space(iterate.shared)
    C = (Z.T @ problem.right_vectors).T
    return Z, C, _spectrum(problem)[0][:, None] * C


METRICS = (kkt, kkt_residual, captured, singular_value_error)
