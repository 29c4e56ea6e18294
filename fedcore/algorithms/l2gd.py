"""L2GD: in few rounds every client trains a network of its own, in the others all move to the mean.

With n clients, a round is local with probability 1 − p, and then client i descends on its own loss
fᵢ from xᵢ. Any other round is one of averaging, with

    xᵢ ← xᵢ − θ (xᵢ − mean xⱼ),    θ = α λ / (n p).

Here the kinds of all T rounds are drawn before the first: (1 − p) T of them, to the nearest
integer, are local, at random places, and all others average. The cost is therefore known
beforehand.

All clients take part in every round unless `participation` is below 1. Then some clients are drawn
for each round, local or not. In a round of averaging the drawn clients move to the mean of their
own networks, and all others stay where they are. n in θ remains the number of all clients.
Consecutive rounds of averaging leave the mean of all clients as it is, so that Algorithm 1 sends
nothing after the first of them; here every round of averaging sends the xᵢ up and the mean down.

As in Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), Appendix A.2, a local round makes E
epochs at the rate of the other methods in the place of one step of size α / (n (1 − p)), and p is
0.9. In their code all clients take part in every round, θ is α λ / (n (1 − p)), and the rate of
local rounds is α / (n (1 − p)).
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
    """All parameters of `fedcore.deep.settings`, and the following.

    Attributes
    ----------
    averaging : float
        p, share of the rounds in which the clients move towards the mean.
    alpha : float
        α; the step θ towards the mean is proportional to it.
    strength : float
        λ, weight of the distances to the mean in the mixture of losses.
    """

    participation: Participation = 1.0
    averaging: Share = 0.9
    alpha: Positive = 0.25
    strength: Positive = 1.0

    @property
    def local_rounds(self) -> int:
        """Number of rounds in which clients train."""
        return round((1 - self.averaging) * self.rounds)


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run L2GD; see the module's text.

    Returns
    -------
    dict
        ``models``, a list of the clients' parameters.
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
    """Return the cost: xᵢ up and the mean down in every round that is not local, and the seed."""
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
