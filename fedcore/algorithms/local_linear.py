"""Local Only for linear regression: every client fits its own coefficients, without communication.

Client i computes the least-squares solution θᵢ for its own samples. If the client has fewer samples
than features, θᵢ is the solution of smallest norm. In the notebook of Collins, Hassani, Mokhtari &
Shakkottai (ICML 2021), clients solve a ridge regression with the penalty 1e−5. The method has no
shared representation. For comparison with methods that have one, the columns of ``basis`` are the k
leading right singular vectors of the matrix with rows θᵢ. Reading the rows θᵢ does not count as
communication. When the error for new clients is measured, a client that joins after training fits
all d coefficients.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.federation.federation import Federation, stacked
from fedcore.federation.ledger import Cost, Shape
from fedcore.parts.params import Parameters
from fedcore.problems.clients import Labelled
from fedcore.problems.regression import least_squares


class Params(Parameters):
    """Hyper-parameters of Local Only for linear regression.

    Attributes
    ----------
    n_components : int
        Dimension k of the reported subspace.
    start : None
        The method ignores `start`, because it does not iterate.
    """


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Solve every client's least-squares problem.

    Returns
    -------
    dict
        ``basis``, of shape (n_features, n_components), has the leading right singular vectors of
        the clients' coefficients as columns.
    """

    @stacked
    def solve(data: Labelled, state: Any, message: Any) -> None:
        state.theta = least_squares(data.X, data.y)

    federation.local(solve)
    models = np.array(federation.client_state("theta"))
    # An (n_clients, d) matrix, padded so that fewer than k clients still give k singular vectors.
    rows = np.pad(models, ((0, max(0, params.n_components - len(models))), (0, 0)))
    right_t = np.linalg.svd(rows, full_matrices=False)[2]
    basis = np.ascontiguousarray(right_t[: params.n_components].T)
    record(0, basis=basis, models=models, features=np.eye(federation.shape.n_features))
    return {"basis": basis}


def communication(params: Params, shape: Shape) -> Cost:
    """Return a cost of zero, because clients send and receive nothing."""
    return Cost(0, 0, 0)


ALGORITHM = Algorithm(
    paper="fedrep_linear",
    parameters=Params,
    run=run,
    communication=communication,
    labelled=True,
    citation="The baseline of Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), Section 5.1",
    look=("black", "long-dashed"),
)
