"""FedAvg: randomly chosen clients train the server's network, and the server averages the results.

In every round a share r of the clients trains the server's network w for E epochs of SGD, each
client on its own loss fᵢ:

    wᵢ ← SGD(fᵢ, from w),    w ← mean wᵢ.

As in Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), the mean is not weighted and the SGD has
momentum. With ``fine_tune`` the method is FedAvg+FT of Collins et al. After the last round of
FedAvg+FT, every client trains the head of w, its last layer, for ``fine_tune`` epochs. The results
after this training are an additional last row of the history, the run's table of results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcore import deep
from fedcore.algorithms import Algorithm
from fedcore.deep import rounds
from fedcore.deep.settings import Tuned
from fedcore.federation.federation import Federation
from fedcore.problems.clients import Labelled
from fedcore.problems.tasks import CLASSIFIERS


def run(federation: Federation, params: Tuned, rng: np.random.Generator, record: Any) -> dict:
    """Run FedAvg.

    Returns
    -------
    dict
        ``parameters`` is the vector of all parameters of the server's last network w.
    """
    learner = deep.learner(params, federation)

    @learner.step
    def update(data: Labelled, state: Any, w: np.ndarray) -> np.ndarray:
        batches = learner.batches(learner.samples(data), state.rng, params.epochs)
        return learner.descend(w, learner.whole.gradient, batches)

    return rounds.average_networks(federation, learner, params, rng, record, update)


ALGORITHM = Algorithm(
    paper="fedrep",
    parameters=Tuned,
    run=run,
    communication=rounds.cost_of_networks,
    task=CLASSIFIERS,
    columns=rounds.FINE_TUNED,
    citation=(
        "McMahan, Moore, Ramage, Hampson & Agüera y Arcas, *Communication-efficient learning of "
        "deep networks from decentralized data* (AISTATS 2017), Algorithm 1"
    ),
    look=("vermillion", "dotted"),
)
