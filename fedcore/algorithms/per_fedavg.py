"""Per-FedAvg: FedAvg for a network that each client adapts by one gradient step on its own loss.

The module implements the Hessian-free form of Algorithm 1 of Fallah, Mokhtari & Ozdaglar (NeurIPS
2020). In every round a share r of the clients makes E epochs of descent on fᵢ(w − α ∇fᵢ(w)), where
fᵢ is the client's loss. The server takes the mean of the results. A batch is cut into a support set
D and a target set D′, and a step has the direction:

    g − α (∇fᵢ(w + δ g; D) − ∇fᵢ(w − δ g; D)) / 2δ,    g = ∇fᵢ(w − α ∇fᵢ(w; D); D′).

The set D contains eight tenths of a batch, as in Collins, Hassani, Mokhtari & Shakkottai (ICML
2021), Appendix A.2. Fallah et al. use a third set D″; Collins et al. and fedcore use D in its
place. Collins et al. do not print δ. Client i predicts with w − α ∇fᵢ(w), where the gradient is
over all samples of the client. With ``fine_tune`` clients train the head of w, its last layer,
after the last round, as in `fedcore.algorithms.fedavg`.

``form="sum"`` reproduces the class for Per-FedAvg in the code of Collins et al., although none of
their programs uses that class. The class adapts a copy of the network, but evaluates no loss at
this copy. A step therefore has the direction ∇fᵢ(w; D) + ∇fᵢ(w; D′). With ``form="sum"``, client i
predicts with the network that its last descent returned, and ``fine_tune`` trains all layers of
this network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from fedcore import deep
from fedcore.algorithms import Algorithm
from fedcore.deep import rounds, settings
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.problems.clients import Labelled
from fedcore.problems.tasks import CLASSIFIERS
from fedcore.validation import Positive, Share, one_of

if TYPE_CHECKING:
    from fedcore.deep.batches import Batch
    from fedcore.deep.networks import Tensor
    from fedcore.deep.training import Learner


@dataclass(frozen=True)
class Params(settings.Tuned):
    """Hyper-parameters that Per-FedAvg adds to those of `fedcore.deep.settings.Tuned`.

    Attributes
    ----------
    inner_rate : float
        Step size α of the gradient step by which a client adapts the network.
    support : float
        Share of a batch that forms the support set D. The number of samples in D is rounded down,
        but is at least one. A batch of one sample serves both as support set D and as target set
        D′.
    difference : float
        Step size δ of the finite difference of gradients at w + δ g and w − δ g.
    form : {"meta", "sum"}
        ``meta`` is the method of Fallah et al., and ``sum`` is what the code of Collins et al.
        does.
    """

    inner_rate: Positive = 1e-4
    support: Share = 0.8
    difference: Positive = 1e-2
    form: Annotated[str, one_of(("meta", "sum"))] = "meta"


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Per-FedAvg.

    Returns
    -------
    dict
        ``parameters`` is the vector of all parameters of the server's last network w.
    """
    learner = deep.learner(params, federation)
    if params.form == "sum":
        return _run_sum(federation, learner, params, rng, record)
    alpha, delta, f = params.inner_rate, params.difference, learner.whole.gradient

    def gradient(w: Tensor, batch: Batch) -> Tensor:
        support, target = batch.cut(params.support)
        g = f(w.sub(f(w, support), alpha=alpha), target)
        there, back = f(w.add(g, alpha=delta), support), f(w.sub(g, alpha=delta), support)
        return g.sub_(there.sub_(back), alpha=alpha / (2 * delta))

    @learner.step
    def update(data: Labelled, state: Any, w: np.ndarray) -> np.ndarray:
        batches = learner.batches(learner.samples(data), state.rng, params.epochs)
        return learner.descend(w, gradient, batches)

    def adapt(data: Labelled, w: np.ndarray) -> np.ndarray:
        start = learner.tensor(w)
        adapted = start.sub(f(start, learner.samples(data)), alpha=alpha)
        found: np.ndarray = adapted.cpu().numpy()
        return found

    def networks(w: np.ndarray) -> Any:
        return learner.adapted(federation.clients, w, adapt)

    return rounds.average_networks(federation, learner, params, rng, record, update, networks)


def _run_sum(
    federation: Federation, learner: Learner, params: Params, rng: np.random.Generator, record: Any
) -> dict[str, Any]:
    """Run the method with ``form="sum"``, as the code of Collins et al. does."""
    f = learner.whole.gradient

    def gradient(w: Tensor, batch: Batch) -> Tensor:
        support, target = batch.cut(params.support)
        return f(w, support).add_(f(w, target, decays=False))  # the weights decay once in a step

    @learner.step
    def update(data: Labelled, state: Any, w: np.ndarray) -> np.ndarray:
        batches = learner.batches(learner.samples(data), state.rng, params.epochs)
        state.own = learner.descend(w, gradient, batches)
        return state.own

    @learner.step
    def tune(data: Labelled, state: Any, message: Any) -> None:
        batches = learner.batches(learner.samples(data), state.rng, params.fine_tune)
        state.tuned = learner.descend(state.own, f, batches)

    def networks(w: np.ndarray) -> Any:
        return learner.personal(w, federation.client_state("own"))

    counts = {"fine_tuned": 0}
    w = rounds.start_networks(federation, learner, rng, keep=lambda w: w)
    w = rounds.average(federation, params, rng, record, update, w, networks, counts=counts)
    if params.fine_tune and not record.ended:
        federation.local(tune)
        tuned = learner.personal(w, federation.client_state("tuned"))
        record(params.rounds + 1, classifiers=tuned, counts={"fine_tuned": params.fine_tune})
    return {"parameters": w}


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run.

    In each round, every participant downloads the server's w and uploads its own network. For
    fine-tuning, every client downloads the last w. With ``form="sum"``, every client downloads the
    seed of the initial network before the first round, and downloads no w for fine-tuning.
    """
    if params.form == "sum":
        return rounds.cost_of_own_networks(params, shape)
    return rounds.cost_of_networks(params, shape)


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
