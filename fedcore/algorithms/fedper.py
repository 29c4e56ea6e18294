"""FedPer: every client trains the network's shared body and its own head, the last layer, together.

In every round a share r of the clients trains. Client i trains the shared body φ and its own head
hᵢ together, for E epochs of SGD on its loss fᵢ:

    (φᵢ, hᵢ) ← SGD(fᵢ, from (φ, hᵢ)),    φ ← mean φᵢ.

A head never leaves its client. As in Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), the mean
is not weighted and the head is the last layer. In the code of Collins et al., the server averages
both heads and bodies. ``first_head="averaged"`` reproduces the average of heads: a client that is
chosen for the first time begins with the mean head.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcore import deep
from fedcore.algorithms import Algorithm
from fedcore.deep import rounds
from fedcore.deep.settings import Personal
from fedcore.federation.federation import Federation
from fedcore.problems.clients import Labelled
from fedcore.problems.tasks import CLASSIFIERS


def run(federation: Federation, params: Personal, rng: np.random.Generator, record: Any) -> dict:
    """Run FedPer.

    Returns
    -------
    dict
        ``body`` is the last shared body φ. ``heads`` is a matrix with one client's head in each
        row.
    """
    learner = deep.learner(params, federation)

    def train(
        data: Labelled, rng: np.random.Generator, body: np.ndarray, head: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        batches = learner.batches(learner.samples(data), rng, params.epochs)
        w = np.concatenate([body, head])
        return learner.split(learner.descend(w, learner.whole.gradient, batches))

    return rounds.average_bodies(federation, learner, params, rng, record, train)


ALGORITHM = Algorithm(
    paper="fedrep",
    parameters=Personal,
    run=run,
    communication=rounds.cost_of_bodies,
    task=CLASSIFIERS,
    citation=(
        "Arivazhagan, Aggarwal, Singh & Choudhary, *Federated learning with personalization "
        "layers* (arXiv:1912.00818, 2019), Algorithms 1 and 2"
    ),
    look=("orange", "long-dashed"),
)
