"""LG-FedAvg: every client keeps the lower layers of its network, and the upper ones are averaged.

In every round a share r of the clients makes E epochs on lower layers lᵢ and upper layers g at
once:

    (lᵢ, gᵢ) ← SGD(fᵢ, from (lᵢ, g)),    g ← mean gᵢ.

Which layers are the lower ones the network says (``lower`` of `fedcore.deep.models`), after
Appendix A.2 of Collins, Hassani, Mokhtari & Shakkottai (ICML 2021). As there, the networks begin at
random, not with the result of FedAvg.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcore import deep
from fedcore.algorithms import Algorithm
from fedcore.deep import models, rounds
from fedcore.deep.settings import Params
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.problems.clients import Labelled
from fedcore.problems.tasks import CLASSIFIERS


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run LG-FedAvg; see the module's text.

    Returns
    -------
    dict
        ``upper``, the last g, and ``models``, a list of the clients' parameters.
    """
    learner = deep.learner(params, federation)
    lower = learner.sizes.lower

    @learner.step
    def update(data: Labelled, state: Any, upper: np.ndarray) -> np.ndarray:
        batches = learner.batches(learner.samples(data), state.rng, params.epochs)
        w = np.concatenate([state.own, upper])
        own, upper = np.split(learner.descend(w, learner.whole.gradient, batches), [lower])
        state.own = own.copy()  # a view would keep the upper layers, too
        return upper

    def wholes(upper: np.ndarray) -> list[np.ndarray]:
        return [np.concatenate([own, upper]) for own in federation.client_state("own")]

    def networks(upper: np.ndarray) -> Any:
        return learner.personal(upper, wholes(upper))

    upper = rounds.begin(federation, learner, rng, keep=lambda w: w[:lower])[lower:]
    upper = rounds.average(federation, params, rng, record, update, upper, networks)
    return {"upper": upper, "models": wholes(upper)}


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost: g down and gᵢ up in every round, and the seed of the first network."""
    sizes = models.sizes(params.model, shape.n_features)
    upper = sizes.whole - sizes.lower
    return params.cost(shape, up=upper, down=upper, once=1)


ALGORITHM = Algorithm(
    paper="fedrep",
    parameters=Params,
    run=run,
    communication=communication,
    task=CLASSIFIERS,
    citation=(
        "Liang, Liu, Liu, Allen, Auerbach, Brent, Salakhutdinov & Morency, *Think locally, act "
        "globally: federated learning with local and global representations* (arXiv:2001.01523, "
        "2020), Algorithm 1"
    ),
    look=("sky", "long-dashed"),
)
