"""Per-FedAvg: FedAvg for a network from which one step on a client's own loss leads far.

This is the Hessian-free form. In every round a share r of the clients makes E epochs of descent on
fᵢ(w − α ∇fᵢ(w)), and the server takes the mean. A batch is cut into a support set D and a target
set D′; a step goes along

    g − α (∇fᵢ(w + δ g; D) − ∇fᵢ(w − δ g; D)) / 2δ,    g = ∇fᵢ(w − α ∇fᵢ(w; D); D′).

As in Collins, Hassani, Mokhtari & Shakkottai (ICML 2021), Appendix A.2, D is eight tenths of a
batch, also in the place of the algorithm's third set D″; δ is not printed. Client i uses w − α ∇fᵢ
of all its samples. ``fine_tune`` lets clients at last train the head of w, as for
`fedcore.algorithms.fedavg`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcore import deep
from fedcore.algorithms import Algorithm
from fedcore.deep import models, rounds, settings
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.problems.clients import Labelled
from fedcore.problems.tasks import CLASSIFIERS
from fedcore.validation import Positive, Share

if TYPE_CHECKING:
    from fedcore.deep.batches import Batch
    from fedcore.deep.networks import Tensor


@dataclass(frozen=True)
class Params(settings.Tuned):
    """Parameters of `fedcore.deep.settings`, and these.

    Attributes
    ----------
    inner_rate : float
        α, step of a client's adaptation.
    support : float
        Share of a batch that is the support set, rounded down, and at least one sample; a batch of
        one sample is both sets.
    difference : float
        δ, of the difference of gradients.
    """

    inner_rate: Positive = 1e-4
    support: Share = 0.8
    difference: Positive = 1e-2


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Per-FedAvg; see the module's text.

    Returns
    -------
    dict
        ``parameters`` of shape (p,), the last w.
    """
    learner = deep.learner(params, federation)
    alpha, delta, f = params.inner_rate, params.difference, learner.whole.gradient

    def gradient(w: Tensor, batch: Batch) -> Tensor:
        support, target = batch.cut(params.support)
        g = f(w - alpha * f(w, support), target)
        return g - alpha * (f(w + delta * g, support) - f(w - delta * g, support)) / (2 * delta)

    @learner.step
    def update(data: Labelled, state: Any, w: np.ndarray) -> np.ndarray:
        batches = learner.batches(learner.samples(data), state.rng, params.epochs)
        return learner.descend(w, gradient, batches)

    def adapt(data: Labelled, w: np.ndarray) -> np.ndarray:
        start = learner.tensor(w)
        adapted = start - alpha * f(start, learner.samples(data))
        found: np.ndarray = adapted.cpu().numpy()
        return found

    def networks(w: np.ndarray) -> Any:
        return learner.adapted(federation.clients, w, adapt)

    return rounds.average_networks(federation, learner, params, rng, record, update, networks)


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost: w down and wᵢ up in every round, w to all clients for fine-tuning."""
    size = models.sizes(params.model, shape.n_features).whole
    return rounds.cost_of_networks(params, shape, size)


ALGORITHM = Algorithm(
    paper="fedrep",
    parameters=Params,
    run=run,
    communication=communication,
    task=CLASSIFIERS,
    columns=rounds.FINE_TUNED,
    citation=(
        "Fallah, Mokhtari & Ozdaglar, *Personalized federated learning with theoretical "
        "guarantees: a model-agnostic meta-learning approach* (NeurIPS 2020), Algorithm 1"
    ),
    look=("sky", "dotted"),
)
