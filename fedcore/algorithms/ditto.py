"""Ditto: FedAvg, and for each client a personal network, which a penalty holds near the server's.

In every round a share r of the clients makes two descents of E epochs each. The first descent
starts from the server's network w and minimises the client's loss fᵢ; the server averages the
results. The second descent starts from the client's own network vᵢ and minimises fᵢ(v) + λ/2 ‖v −
w‖², with the w that the server sent in this round. Client i predicts with vᵢ. Both descents of a
client use the same batches. With λ = 0 the networks vᵢ are the same as in the method Local Only.

By default the momentum of the second descent includes the gradient of the penalty. The code of
Collins, Hassani, Mokhtari & Shakkottai (ICML 2021) keeps the penalty out of the momentum and adds
−η λ (vᵢ − w) to each step of vᵢ, as ``pull="beside"`` does here. With momentum β, a penalty outside
the momentum is weaker by the factor 1 − β.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedcore import deep
from fedcore.algorithms import Algorithm
from fedcore.deep import rounds, settings
from fedcore.federation.federation import Federation
from fedcore.problems.clients import Labelled
from fedcore.problems.tasks import CLASSIFIERS
from fedcore.validation import NonNegative, one_of


@dataclass(frozen=True)
class Params(settings.Params):
    """Hyper-parameters that Ditto adds to those of `fedcore.deep.settings.Params`.

    Attributes
    ----------
    strength : float
        Weight λ of the penalty ½‖v − w‖² on the distance to the server's network.
    pull : {"inside", "beside"}
        ``inside`` includes the gradient of the penalty in the momentum. ``beside`` adds the
        gradient of the penalty to each step, outside the momentum.
    """

    strength: NonNegative = 0.75
    pull: Annotated[str, one_of(("inside", "beside"))] = "inside"


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Ditto.

    Returns
    -------
    dict
        ``parameters`` is the vector of all parameters of the server's last network w. ``models``
        lists the parameters vᵢ of each client's own network.
    """
    learner = deep.learner(params, federation)
    pulled, beside = learner.proximal(params.strength), 0.0
    if params.pull == "beside":
        pulled, beside = learner.proximal(0.0), params.strength

    @learner.step
    def update(data: Labelled, state: Any, w: np.ndarray) -> np.ndarray:
        batches = learner.batches(learner.samples(data), state.rng, params.epochs)
        state.own = learner.descend(state.own, pulled, batches, w, pull=beside)
        return learner.descend(w, learner.whole.gradient, batches)

    def networks(w: np.ndarray) -> Any:
        return learner.personal(w, federation.client_state("own"))

    w = rounds.start_networks(federation, learner, rng, keep=lambda w: w)
    w = rounds.average(federation, params, rng, record, update, w, networks)
    return {"parameters": w, "models": list(federation.client_state("own"))}


ALGORITHM = Algorithm(
    paper="fedrep",
    parameters=Params,
    run=run,
    communication=rounds.cost_of_own_networks,
    task=CLASSIFIERS,
    citation=(
        "Li, Hu, Beirami & Smith, *Ditto: fair and robust federated learning through "
        "personalization* (ICML 2021), Algorithm 1"
    ),
    look=("purple", "long-dashed"),
)
