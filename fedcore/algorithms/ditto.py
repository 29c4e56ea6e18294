"""Ditto: FedAvg, and beside it a network of each client's own that is held near the server's.

In every round a share r of the clients makes E epochs on each of two losses,

    fᵢ(w)    from the server's w, which the server averages,
    fᵢ(v) + λ/2 ‖v − w‖²    from its own vᵢ, with the w that came down.

Client i uses vᵢ. Both descents take the same batches. With λ = 0 the vᵢ are those of Local Only.

The momentum includes the gradient of the penalty, as it would for any objective. In the code of
Collins, Hassani, Mokhtari & Shakkottai (ICML 2021) the momentum leaves the penalty out: vᵢ moves by
−η λ (vᵢ − w) in addition to each step. ``pull`` = "beside" does the same. With momentum β, a pull
beside the step is weaker than one inside the momentum by the factor 1 − β.
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
    """Parameters of `fedcore.deep.settings`, and this.

    Attributes
    ----------
    strength : float
        λ, weight of the penalty.
    pull : {"inside", "beside"}
        Whether the momentum includes the gradient of the penalty, or the gradient is added beside
        it.
    """

    strength: NonNegative = 0.75
    pull: Annotated[str, one_of(("inside", "beside"))] = "inside"


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Ditto; see the module's text.

    Returns
    -------
    dict
        ``parameters`` of shape (p,), the last w, and ``models``, a list of the clients' vᵢ.
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
