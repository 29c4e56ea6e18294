"""FedProx: FedAvg with a quadratic penalty that holds the clients near the server's network.

In every round a share r of the clients trains. Client i with the loss fᵢ starts from the server's
network, v = w, and makes E epochs of descent on fᵢ(v) + μ/2 ‖v − w‖². The server takes the mean of
the results. With μ = 0 the method is FedAvg. As in Collins, Hassani, Mokhtari & Shakkottai (ICML
2021), clients are drawn uniformly, and the descent has momentum. In fedcore the momentum includes
the penalty's gradient. The code of Collins et al. adds the penalty's gradient to the updated
momentum and stores the sum as the new momentum. Both computations give the same networks. With
``fine_tune`` the method is FedProx+FT (see `fedcore.algorithms.fedavg`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcore import deep
from fedcore.algorithms import Algorithm
from fedcore.deep import rounds
from fedcore.deep.settings import Tuned
from fedcore.federation.federation import Federation
from fedcore.problems.clients import Labelled
from fedcore.problems.tasks import CLASSIFIERS
from fedcore.validation import NonNegative


@dataclass(frozen=True)
class Params(Tuned):
    """Hyper-parameters that FedProx adds to those of `fedcore.deep.settings.Tuned`.

    Attributes
    ----------
    strength : float
        Weight μ of the penalty ½‖v − w‖² on the distance to the server's network.
    """

    strength: NonNegative = 0.1


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run FedProx.

    Returns
    -------
    dict
        ``parameters`` is the vector of all parameters of the server's last network w.
    """
    learner = deep.learner(params, federation)
    gradient = learner.proximal(params.strength)

    @learner.step
    def update(data: Labelled, state: Any, w: np.ndarray) -> np.ndarray:
        batches = learner.batches(learner.samples(data), state.rng, params.epochs)
        return learner.descend(w, gradient, batches, w)

    return rounds.average_networks(federation, learner, params, rng, record, update)


ALGORITHM = Algorithm(
    paper="fedrep",
    parameters=Params,
    run=run,
    communication=rounds.cost_of_networks,
    task=CLASSIFIERS,
    columns=rounds.FINE_TUNED,
    citation=(
        "Li, Sahu, Zaheer, Sanjabi, Talwalkar & Smith, *Federated optimization in heterogeneous "
        "networks* (MLSys 2020), Algorithm 2"
    ),
    look=("green", "dotted"),
)
