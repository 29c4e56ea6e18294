"""APFL: every client mixes the server's network with one of its own, and trains both.

In every round a share r of the clients trains for E epochs. Each step of client i takes the loss fᵢ
of one batch, and updates the client's copy wᵢ of the server's network w and the client's own
network vᵢ:

    wᵢ ← wᵢ − η ∇fᵢ(wᵢ),    vᵢ ← vᵢ − η ∇_v fᵢ(v̄ᵢ),    v̄ᵢ = α vᵢ + (1 − α) wᵢ.

The mixture weight α is fixed. After the E epochs, the server's new w is the mean of the
participants' wᵢ. Client i predicts with the mixture α vᵢ + (1 − α) w, where w is the newest network
of the server. For every α, w is the same as in FedAvg; with α = 0, the clients' predictions are
also the same. The code of Collins, Hassani, Mokhtari & Shakkottai (ICML 2021) takes the mixture α
vᵢ + α wᵢ, without the factor 1 − α.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from fedcore import deep
from fedcore.algorithms import Algorithm
from fedcore.deep import rounds, settings
from fedcore.federation.federation import Federation
from fedcore.problems.clients import Labelled
from fedcore.problems.tasks import CLASSIFIERS
from fedcore.validation import real

if TYPE_CHECKING:
    from fedcore.deep.batches import Batch
    from fedcore.deep.networks import Tensor


@dataclass(frozen=True)
class Params(settings.Params):
    """Hyper-parameters that APFL adds to those of `fedcore.deep.settings.Params`.

    Attributes
    ----------
    mixture : float
        Weight α of a client's own network in the mixture with the server's network.
    """

    mixture: Annotated[float, real(least=0, most=1)] = 0.25


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run APFL.

    Returns
    -------
    dict
        ``parameters`` is the vector of all parameters of the server's last network w. ``models``
        lists, for each client i, the mixture α vᵢ + (1 − α) w of its own network vᵢ with w.
    """
    learner, alpha = deep.learner(params, federation), params.mixture

    def gradient(both: Tensor, batch: Batch) -> Tensor:
        w, v = both.chunk(2, dim=-1)
        mixed = learner.whole.gradient(w.lerp(v, alpha), batch)
        return learner.join(learner.whole.gradient(w, batch), mixed.mul_(alpha))

    @learner.step
    def update(data: Labelled, state: Any, w: np.ndarray) -> np.ndarray:
        batches = learner.batches(learner.samples(data), state.rng, params.epochs)
        both = learner.descend(np.concatenate([w, state.own]), gradient, batches)
        w, own = np.split(both, 2)
        state.own = own.copy()  # a view would keep w, too
        return w

    def mixtures(w: np.ndarray) -> list[np.ndarray]:
        return [alpha * v + (1 - alpha) * w for v in federation.client_state("own")]

    def networks(w: np.ndarray) -> Any:
        return learner.personal(w, mixtures(w))

    w = rounds.start_networks(federation, learner, rng, keep=lambda w: w)
    w = rounds.average(federation, params, rng, record, update, w, networks)
    return {"parameters": w, "models": mixtures(w)}


ALGORITHM = Algorithm(
    paper="fedrep",
    parameters=Params,
    run=run,
    communication=rounds.cost_of_own_networks,
    task=CLASSIFIERS,
    citation=(
        "Deng, Kamani & Mahdavi, *Adaptive personalized federated learning* (arXiv:2003.13461, "
        "2020), Algorithm 1"
    ),
    look=("green", "long-dashed"),
)
