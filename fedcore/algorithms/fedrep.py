"""FedRep: each client trains first its own head, the last layer, then the shared representation.

In every round a share r of the clients takes part. A participant with the loss fᵢ trains its head
hᵢ for τ_h epochs with the representation φ fixed, and then φ for τ_φ epochs with the head fixed:

    hᵢ ← SGD(fᵢ(·, φ), from hᵢ),    φᵢ ← SGD(fᵢ(hᵢ, ·), from φ),    φ ← mean φᵢ.

The head is the last layer, and never leaves its client. The parameter ``head_epochs`` is τ_h, and
``epochs`` is τ_φ. In the code of Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), the server
averages both heads and representations. ``first_head="averaged"`` reproduces the average of heads:
a client that is chosen for the first time begins with the mean head. For linear regression see
`fedcore.algorithms.fedrep_linear`.
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
from fedcore.validation import CountOrZero

if TYPE_CHECKING:
    from fedcore.deep.batches import Batch
    from fedcore.deep.networks import Tensor


@dataclass(frozen=True)
class Params(settings.Personal):
    """Hyper-parameters that FedRep adds to those of `fedcore.deep.settings.Personal`.

    Attributes
    ----------
    head_epochs : int
        Number τ_h of epochs for the head, before the epochs for the representation.
    """

    head_epochs: CountOrZero = 10


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run FedRep.

    Returns
    -------
    dict
        ``body`` is the last representation φ. ``heads`` is a matrix with one client's head in each
        row.
    """
    learner = deep.learner(params, federation)

    def gradient(phi: Tensor, batch: Batch, head: Tensor) -> Tensor:
        return learner.whole.gradient(learner.join(phi, head), batch)[..., : learner.sizes.body]

    def train(
        data: Labelled, rng: np.random.Generator, body: np.ndarray, head: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        batches = learner.head_batches(body, data, rng, params.head_epochs)
        head = learner.descend(head, learner.head.gradient, batches)
        batches = learner.batches(learner.samples(data), rng, params.epochs)
        return learner.descend(body, gradient, batches, head), head

    return rounds.average_bodies(federation, learner, params, rng, record, train)


ALGORITHM = Algorithm(
    paper="fedrep",
    parameters=Params,
    run=run,
    communication=rounds.cost_of_bodies,
    task=CLASSIFIERS,
    citation=(
        "Collins, Hassani, Mokhtari & Shakkottai, *Exploiting shared representations for "
        "personalized federated learning* (ICML 2021), Algorithm 1"
    ),
    look=("blue", "dotted"),
)
