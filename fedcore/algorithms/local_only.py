"""Local Only: every client trains a network of its own, without any exchange.

In each of T rounds, the clients that are drawn train for E epochs. With a participation of r = 1,
every client trains in every round. All clients begin with the same network, as in the code of
Collins, Hassani, Mokhtari & Shakkottai (ICML 2021). All clients draw this network from one seed,
the only number that the server sends.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcore import deep
from fedcore.algorithms import Algorithm
from fedcore.deep import rounds
from fedcore.deep.settings import Params
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.problems.clients import Labelled
from fedcore.problems.tasks import CLASSIFIERS


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Local Only.

    Returns
    -------
    dict
        ``models`` lists, for each client, the vector of its network's parameters.
    """
    learner = deep.learner(params, federation)

    @learner.step
    def update(data: Labelled, state: Any, message: Any) -> None:
        batches = learner.batches(learner.samples(data), state.rng, params.epochs)
        state.own = learner.descend(state.own, learner.whole.gradient, batches)

    def one_round(t: int, chosen: Any) -> None:
        federation.local(update, of=chosen)

    rounds.start_networks(federation, learner, rng, keep=lambda w: w)
    return rounds.run_own_networks(federation, learner, params, rng, record, one_round)


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of sending the seed of the initial network to every client."""
    return Cost(0, 0, shape.n_clients)


ALGORITHM = Algorithm(
    paper="fedrep",
    parameters=Params,
    run=run,
    communication=communication,
    task=CLASSIFIERS,
    citation="The baseline of Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), Table 1",
    look=("black", "solid"),
)
