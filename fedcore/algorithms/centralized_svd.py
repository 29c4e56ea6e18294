"""Centralised truncated SVD, whose error no factorisation of the same rank can beat.

Every client uploads its raw data once, so the method gives no privacy.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.linalg

from fedcore.algorithms import Algorithm
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.iterates import ExactFactors
from fedcore.linalg import triangular_factor
from fedcore.parts.params import Parameters


class Params(Parameters):
    """Hyper-parameters of a method that computes its subspace directly, without iterations.

    Attributes
    ----------
    start : None
        The method ignores `start`, because it does not iterate.
    """


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Gather the data of all clients on the server and compute their SVD.

    Returns
    -------
    dict
        ``V``, of shape (n_features, n_components), has the leading right singular vectors as
        columns.
    """

    def upload(data: np.ndarray, state: SimpleNamespace, message: Any) -> np.ndarray:
        return data

    factor = triangular_factor(federation.gather(upload))
    right_t = scipy.linalg.svd(factor, full_matrices=False)[2]
    V = np.ascontiguousarray(right_t[: params.n_components].T)
    federation.broadcast(V)
    record(0, factors=ExactFactors(V))
    return {"V": V}


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run: clients upload all n·d numbers, and each downloads V."""
    return Cost(
        rounds=1,
        scalars_up=shape.n_samples * shape.n_features,
        scalars_down=shape.n_clients * shape.n_features * params.n_components,
    )


ALGORITHM = Algorithm(
    paper="factorization",
    parameters=Params,
    run=run,
    communication=communication,
    citation="Eckart & Young (1936)",
    look=("black", "dotted"),
)
