"""L2GD: in each round, clients either train their own networks or move them towards their mean.

In Algorithm 1 of Hanzely & Richtárik (arXiv:2002.05516), a round is a local round with probability
1 − p and an averaging round with probability p. In a local round, client i trains its own network
xᵢ on its loss fᵢ. In an averaging round, each of the n clients makes the step:

    xᵢ ← xᵢ − θ (xᵢ − mean xⱼ),    θ = α λ / (n p).

fedcore draws the set of local rounds before the first round. Of the T rounds, (1 − p) T, rounded to
an integer, are local rounds, and all others are averaging rounds. The communication cost is
therefore known beforehand.

By default all clients take part in every round. With `participation` below 1, the server draws
clients for every round, local or averaging. In an averaging round the drawn clients move their
networks towards the mean of these networks, and no other client's network changes. The n in θ is
still the number of all clients. An averaging round does not change the mean of all clients'
networks. In consecutive averaging rounds, Algorithm 1 therefore communicates only in the first one.
In fedcore the participants of every averaging round upload xᵢ and download the mean.

As in Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), Appendix A.2, p is 0.9, and a local round
makes E epochs. The learning rate of local rounds is ``rate``, as in the other methods; Collins et
al. print 0.001 for L2GD on FEMNIST and 0.01 otherwise. In Algorithm 1 a local round makes one step
of size α / (n (1 − p)). In the code of Collins et al. all clients take part in every round, θ is α
λ / (n (1 − p)), and the learning rate of local rounds is α / (n (1 − p)).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcore import deep
from fedcore.algorithms import Algorithm
from fedcore.deep import models, rounds, settings
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.parts.participation import Participation
from fedcore.problems.clients import Labelled
from fedcore.problems.tasks import CLASSIFIERS
from fedcore.validation import Positive, Share


@dataclass(frozen=True)
class Params(settings.Params):
    """Hyper-parameters that L2GD adds to those of `fedcore.deep.settings.Params`.

    Attributes
    ----------
    averaging : float
        Share p of averaging rounds among all rounds.
    alpha : float
        Factor α in θ, the length of the step towards the mean.
    strength : float
        Weight λ of the penalty on the distances between the networks and their mean.
    """

    participation: Participation = 1.0
    averaging: Share = 0.9
    alpha: Positive = 0.25
    strength: Positive = 1.0

    @property
    def local_rounds(self) -> int:
        """Number of local rounds, in which clients train their own networks."""
        return round((1 - self.averaging) * self.rounds)


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run L2GD.

    Returns
    -------
    dict
        ``models`` lists, for each client, the vector of its network's parameters.
    """
    learner, n_clients = deep.learner(params, federation), federation.shape.n_clients
    theta = params.alpha * params.strength / (n_clients * params.averaging)

    def approach(data: Labelled, state: Any, mean: np.ndarray) -> None:
        state.own = state.own - theta * (state.own - mean)

    @learner.step
    def train(data: Labelled, state: Any, message: Any) -> None:
        batches = learner.batches(learner.samples(data), state.rng, params.epochs)
        state.own = learner.descend(state.own, learner.whole.gradient, batches)

    def one_round(t: int, chosen: Any) -> None:
        if t in local:
            federation.local(train, of=chosen)
        else:
            federation.broadcast(federation.mean(rounds.upload_own, of=chosen), to=chosen)
            federation.local(approach, of=chosen)

    rounds.start_networks(federation, learner, rng, keep=lambda w: w)
    local = set(1 + rng.choice(params.rounds, params.local_rounds, replace=False))
    return rounds.run_own_networks(federation, learner, params, rng, record, one_round)


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run.

    Every client first downloads the seed of the initial network. In each averaging round, every
    participant uploads its network and downloads the mean.
    """
    averagings = params.rounds - params.local_rounds
    size = models.sizes(params.model, shape.n_features).whole
    moved = averagings * params.n_participants(shape.n_clients) * size
    return Cost(averagings, moved, moved + shape.n_clients)


ALGORITHM = Algorithm(
    paper="fedrep",
    parameters=Params,
    run=run,
    communication=communication,
    task=CLASSIFIERS,
    citation=(
        "Hanzely & Richtárik, *Federated learning of a mixture of global and local models* "
        "(arXiv:2002.05516, 2020), Algorithm 1"
    ),
    look=("grey", "dashed"),
)
