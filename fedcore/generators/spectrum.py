"""Random matrix with prescribed singular values, divided among clients.

Wang, Liu & Zhang, *Seeking consensus on subspaces in federated principal component analysis*,
define the matrix ``A = U Σ Vᵀ`` of n features and m samples in equations (23) and (24). To get U (n
× n) and V (m × n), matrices with uniform entries in [−1, 1] are orthonormalised. The clients hold
rows of ``Aᵀ = V Σ Uᵀ``.

The uniform matrix Y, from which V is computed, is stored in the arrays that later become the
clients' matrices. Cholesky QR gives ``V = Y R⁻¹``, and the blocks of Y are multiplied in place by
``R⁻¹ Σ Uᵀ``. V itself is stored only if Y is nearly square, and thus ill-conditioned. Otherwise,
memory is needed only for the clients' matrices and some n × n matrices. The exact answer of the PCA
problem (Σ and U) is known. The random draws do not depend on the division into clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import scipy.linalg

from fedcore.errors import InputError
from fedcore.linalg import gram_matrix, orth
from fedcore.problems.problem import Reference
from fedcore.validation import Count, Counts, checked, one_of, real

ROWS = 1024  # per block of the product
# Cholesky QR leaves ‖VᵀV − I‖ of about κ(Y)² eps. κ(Y) is near (1 + √(n/m)) / (1 − √(n/m)), 6 at
# m = 2n. It is large only for nearly square Y, which is small enough for Householder's QR.
WORST_CONDITION = 100.0


@checked
def generate(
    rng: np.random.Generator,
    *,
    n_features: Count = 1000,
    n_clients: Count | None = None,
    n_samples: Count | None = None,
    sizes: Counts | None = None,
    kind: Annotated[str, one_of(("geometric", "arithmetic"))] = "geometric",
    xi: Annotated[float, real(least=1)] = 1.01,
    condition: Annotated[float, real(least=1)] = 100.0,
) -> tuple[list[np.ndarray], Reference]:
    """Draw the clients' parts of a matrix with geometric or arithmetic singular values.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_features : int
        Number n of features.
    n_clients, n_samples : int, optional
        Number of clients, and number m of all samples, which are divided among the clients as
        evenly as possible.
    sizes : sequence of int, optional
        Number of samples of each client, in place of `n_clients` and `n_samples`.
    kind : str
        For ``geometric``, ``Σ_ii = ξ^(1 − i)``. For ``arithmetic``, ``Σ_ii = 1 − (i − 1)/(n − 1) ·
        (1 − 1/κ)``.
    xi : float
        Ratio ξ of neighbouring singular values for ``geometric``.
    condition : float
        Condition number κ for ``arithmetic``.

    Returns
    -------
    clients : list of ndarray of shape (n_i, n_features)
    reference : Reference
        Singular values (diagonal of Σ) and right singular vectors (U) of the stacked clients.

    Raises
    ------
    InputError
        If a value is out of range, there are fewer samples than features, or the division into
        clients is missing or given twice.
    """
    parts = _sizes(n_clients, n_samples, sizes)
    m = sum(parts)
    sigma = singular_values(n_features, kind=kind, xi=xi, condition=condition)
    if m < n_features:
        raise InputError(
            f"n_samples, or the sum of sizes, is {m}, less than n_features = {n_features}"
        )
    U = orth(rng.uniform(-1.0, 1.0, (n_features, n_features)))
    clients = [rng.uniform(-1.0, 1.0, (size, n_features)) for size in parts]
    weighted = sigma[:, None] * U.T
    factor = _cholesky_factor(clients)
    if factor is None:
        ends = np.cumsum(parts)[:-1]
        clients = np.split(orth(np.vstack(clients)), ends)
        clients = [np.ascontiguousarray(client) for client in clients]
    else:
        weighted = scipy.linalg.solve_triangular(factor, weighted, check_finite=False)
    for client in clients:
        for start in range(0, len(client), ROWS):
            rows = client[start : start + ROWS]
            rows[:] = rows @ weighted
    return clients, Reference(sigma, U)


def singular_values(n_features: int, *, kind: str, xi: float, condition: float) -> np.ndarray:
    """Return the diagonal of Σ in descending order, shape (n_features,)."""
    i = np.arange(n_features)
    if kind == "geometric":
        return float(xi) ** -i
    return 1.0 - i / max(n_features - 1, 1) * (1.0 - 1.0 / condition)


def _sizes(n_clients: int | None, n_samples: int | None, sizes: Sequence[int] | None) -> list[int]:
    if (sizes is None) == (n_clients is None) or (n_clients is None) != (n_samples is None):
        raise InputError("give either n_clients and n_samples, or sizes")
    if sizes is None:
        assert n_clients is not None and n_samples is not None
        if n_samples < n_clients:
            raise InputError(f"n_samples = {n_samples} is less than n_clients = {n_clients}")
        few, more = divmod(n_samples, n_clients)
        return [few + (i < more) for i in range(n_clients)]
    return list(sizes)


def _cholesky_factor(blocks: Sequence[np.ndarray]) -> np.ndarray | None:
    """Return R of the QR factorisation of the stacked blocks, or None if R is ill-conditioned."""
    try:
        R = scipy.linalg.cholesky(gram_matrix(blocks), overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return None
    # LAPACK's estimate of κ₁, which is at least κ₂ / n, and in practice above κ₂.
    reciprocal = scipy.linalg.lapack.dtrcon(R)[0]
    return R if reciprocal * WORST_CONDITION * np.sqrt(len(R)) > 1 else None
