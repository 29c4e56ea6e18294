"""Fed-MTL: every client trains its own network, held near the mean of the participants' networks.

The matrix Ω below, which relates the clients' tasks, is fixed and not learnt. In every round m
clients take part, and their networks are the columns of W. Each participant keeps the other
networks fixed, and makes E epochs of descent in its own network wᵢ on its loss fᵢ with a penalty:

    fᵢ(wᵢ) + λ (‖W‖² + tr W Ω Wᵀ),    Ω = (I − 11ᵀ/m)²  of shape (m, m).

Because I − 11ᵀ/m is a projection, its square Ω is equal to I − 11ᵀ/m. The penalty tr W Ω Wᵀ is
therefore Σⱼ ‖wⱼ − w̄‖², which holds the networks near their mean w̄. The server sends w̄, all that
a client needs to know about the other networks. During the descent, the client's own share wᵢ/m of
w̄ moves with wᵢ.

For Table 1, Collins, Hassani, Mokhtari & Shakkottai (ICML 2021) use the code of Liang et al.,
arXiv:2001.01523 (2020), and print neither Ω nor λ. In the code of Liang et al., λ is 10⁻⁷ for
networks of 10⁵ to 10⁶ parameters, and 10⁻⁷ is the default here. In the formula for Ω, that code
takes a matrix of ones instead of I, and squares entry by entry. All entries of Ω are then (1 −
1/m)², so the penalty acts on the sum of the networks and not on their distance from the mean. With
λ = 10⁻⁷ the choice of Ω hardly matters: the accuracies are nearly the same as in the method Local
Only. The accuracies of Fed-MTL and Local Only are equal only if λ = 0, so experiments train both
methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcore import deep
from fedcore.algorithms import Algorithm
from fedcore.deep import rounds, settings
from fedcore.federation.federation import Federation
from fedcore.problems.clients import Labelled
from fedcore.problems.tasks import CLASSIFIERS
from fedcore.validation import NonNegative

if TYPE_CHECKING:
    from fedcore.deep.batches import Batch
    from fedcore.deep.networks import Tensor


@dataclass(frozen=True)
class Params(settings.Params):
    """Hyper-parameters that Fed-MTL adds to those of `fedcore.deep.settings.Params`.

    Attributes
    ----------
    strength : float
        Weight λ of the penalty ‖W‖² + tr W Ω Wᵀ.
    """

    strength: NonNegative = 1e-7


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Fed-MTL.

    Returns
    -------
    dict
        ``models`` lists, for each client, the vector of its network's parameters.
    """
    learner = deep.learner(params, federation)
    members, twice = params.n_participants(federation.shape.n_clients), 2 * params.strength

    def gradient(w: Tensor, batch: Batch, start: Tensor, mean: Tensor) -> Tensor:
        # 2 λ (w + w − (mean + (w − start) / m)), in place: vectors are megabytes
        found = learner.whole.gradient(w, batch).add_(w, alpha=twice * (2 - 1 / members))
        return found.sub_(mean, alpha=twice).add_(start, alpha=twice / members)

    @learner.step
    def update(data: Labelled, state: Any, mean: np.ndarray) -> None:
        batches = learner.batches(learner.samples(data), state.rng, params.epochs)
        state.own = learner.descend(state.own, gradient, batches, state.own, mean)

    def one_round(t: int, chosen: Any) -> None:
        federation.broadcast(federation.mean(rounds.upload_own, of=chosen), to=chosen)
        federation.local(update, of=chosen)

    rounds.start_networks(federation, learner, rng, keep=lambda w: w)
    return rounds.run_own_networks(federation, learner, params, rng, record, one_round)


ALGORITHM = Algorithm(
    paper="fedrep",
    parameters=Params,
    run=run,
    communication=rounds.cost_of_own_networks,
    task=CLASSIFIERS,
    citation=(
        "Federated multi-task learning after Smith, Chiang, Sanjabi & Talwalkar (NeurIPS 2017)"
    ),
    look=("orange", "dotted"),
)
