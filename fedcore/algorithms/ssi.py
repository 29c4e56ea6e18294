"""Distributed simultaneous subspace iteration (SSI), the distributed power method.

Rutishauser (1970); in the federated form (2) of Wang, Liu & Zhang, *Seeking consensus on subspaces
in federated principal component analysis* (JOTA 2024), where it is the baseline:

    Z⁽ᵏ⁺¹⁾ ∈ orth(Σᵢ AᵢAᵢᵀ Z⁽ᵏ⁾),   Aᵢ = Xᵢᵀ, Xᵢ the samples × features of client i.

Z⁽⁰⁾ orthonormalises a matrix with uniform entries in [−1, 1]. One round is one n×p block down and
one up. The last Z stays with the server.

:look: blue, dashed
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.linalg import orth
from fedcore.parts.gram_products import gram_product
from fedcore.parts.params import Parameters
from fedcore.parts.residuals import Residual
from fedcore.validation import CountOrZero, real

PAPER = "faps"
SPARSE = True


@dataclass(frozen=True)
class Rounds(Parameters):
    """Parameters of methods that iterate from a starting basis.

    Attributes
    ----------
    n_components : int
        p, columns of Z.
    rounds : int
        Iterations, one communication round each.
    """

    rounds: CountOrZero = 3000


@dataclass(frozen=True)
class Params(Rounds):
    """Parameters of `Rounds`, and a tolerance; with a tolerance `rounds` is the maximum.

    Attributes
    ----------
    tol : float
        The run ends when the sine of the largest angle to the leading eigenspace is estimated to
        be at most `tol`, by `fedcore.parts.residuals`; 0 runs all rounds. The test needs no
        communication.
    """

    tol: Annotated[float, real(least=0, below=1)] = 0.0


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run SSI; see the module's text.

    Returns
    -------
    dict
        ``basis`` of shape (n_features, n_components), and with a tolerance the
        entries of `fedcore.parts.residuals.Residual.output`.
    """
    test = Residual(params.tol, federation.shape)
    Z = starting_basis(federation, params, rng)
    record(0, basis=Z)
    for k in record.rounds(params.rounds):
        federation.broadcast(Z)
        U = federation.sum(gram_product)
        arrived = test.blocks(Z, U)
        Z = orth(U)
        record(k, basis=Z)
        if arrived:
            break
    return {"basis": Z, **test.output()}


def communication(params: Any, shape: Shape) -> Cost:
    """One n×p block down and one up per client and round."""
    scalars = params.rounds * shape.n_clients * shape.n_features * params.n_components
    return Cost(params.rounds, scalars, scalars)


def starting_basis(federation: Federation, params: Any, rng: np.random.Generator) -> np.ndarray:
    """Z⁽⁰⁾: `params.start` or uniform entries in [−1, 1], orthonormalised."""
    size = (federation.shape.n_features, params.n_components)
    return orth(rng.uniform(-1.0, 1.0, size) if params.start is None else params.start)
