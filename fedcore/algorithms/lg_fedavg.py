"""LG-FedAvg: each client has its own lower layers, and the server averages the upper layers.

In every round a share r of the clients trains. Client i trains its own lower layers lᵢ and the
shared upper layers g together, for E epochs of SGD on its loss fᵢ:

    (lᵢ, gᵢ) ← SGD(fᵢ, from (lᵢ, g)),    g ← mean gᵢ.

By default the number of lower layers is the network's attribute ``lower`` (see
`fedcore.deep.models`), as in Appendix A.2 of Collins, Hassani, Mokhtari & Shakkottai (ICML 2021).
Also as in Appendix A.2, training starts from random parameters, and not from the result of FedAvg.
In the code of Collins et al., the networks for CIFAR have more lower layers (``lower`` = 8): the
first fully connected layer also stays with the clients.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fedcore import deep
from fedcore.algorithms import Algorithm
from fedcore.deep import models, rounds, settings
from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.problems.clients import Labelled
from fedcore.problems.tasks import CLASSIFIERS
from fedcore.validation import Count


@dataclass(frozen=True)
class Params(settings.Params):
    """Hyper-parameters that LG-FedAvg adds to those of `fedcore.deep.settings.Params`.

    Attributes
    ----------
    lower : int, optional
        Number of lower layers, which stay with the clients; activations and pooling count as
        layers. By default the number is the network's attribute ``lower``.
    """

    lower: Count | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        layers = len(models.MODELS[self.model].body)
        if self.lower is not None and self.lower > layers:
            raise InputError(
                f"lower must be at most {layers}, the number of layers in the body of "
                f"'{self.model}', got {self.lower}"
            )

    def lower_size(self, n_features: int) -> int:
        """Return the number of parameters of the lower layers."""
        model = models.MODELS[self.model]
        layers = model.body[: self.lower or model.lower]
        return models.size(layers, models.sample_shape(self.model, n_features))


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run LG-FedAvg.

    Returns
    -------
    dict
        ``upper`` contains the parameters g of the shared upper layers after the last round.
        ``models`` lists, for each client, the vector of its whole network's parameters.
    """
    learner = deep.learner(params, federation)
    lower = params.lower_size(federation.shape.n_features)

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

    upper = rounds.start_networks(federation, learner, rng, keep=lambda w: w[:lower])[lower:]
    upper = rounds.average(federation, params, rng, record, update, upper, networks)
    return {"upper": upper, "models": wholes(upper)}


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run.

    Every client first downloads the seed of the initial network. In each round, every participant
    downloads the shared upper layers and uploads its trained upper layers.
    """
    whole = models.sizes(params.model, shape.n_features).whole
    upper = whole - params.lower_size(shape.n_features)
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
