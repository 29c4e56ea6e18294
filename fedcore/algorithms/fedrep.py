"""FedRep: clients first train a head of their own, then the shared representation under it.

In every round a share r of the clients makes τ_h epochs on its head, with the representation φ
fixed, and then τ_φ epochs on φ, with the head fixed:

    hᵢ ← SGD(fᵢ(·, φ), from hᵢ),    φᵢ ← SGD(fᵢ(hᵢ, ·), from φ),    φ ← mean φᵢ.

Heads stay with the clients; the head is the last layer. τ_h is ``head_epochs`` and τ_φ is
``epochs``. In the authors' code heads are averaged as well, and a client that is chosen for the
first time begins with the mean head; ``first_head`` = "averaged" does the same. For linear
regression see `fedcore.algorithms.fedrep_linear`.
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
    """Parameters of `fedcore.deep.settings`, and this.

    Attributes
    ----------
    head_epochs : int
        τ_h, passes over a client's samples for the head, before those for the representation.
    """

    head_epochs: CountOrZero = 10


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run FedRep; see the module's text.

    Returns
    -------
    dict
        ``body``, the last φ, and ``heads`` of shape (n_clients, ·).
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
