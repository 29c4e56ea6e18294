"""Rounds in which the server averages networks or their bodies, and fine-tuning of the heads.

In every method, the server first draws the seed of the initial network, and later the participants
of each round. Runs of different methods with equal seeds therefore share the initial network and
the participants. A client that keeps its own parameters receives only the seed, which is one
number, and draws the initial network from this seed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcore.deep.models import Sizes, sizes
from fedcore.deep.settings import Params, Personal, Tuned
from fedcore.federation.execution import Step
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.problems.clients import Labelled

if TYPE_CHECKING:
    from fedcore.deep.training import Learner

# ``(data, rng, body, head) -> body, head``: the training of one client in a round
Train = Callable[
    [Labelled, np.random.Generator, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]
]

FINE_TUNED = {"fine_tuned": ("epochs", "epochs in which every client has trained its head alone")}
NO_PARAMETERS = np.empty(0)  # what the server holds when it holds no parameters


def draw_seed(rng: np.random.Generator) -> int:
    """Draw a random number that serves as the seed of the initial network."""
    return int(rng.integers(2**63))


def start_networks(
    federation: Federation,
    learner: Learner,
    rng: np.random.Generator,
    keep: Callable[[np.ndarray], np.ndarray],
) -> np.ndarray:
    """Draw the initial network's seed, send it to all clients, and return the network's parameters.

    Every client draws the same parameters from the seed, and stores ``keep(parameters)`` in
    ``state.own``.
    """

    def first(data: Labelled, state: Any, seed: int) -> None:
        state.own = keep(learner.start(seed))

    seed = draw_seed(rng)
    federation.broadcast(seed)
    federation.local(first)
    return learner.start(seed)


def run_rounds(
    federation: Federation,
    params: Params,
    rng: np.random.Generator,
    record: Any,
    one_round: Callable[[int, Any, np.ndarray], np.ndarray],
    held: np.ndarray,
    networks: Callable[[np.ndarray], Any],
    **more: Any,
) -> np.ndarray:
    """Run and record the rounds ``held = one_round(t, chosen, held)``; return the last `held`.

    The array `held` is the server's state, and `chosen` contains the participants of round t. A
    killed run continues from `held` and from the arrays in the clients' states. A round must
    therefore not depend on anything else from earlier rounds. Before the first round and after each
    round, the function `record` gets the clients' networks, which ``networks(held)`` returns, and
    the arguments `more`.
    """
    done, held = record.resume(federation, held)
    if not done:
        record(0, classifiers=networks(held), **more)
    for t in record.rounds(params.rounds, done):
        held = one_round(t, params.participants(federation.shape.n_clients, rng), held)
        record(t, classifiers=networks(held), **more)
        record.keep(federation, held)
    return held


def average(
    federation: Federation,
    params: Params,
    rng: np.random.Generator,
    record: Any,
    update: Step,
    held: np.ndarray,
    networks: Callable[[np.ndarray], Any],
    **more: Any,
) -> np.ndarray:
    """Call `run_rounds` with rounds in which the server averages the participants' replies.

    In each round, the server sends its vector `held` to the participants. Each participant replies
    with the result of the client step `update` (a function that runs at a client), and the mean of
    the replies becomes `held`.
    """

    def one_round(t: int, chosen: Any, held: np.ndarray) -> np.ndarray:
        federation.broadcast(held, to=chosen)
        return federation.mean(update, of=chosen)

    return run_rounds(federation, params, rng, record, one_round, held, networks, **more)


def upload_own(data: Labelled, state: Any, message: Any) -> np.ndarray:
    """Return the client's own parameters, ``state.own``, which the client then uploads."""
    return state.own


def run_own_networks(
    federation: Federation,
    learner: Learner,
    params: Params,
    rng: np.random.Generator,
    record: Any,
    one_round: Callable[[int, Any], None],
) -> dict[str, Any]:
    """Call ``one_round(t, chosen)`` for every round t and its participants `chosen`.

    Each client keeps its own network in ``state.own``, and the server keeps no network. The
    returned dictionary has the clients' last networks as ``models``.
    """

    def networks(held: np.ndarray) -> Any:
        return learner.personal(held, federation.client_state("own"))

    def nothing_held(t: int, chosen: Any, held: np.ndarray) -> np.ndarray:
        one_round(t, chosen)
        return held

    run_rounds(federation, params, rng, record, nothing_held, NO_PARAMETERS, networks)
    return {"models": list(federation.client_state("own"))}


