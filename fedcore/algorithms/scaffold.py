"""SCAFFOLD: FedAvg with control variates that correct the drift of the clients.

The method is Algorithm 1 of Karimireddy, Kale, Mohri, Reddi, Stich & Suresh (ICML 2020), with
Option II. In every round a set S of the N clients takes part, and each participant makes K steps of
size η from the server's network x. A client uses its own control variate cᵢ and the server's
variate c, which are zero at first:

    y ← y − η (∇fᵢ(y) − cᵢ + c),
    cᵢ⁺ = cᵢ − c + (x − y) / (K η).

The client replies with y − x and cᵢ⁺ − cᵢ. The server adds η_g times the mean of the differences
y − x to x. The server also adds |S|/N times the mean of the differences cᵢ⁺ − cᵢ to c.

As in Collins, Hassani, Mokhtari & Shakkottai (ICML 2021) the steps have momentum β. As in the code
of Collins et al., the divisor in the formula for cᵢ⁺ is K η even with momentum. Momentum makes x −
y about 1/(1 − β) times as large as K η times the mean gradient. But cᵢ − c should be a difference
of gradients. The error of cᵢ − c is therefore multiplied by −β/(1 − β) in every round in which
client i takes part. With β = 0 the error becomes zero. With β = 1/2, as in Collins et al., the
error changes only its sign. With β > 1/2 the error grows without bound. The code of Collins et al.
clips the corrected gradients at norm 10, which corresponds to ``clip`` = 10. With ``fine_tune`` the
method is SCAFFOLD+FT (see `fedcore.algorithms.fedavg`).
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
from fedcore.validation import Positive

if TYPE_CHECKING:
    from fedcore.deep.batches import Batch
    from fedcore.deep.networks import Tensor

CLIP_GUARD = 1e-6  # PyTorch's, against a division by zero


@dataclass(frozen=True)
class Params(settings.Tuned):
    """Hyper-parameters that SCAFFOLD adds to those of `fedcore.deep.settings.Tuned`.

    Attributes
    ----------
    server_rate : float
        Step size η_g of the server.
    clip : float, optional
        Bound on the norm of a corrected gradient ∇fᵢ(y) − cᵢ + c; a longer one is scaled to this
        norm. The corrected gradient includes the weight decay.
    """

    server_rate: Positive = 1.0
    clip: Positive | None = None


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run SCAFFOLD.

    Returns
    -------
    dict
        ``parameters`` is the vector of all parameters of the server's last network x. ``variate``
        is the server's last control variate c.
    """
    learner = deep.learner(params, federation)

    def begin(data: Labelled, state: Any, message: Any) -> None:
        state.variate = np.zeros(learner.sizes.whole, np.result_type(data.X))

    def gradient(y: Tensor, batch: Batch, correction: Tensor) -> Tensor:
        found = learner.whole.gradient(y, batch).add_(correction)
        if params.clip is None:
            return found
        length = found.norm(dim=-1, keepdim=True)
        return found.mul_((params.clip / (length + CLIP_GUARD)).clamp(max=1))

    @learner.step
    def update(data: Labelled, state: Any, message: np.ndarray) -> np.ndarray:
        x, c = message
        batches = learner.batches(learner.samples(data), state.rng, params.epochs)
        y = learner.descend(x, gradient, batches, c - state.variate)
        before = state.variate
        state.variate = before - c + (x - y) / (len(batches) * params.rate)
        return np.stack([y - x, state.variate - before])

    def one_round(t: int, chosen: Any, held: np.ndarray) -> np.ndarray:
        federation.broadcast(held, to=chosen)
        moved, turned = federation.mean(update, of=chosen)
        x, c = held
        share = params.n_participants(n_clients) / n_clients
        return np.stack([x + params.server_rate * moved, c + share * turned])

    def networks(held: np.ndarray) -> Any:
        return learner.shared(held[0])

    federation.local(begin)
    x, n_clients = learner.start(rounds.draw_seed(rng)), federation.shape.n_clients
    first, counts = np.stack([x, np.zeros_like(x)]), {"fine_tuned": 0}
    x, c = rounds.run_rounds(
        federation, params, rng, record, one_round, first, networks, counts=counts
    )
    rounds.fine_tune(federation, learner, params, record, x)
    return {"parameters": x, "variate": c}


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run.

    In each round, every participant downloads x and c, and uploads y − x and the change of its own
    control variate. For fine-tuning, every client downloads the last x.
    """
    size = models.sizes(params.model, shape.n_features).whole
    return params.cost(shape, up=2 * size, down=2 * size, once=size if params.fine_tune else 0)


ALGORITHM = Algorithm(
    paper="fedrep",
    parameters=Params,
    run=run,
    communication=communication,
    task=CLASSIFIERS,
    columns=rounds.FINE_TUNED,
    citation=(
        "Karimireddy, Kale, Mohri, Reddi, Stich & Suresh, *SCAFFOLD: stochastic controlled "
        "averaging for federated learning* (ICML 2020), Algorithm 1"
    ),
    look=("purple", "dotted"),
)
