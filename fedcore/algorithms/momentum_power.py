"""Distributed subspace iteration with momentum.

The method is in none of the five papers that fedcore reproduces. The messages are the same as in
simultaneous subspace iteration (`ssi`), but the server also stores the previous block. With the
samples of all clients as columns of A, the method is the three-term recursion ``Y ← AAᵀ Y − β Y₋``,
where Y₋ is the previous block. Each new block is orthonormalised, and the previous block is
transformed in the same way:

    Y⁽ᵏ⁺¹⁾ = AAᵀ Z⁽ᵏ⁾ − β Z⁽ᵏ⁻¹⁾ R_k⁻¹,   Z⁽ᵏ⁺¹⁾ R_{k+1} = Y⁽ᵏ⁺¹⁾ (QR),   Z⁽⁻¹⁾ = 0.

The best β for blocks of p columns is (λ_{p+1}/2)², where λ_{p+1} is the (p+1)-st eigenvalue of AAᵀ.
With the best β a round multiplies the error by about 1 − √(2 gap), instead of 1 − gap as in `ssi`,
where gap = 1 − λ_{p+1}/λ_p. If `sigma_next` is not given, the server computes the (p+1)-st Ritz
value in span[Z⁽ᵏ⁾ Z⁽ᵏ⁻¹⁾] in every round, from products with AAᵀ that it already has. The estimate
of λ_{p+1} is the largest of these Ritz values so far. The (p+1)-st Ritz value is at most λ_{p+1},
so the β from this estimate is at most the best β, up to rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from fedcore.algorithms import Algorithm, ssi
from fedcore.algorithms.ssi import communication, starting_basis
from fedcore.federation.federation import Federation
from fedcore.linalg import qr_positive
from fedcore.parts.convergence_test import ConvergenceTest, by_ritz_values, join_blocks
from fedcore.parts.gram_products import gram_product
from fedcore.validation import NonNegative


@dataclass(frozen=True)
class Params(ssi.Params):
    """Hyper-parameters that the method adds to those of `ssi.Params`.

    Attributes
    ----------
    sigma_next : float, optional
        The (p+1)-st singular value of A, in data units, which determines β. By default, the server
        estimates it from Ritz values.
    """

    sigma_next: NonNegative | None = None


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run the power method with momentum.

    Returns
    -------
    dict
        Orthonormal ``basis`` of shape (n_features, n_components). ``beta`` is the β of the last
        round, in data units to the fourth power. If `tol` is positive, the dict also contains the
        entries of `fedcore.parts.convergence_test.ConvergenceTest.output`.
    """
    p = params.n_components
    test = ConvergenceTest(params.tol, federation.shape, p)
    known = params.sigma_next
    eigenvalue = 0.0 if known is None else known * known  # λ_{p+1}, or its largest lower bound
    Z = starting_basis(federation, params, rng)
    Z_old = U_old = carried = np.zeros_like(Z)
    record(0, basis=Z[:, :p])
    for k in record.rounds(params.rounds):
        federation.broadcast(Z)
        U = federation.sum(gram_product)  # AAᵀ Z
        if Z.shape[1] > p:
            Z, U, carried = by_ritz_values(Z, U, carried)
        span = join_blocks(Z, U, Z_old, U_old) if known is None and k > 1 else None
        if span is not None:
            eigenvalue = max(eigenvalue, next_ritz_value(*span, Z.shape[1]))
        arrived = test.blocks(Z, U, span)
        Z_old, U_old = Z, U
        # β R⁻¹ in two factors: (λ/2)² may overflow when the product does not.
        half, e = math.frexp(eigenvalue / 2)
        Z, R = qr_positive(U - half**2 * np.ldexp(carried, 2 * e))
        carried = Z_old @ _inverse(R)
        record(k, basis=Z[:, :p], last=arrived)
    return {"basis": Z[:, :p], "beta": np.float64(eigenvalue / 2) ** 2, **test.output()}


def next_ritz_value(V: np.ndarray, AV: np.ndarray, p: int) -> float:
    """Return the (p+1)-st largest Ritz value of AAᵀ in range(V), or 0 if V has only p columns.

    V has orthonormal columns, and the argument `AV` is the product of AAᵀ and V.
    """
    if V.shape[1] == p:
        return 0.0
    T = V.T @ AV
    return float(np.linalg.eigvalsh((T + T.T) / 2)[-p - 1])


def _inverse(R: np.ndarray) -> np.ndarray:
    """Return R⁻¹; diagonal entries of R below the rounding level are raised to this level first."""
    diagonal = np.diagonal(R)
    floor = max(np.finfo(R.dtype).eps * diagonal.max(), np.finfo(R.dtype).tiny)
    lifted = R + np.diag(np.maximum(floor - diagonal, 0))
    unit = np.eye(len(R), dtype=R.dtype)
    return scipy.linalg.solve_triangular(lifted, unit, check_finite=False)


ALGORITHM = Algorithm(
    paper="faps",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    gram_products_only=True,
    citation=(
        "Xu, He, De Sa, Mitliagkas & Ré, *Accelerated stochastic power iteration* (AISTATS 2018)"
    ),
    look=("orange", "dashed"),
)
