"""Fed-MTL: every client trains a network of its own, held near the mean of those that take part.

Federated multi-task learning after Smith, Chiang, Sanjabi & Talwalkar (NeurIPS 2017) with the fixed
relation Ω = (I − 11ᵀ/m)² of tasks, as in the code of Liang et al. (arXiv:2001.01523, 2020), whose
implementation Collins, Hassani, Mokhtari & Shakkottai (ICML 2021) take for Table 1. In every round
m clients take part, with their networks as the columns of W. Each makes E epochs in its own wᵢ on

    fᵢ(wᵢ) + λ (‖W‖² + tr W Ω Wᵀ),    tr W Ω Wᵀ = Σⱼ ‖wⱼ − w̄‖²,

with the other networks as they were. For this a client needs their mean w̄ alone, which the server
sends; its own part of the mean moves with it. λ is not printed; in that code it is 10⁻⁷ for a
network of 10⁵ to 10⁶ parameters. (There Ω is squared entry by entry, not as a matrix, and the
server sends W.)

:look: orange, dotted
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcore import deep
from fedcore.deep import models, rounds, settings
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.problems.clients import Labelled
from fedcore.validation import NonNegative

if TYPE_CHECKING:
    from fedcore.deep.batches import Batch
    from fedcore.deep.networks import Tensor

PAPER = "fedrep"
TASK = "classifiers"


@dataclass(frozen=True)
class Params(settings.Params):
    """Parameters of `fedcore.deep.settings`, and this.

    Attributes
    ----------
    strength : float
        λ, weight of the penalty.
    """

    strength: NonNegative = 1e-7


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Fed-MTL; see the module's text.

    Returns
    -------
    dict
        ``models``, a list of the clients' parameters.
    """
    learner = deep.learner(params, federation)
    members = params.n_participants(federation.shape.n_clients)

    def gradient(w: Tensor, batch: Batch, start: Tensor, mean: Tensor) -> Tensor:
        apart = w - (mean + (w - start) / members)
        return learner.whole.gradient(w, batch) + 2 * params.strength * (w + apart)

    @learner.step
    def update(data: Labelled, state: Any, mean: np.ndarray) -> None:
        batches = learner.batches(learner.samples(data), state.rng, params.epochs)
        state.own = learner.descend(state.own, gradient, batches, state.own, mean)

    def one_round(t: int, chosen: Any) -> None:
        federation.broadcast(federation.mean(rounds.own, of=chosen), to=chosen)
        federation.local(update, of=chosen)

    rounds.begin(federation, learner, rng, keep=lambda w: w)
    return rounds.alone(federation, learner, params, rng, record, one_round)


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost: wᵢ up and w̄ down in every round, and the seed of the first network."""
    size = models.sizes(params.model, shape.n_features).whole
    return params.cost(shape, up=size, down=size, once=1)
