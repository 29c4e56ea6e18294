"""Distributed PCA from the clients' truncated SVDs, in one round (disPCA).

Client i sends ``Dᵢ Eᵢᵀ`` of its own t leading singular values and right singular vectors. The
server stacks these matrices and takes their leading right singular vectors. The method is exact
when t is at least the rank of every client's data. Unlike an average of projections, it knows how
much variance lies along each direction, and how many samples a client has.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.federation.ledger import Cost
from fedcore.parts.params import Parameters
from fedcore.validation import whole


@dataclass(frozen=True)
class Params(Parameters):
    """Hyper-parameters.

    Attributes
    ----------
    extra : int
        Directions that every client sends beyond those sought; t = n_components + extra.
    """

    extra: Annotated[int, whole(0)] = 0


def run(federation, params, rng, record):
    """Stack what the clients send, and decompose it; see the module's text."""
    t = sent_by_each(params, federation.shape)

    def scaled_directions(data, state, message):
        _, values, directions = np.linalg.svd(data, full_matrices=False)
        kept = values[:t, None] * directions[:t]
        return np.pad(kept, ((0, t - len(kept)), (0, 0)))  # of a client with few samples

    stacked = np.vstack(federation.gather(scaled_directions))
    basis = np.linalg.svd(stacked, full_matrices=False)[2][: params.n_components].T
    record(0, basis=basis)
    return {"basis": basis}


def communication(params, shape):
    """Return the cost: t rows up from every client, nothing down."""
    rows = shape.n_clients * sent_by_each(params, shape)
    return Cost(1, rows * shape.n_features, 0)


def sent_by_each(params, shape):
    """Return t."""
    return min(params.n_components + params.extra, shape.n_features)


def plain(clients, draws, params):
    """Return the same from every client's best approximation of rank t, formed in full."""
    t = params.n_components + params.extra
    best = []
    for data in clients:
        left, values, right = np.linalg.svd(data, full_matrices=False)
        best.append((left[:, :t] * values[:t]) @ right[:t])
    return np.linalg.svd(np.vstack(best))[2][: params.n_components].T, None


ALGORITHM = Algorithm(
    paper="hospital",
    parameters=Params,
    run=run,
    communication=communication,
    citation=(
        "Liang, Balcan, Kanchanapally & Woodruff, *Improved distributed principal component "
        "analysis* (NIPS 2014)"
    ),
    look=("purple", "long-dashed"),
    case={  # for `fedcore check`: the plain form, and when it reaches the optimum
        "oracle": plain,
        "floor": lambda S, r: {"extra": S.shape[1]},
        "settings": ({}, {"extra": 2}),
        "random": False,
        "depends_on_split": True,
    },
)
