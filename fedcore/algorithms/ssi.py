"""Distributed simultaneous subspace iteration (SSI), the distributed power method.

Each round multiplies the server's basis Z by the Gram matrix of the data of all clients:

    Z⁽ᵏ⁺¹⁾ ∈ orth(Σᵢ AᵢAᵢᵀ Z⁽ᵏ⁾).

The columns of Aᵢ are the samples of client i. The first basis Z⁽⁰⁾ is drawn with uniform entries in
[−1, 1] and then orthonormalised. In each round every client receives one n×p matrix and sends one,
for n features and p columns of Z. The server does not send the final Z to the clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.linalg import orth
from fedcore.parts.convergence_test import ConvergenceTest, by_ritz_values
from fedcore.parts.gram_products import gram_product
from fedcore.parts.params import Parameters
from fedcore.validation import CountOrZero, real


@dataclass(frozen=True)
class Rounds(Parameters):
    """Hyper-parameters of methods that iterate from a starting basis.

    Attributes
    ----------
    n_components : int
        Number p of columns of Z.
    rounds : int
        Number of iterations, each with one communication round.
    """

    rounds: CountOrZero = 3000


@dataclass(frozen=True)
class Params(Rounds):
    """Hyper-parameters of SSI, with a tolerance that may end a run before its last round.

    Attributes
    ----------
    tol : float
        Tolerance for the sine of the largest angle between range(Z) and the leading eigenspace. The
        run ends when `fedcore.parts.convergence_test` estimates that the sine is at most `tol`. The
        estimate needs no communication. With `tol` = 0 the run makes all rounds.
    n_oversamples : int
        Number of additional columns of Z. Z has `n_components` + `n_oversamples` columns, but at
        most as many as there are features. With one additional column, the convergence test
        estimates the singular value that follows the last wanted one, and notices if these two
        singular values are equal.
    """

    tol: Annotated[float, real(least=0, below=1)] = 0.0
    n_oversamples: CountOrZero = 0

    def columns(self, n_features: int) -> int:
        """Return the number of columns of Z, including `n_oversamples`."""
        return min(self.n_components + self.n_oversamples, n_features)


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run SSI.

    Returns
    -------
    dict
        Orthonormal ``basis`` of shape (n_features, n_components). If `tol` is positive, the dict
        also contains the entries of `fedcore.parts.convergence_test.ConvergenceTest.output`.
    """
    p = params.n_components
    test = ConvergenceTest(params.tol, federation.shape, p)
    Z = starting_basis(federation, params, rng)
    record(0, basis=Z[:, :p])
    for k in record.rounds(params.rounds):
        federation.broadcast(Z)
        U = federation.sum(gram_product)
        if Z.shape[1] > p:
            Z, U = by_ritz_values(Z, U)
        arrived = test.blocks(Z, U)
        Z = orth(U)
        record(k, basis=Z[:, :p], last=arrived)
    return {"basis": Z[:, :p], **test.output()}


def communication(params: Any, shape: Shape) -> Cost:
    """Return the cost of the whole run.

    In each round, every client downloads one matrix with `params.columns` columns and uploads one.
    """
    d = shape.n_features
    scalars = params.rounds * shape.n_clients * d * params.columns(d)
    return Cost(params.rounds, scalars, scalars)


def starting_basis(
    federation: Federation, params: Parameters, rng: np.random.Generator
) -> np.ndarray:
    """Return Z⁽⁰⁾: orthonormalise `params.start`, or a matrix with uniform entries in [−1, 1]."""
    d = federation.shape.n_features
    columns, start = params.columns(d), params.start
    if start is None:
        return orth(rng.uniform(-1.0, 1.0, (d, columns)))
    more = columns - start.shape[1]
    return orth(np.hstack([start, rng.uniform(-1.0, 1.0, (d, more))]) if more else start)


ALGORITHM = Algorithm(
    paper="faps",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    gram_products_only=True,
    citation=(
        "Rutishauser (1970); in the federated form (2) of Wang, Liu & Zhang, *Seeking consensus "
        "on subspaces in federated principal component analysis* (JOTA 2024)"
    ),
    look=("blue", "dashed"),
)
