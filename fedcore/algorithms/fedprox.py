"""FedProx: FedAvg whose clients are held near the server's network by a quadratic penalty.

In every round a share r of the clients makes E epochs on

    fᵢ(v) + μ/2 ‖v − w‖²    from v = w,

and the server takes the mean. Without the penalty, μ = 0, it is FedAvg. As in Collins, Hassani,
Mokhtari & Shakkottai (ICML 2021), clients are drawn uniformly, and the descent has momentum, which
includes the penalty's gradient. (Their code adds the penalty's gradient to the step after the
momentum, and keeps this sum as the momentum; the iterates are the same.) ``fine_tune`` gives
FedProx+FT, as for `fedcore.algorithms.fedavg`.
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
    """Parameters of `fedcore.deep.settings`, and this.

    Attributes
    ----------
    strength : float
        μ, weight of the penalty.
    """

    strength: NonNegative = 0.1


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run FedProx; see the module's text.

    Returns
    -------
    dict
        ``parameters`` of shape (p,), the last w.
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