def average_networks(
    federation: Federation,
    learner: Learner,
    params: Tuned,
    rng: np.random.Generator,
    record: Any,
    update: Step,
    networks: Callable[[np.ndarray], Any] | None = None,
) -> dict[str, Any]:
    """Train one network by the rounds of `average`, then fine-tune its head at the clients.

    The function ``networks(w)`` returns the networks that the clients use; by default, all clients
    use the server's network.
    """
    w = learner.start(draw_seed(rng))
    used, counts = networks or learner.shared, {"fine_tuned": 0}
    w = average(federation, params, rng, record, update, w, used, counts=counts)
    fine_tune(federation, learner, params, record, w)
    return {"parameters": w}


def cost_of_networks(params: Tuned, shape: Shape) -> Cost:
    """Return the communication cost of a whole run of `average_networks`.

    In each round, every participant downloads one network and uploads one. For fine-tuning, every
    client downloads one more network.
    """
    size = sizes(params.model, shape.n_features).whole
    return params.cost(shape, up=size, down=size, once=size if params.fine_tune else 0)


def cost_of_own_networks(params: Params, shape: Shape) -> Cost:
    """Return the communication cost of a run whose clients draw the initial network from a seed.

    In each round, every participant downloads one network and uploads one. Before the first round,
    every client downloads the seed, which is one number.
    """
    size = sizes(params.model, shape.n_features).whole
    return params.cost(shape, up=size, down=size, once=1)


def fine_tune(
    federation: Federation, learner: Learner, params: Tuned, record: Any, w: np.ndarray
) -> None:
    """Let every client train its own copy of the head of the network `w`; record the networks.

    Nothing is trained if ``params.fine_tune`` is 0, or if a stop rule or divergence has ended the
    run. In Section 5.2 of Collins et al., ICML 2021, methods marked +FT train the head of the last
    network for ten epochs.
    """
    if not params.fine_tune or record.ended:
        return

    @learner.step
    def tune(data: Labelled, state: Any, w: np.ndarray) -> None:
        body, head = learner.split(w)
        batches = learner.head_batches(body, data, state.rng, params.fine_tune)
        state.tuned = learner.descend(head, learner.head.gradient, batches)

    federation.broadcast(w)
    federation.local(tune)
    body, _ = learner.split(w)
    networks = learner.networks(w, body, federation.client_state("tuned"))
    record(params.rounds + 1, classifiers=networks, counts={"fine_tuned": params.fine_tune})


def average_bodies(
    federation: Federation,
    learner: Learner,
    params: Personal,
    rng: np.random.Generator,
    record: Any,
    train: Train,
) -> dict[str, Any]:
    """Average the bodies of the participants' networks in the rounds of `average`.

    Each client keeps its head in ``state.own``. If ``first_head`` is "averaged", participants also
    send copies of their heads, which the server averages. A client that has not trained yet
    (``state.trained`` is false) then uses the mean of the heads.
    """
    shared = shared_size(params, learner.sizes)
    begins_with_own = shared == learner.sizes.body

    def untrained(data: Labelled, state: Any, message: Any) -> None:
        state.trained = np.array(begins_with_own)

    @learner.step
    def update(data: Labelled, state: Any, held: np.ndarray) -> np.ndarray:
        body, head = learner.split(held)
        body, head = train(data, state.rng, body, state.own if state.trained else head)
        state.own = head.copy()  # a view would keep the body, too
        state.trained = np.array(True)
        return np.concatenate([body, head])[:shared]

    def heads(held: np.ndarray) -> list[np.ndarray]:
        own = zip(*map(federation.client_state, ("own", "trained")), strict=True)
        return [head if trained else learner.split(held)[1] for head, trained in own]

    def networks(held: np.ndarray) -> Any:
        return learner.networks(held, learner.split(held)[0], heads(held))

    w = start_networks(federation, learner, rng, lambda w: learner.split(w)[1])
    federation.local(untrained)
    held = average(federation, params, rng, record, update, w[:shared], networks)
    return {"body": learner.split(held)[0], "heads": np.array(heads(held))}


def shared_size(params: Personal, sizes: Sizes) -> int:
    """Return how many parameters `average_bodies` averages: those of the body, or all."""
    return {"initial": sizes.body, "averaged": sizes.whole}[params.first_head]


def cost_of_bodies(params: Personal, shape: Shape) -> Cost:
    """Return the communication cost of a whole run of `average_bodies`.

    In each round, every participant downloads the averaged parameters and uploads its own. Before
    the first round, every client downloads the seed of the initial network, which is one number.
    """
    size = shared_size(params, sizes(params.model, shape.n_features))
    return params.cost(shape, up=size, down=size, once=1)
