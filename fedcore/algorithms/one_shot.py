"""One-shot averaging of local subspaces.

Client i computes the p leading right singular vectors Vᵢ of its own data, with n features, and
sends them. The server takes the p leading eigenvectors of the projection averaged over the N
clients, (1/N) Σᵢ VᵢVᵢᵀ. The code computes the eigenvectors as left singular vectors of ``[V₁ …
V_N]``, so the n×n projection is not formed. The method takes one round. The result is exact if all
clients have the same top subspace. The average is unweighted, as in Fan, Wang, Wang & Zhu (Annals
of Statistics 2019), whose clients have equally many samples. A client whose data have a rank below
p sends zeros in the last columns of Vᵢ.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.linalg

from fedcore.algorithms import Algorithm
from fedcore.algorithms.centralized_svd import Params
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.linalg import triangular_factor


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Average the projections on the clients' top subspaces, and return the leading eigenvectors.

    Returns
    -------
    dict
        Orthonormal ``basis`` of shape (n_features, n_components).
    """

    def top_subspace(data: np.ndarray, state: SimpleNamespace, message: Any) -> np.ndarray:
        factor = triangular_factor([data]).T
        left, sigma, _ = scipy.linalg.svd(factor, full_matrices=False, check_finite=False)
        zero = max(factor.shape) * np.finfo(factor.dtype).eps * sigma[0]
        V = left[:, sigma > zero][:, : params.n_components]
        return np.pad(V, ((0, 0), (0, params.n_components - V.shape[1])))

    stacked = np.hstack(federation.gather(top_subspace))
    left = scipy.linalg.svd(stacked, full_matrices=False, check_finite=False)[0]
    Z = np.ascontiguousarray(left[:, : params.n_components])
    record(0, basis=Z)
    return {"basis": Z}


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run: every client uploads its n×p matrix Vᵢ."""
    return Cost(1, shape.n_clients * shape.n_features * params.n_components, 0)


ALGORITHM = Algorithm(
    paper="faps",
    parameters=Params,
    run=run,
    communication=communication,
    citation=(
        "Fan, Wang, Wang & Zhu, *Distributed estimation of principal eigenspaces* (Annals of "
        "Statistics 2019), Algorithm 1"
    ),
    look=("sky", "dashed"),
)
