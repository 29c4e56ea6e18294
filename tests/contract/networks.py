"""Small problems of classification, and methods for networks in their plainest form.

The oracles use NumPy alone: the gradient of the small network ``tiny_mlp`` is written out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.linalg import norm

from fedcore.problems.clients import Clients, Labelled
from fedcore.testing import Case, Draws
from fedcore.testing.samples import CLASSES, FEATURES


def tiny_gradient(w: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Gradient of the mean cross-entropy of ``tiny_mlp``, by hand."""
    W, b, V, c = np.split(w, np.cumsum([4 * FEATURES, 4, 4 * CLASSES]))
    W, V = W.reshape(4, FEATURES), V.reshape(CLASSES, 4)
    h = np.maximum(x @ W.T + b, 0)
    s = h @ V.T + c
    e = np.exp(s - s.max(axis=1, keepdims=True))
    e = (e / e.sum(axis=1, keepdims=True) - np.eye(CLASSES)[y.astype(int)]) / len(y)
    inner = (e @ V) * (h > 0)
    return np.concatenate([(inner.T @ x).ravel(), inner.sum(0), (e.T @ h).ravel(), e.sum(0)])


BODY = 4 * FEATURES + 4  # parameters of the body of ``tiny_mlp``
SIZE = BODY + 4 * CLASSES + CLASSES


def first_network(draws: Draws) -> np.ndarray:
    """Uniform in ±1/√(inputs of the layer), from the seed that the server draws."""
    rng = np.random.default_rng(draws.server.integers(2**63))
    shapes = (4 * FEATURES, FEATURES), (4, FEATURES), (4 * CLASSES, 4), (CLASSES, 4)
    return np.concatenate([rng.uniform(-(n**-0.5), n**-0.5, size) for size, n in shapes])


def chosen(draws: Draws, params: Any, n_clients: int) -> np.ndarray:
    """The clients of a round, ascending."""
    if params.participation == 1:
        return np.arange(n_clients)
    number = round(params.participation * n_clients)
    return np.sort(draws.server.choice(n_clients, number, replace=False))


def batches(rng: np.random.Generator, samples: int, params: Any, epochs: int) -> list[np.ndarray]:
    """Rows of every batch: each epoch a new order, its last batch with the rest."""
    orders = [rng.permutation(samples) for _ in range(epochs)]
    step = params.batch or samples
    return [order[i : i + step] for order in orders for i in range(0, samples, step)]


def descend(
    w: np.ndarray, gradient: Any, rows: list[np.ndarray], params: Any, beside: Any = None
) -> np.ndarray:
    """Gradient descent with momentum, and a gradient beside it."""
    step = np.zeros_like(w)
    for batch in rows:
        step = params.momentum * step + gradient(w, batch)
        w = w - params.rate * (step + (beside(w) if beside else 0))
    return w


def loss_gradient(data: Labelled) -> Any:
    """``(w, rows) -> gradient`` of a client's loss."""
    return lambda w, rows: tiny_gradient(w, data.X[rows], data.y[rows])


def in_a_round(
    w: np.ndarray, i: int, clients: Clients, draws: Draws, params: Any, gradient: Any = None,
    epochs: int | None = None, **more: Any,
) -> np.ndarray:  # fmt: skip
    """What a client makes of a network in a round, by default on its own loss."""
    epochs = params.epochs if epochs is None else epochs
    rows = batches(draws.clients[i], len(clients[i]), params, epochs)
    return descend(w, gradient or loss_gradient(clients.labelled(i)), rows, params, **more)


def plain_averaging(clients: Clients, draws: Draws, params: Any) -> list[np.ndarray]:
    """FedAvg and FedProx, with or without fine-tuning."""
    w, strength = first_network(draws), getattr(params, "strength", 0.0)
    for _ in range(params.rounds):
        new = []
        for i in chosen(draws, params, len(clients)):
            f = loss_gradient(clients.labelled(i))
            pulled = lambda v, rows, f=f, w=w: f(v, rows) + strength * (v - w)  # noqa: E731
            new.append(in_a_round(w, i, clients, draws, params, pulled))
        w = np.mean(new, axis=0)
    return tuned(w, clients, draws, params)


def tuned(w: np.ndarray, clients: Clients, draws: Draws, params: Any) -> list[np.ndarray]:
    """The network of every client after fine-tuning of its head, if any."""
    found = [w] * len(clients)
    for i in range(len(clients)) if params.fine_tune else ():
        f = loss_gradient(clients.labelled(i))
        part = lambda v, rows, f=f: head_only(f(v, rows))  # noqa: E731
        found[i] = in_a_round(w, i, clients, draws, params, part, params.fine_tune)
    return found


def head_only(gradient: np.ndarray) -> np.ndarray:
    return np.where(np.arange(len(gradient)) < BODY, 0, gradient)


def plain_fedrep(clients: Clients, draws: Draws, params: Any) -> list[np.ndarray]:
    """FedRep, and FedPer for parameters without ``head_epochs``."""
    w = first_network(draws)
    found, trained = [w] * len(clients), set()
    for _ in range(params.rounds):
        body, members = found[0][:BODY], chosen(draws, params, len(clients))
        for i in members:
            f, v = loss_gradient(clients.labelled(i)), np.concatenate([body, found[i][BODY:]])
            stages = [(params.epochs, lambda g: g)]
            if hasattr(params, "head_epochs"):
                stages = [(params.head_epochs, head_only),
                          (params.epochs, lambda g: g - head_only(g))]  # fmt: skip
            for epochs, part in stages:
                slope = lambda v, rows, f=f, part=part: part(f(v, rows))  # noqa: E731
                v = in_a_round(v, i, clients, draws, params, slope, epochs)
            found[i] = v
        trained |= set(members) if params.first_head == "averaged" else set(range(len(clients)))
        mean = np.mean([found[i] for i in members], axis=0)
        found = [
            np.concatenate([mean[:BODY], v[BODY:]]) if i in trained else mean
            for i, v in enumerate(found)
        ]
    return found


def plain_ditto(clients: Clients, draws: Draws, params: Any) -> list[np.ndarray]:
    """Ditto."""
    w = first_network(draws)
    found = [w] * len(clients)
    for _ in range(params.rounds):
        new = []
        for i in chosen(draws, params, len(clients)):
            f = loss_gradient(clients.labelled(i))
            pull = lambda v, w=w: params.strength * (v - w)  # noqa: E731
            pulled = lambda v, rows, f=f, pull=pull: f(v, rows) + pull(v)  # noqa: E731
            rows = batches(draws.clients[i], len(clients[i]), params, params.epochs)
            own = (pulled, rows, params) if params.pull == "inside" else (f, rows, params, pull)
            found[i] = descend(found[i], *own)
            new.append(descend(w, f, rows, params))
        w = np.mean(new, axis=0)
    return found


def plain_apfl(clients: Clients, draws: Draws, params: Any) -> list[np.ndarray]:
    """APFL, step by step."""
    w, a = first_network(draws), params.mixture
    own = [w] * len(clients)
    for _ in range(params.rounds):
        new = []
        for i in chosen(draws, params, len(clients)):
            f, v, u, p, q = loss_gradient(clients.labelled(i)), own[i], w, 0.0, 0.0
            for rows in batches(draws.clients[i], len(clients[i]), params, params.epochs):
                p, q = (params.momentum * p + f(u, rows),
                        params.momentum * q + a * f(a * v + (1 - a) * u, rows))  # fmt: skip
                u, v = u - params.rate * p, v - params.rate * q
            own[i] = v
            new.append(u)
        w = np.mean(new, axis=0)
    return [a * v + (1 - a) * w for v in own]


def plain_local(clients: Clients, draws: Draws, params: Any) -> list[np.ndarray]:
    """Local Only, and LG-FedAvg if there are lower layers: the body of the small network."""
    found = [first_network(draws)] * len(clients)
    for _ in range(params.rounds):
        members = chosen(draws, params, len(clients))
        for i in members:
            found[i] = in_a_round(found[i], i, clients, draws, params)
        if hasattr(params, "lower"):
            upper = np.mean([found[i][BODY:] for i in members], axis=0)
            found = [np.concatenate([v[:BODY], upper]) for v in found]
    return found


def plain_scaffold(clients: Clients, draws: Draws, params: Any) -> list[np.ndarray]:
    """SCAFFOLD with option II."""
    x, n = first_network(draws), len(clients)
    c, own = np.zeros(SIZE), np.zeros((n, SIZE))
    for _ in range(params.rounds):
        members, ends, before = chosen(draws, params, n), [], own.copy()
        for i in members:
            f = loss_gradient(clients.labelled(i))
            rows = batches(draws.clients[i], len(clients[i]), params, params.epochs)
            drift = c - before[i]

            def gradient(v: np.ndarray, r: np.ndarray, f=f, drift=drift) -> np.ndarray:
                g = f(v, r) + drift
                return g if params.clip is None else g * min(1, params.clip / (norm(g) + 1e-6))

            y = descend(x, gradient, rows, params)
            own[i] = before[i] - c + (x - y) / (len(rows) * params.rate)
            ends.append(y)
        x = x + params.server_rate * (np.mean(ends, axis=0) - x)
        c = c + (own - before).sum(axis=0) / n
    return tuned(x, clients, draws, params)


def plain_per_fedavg(clients: Clients, draws: Draws, params: Any) -> list[np.ndarray]:
    """Per-FedAvg without Hessians."""
    w, a, d = first_network(draws), params.inner_rate, params.difference

    def form(f: Any, v: np.ndarray, rows: np.ndarray) -> np.ndarray:
        number = max(1, int(params.support * len(rows)))
        D, target = rows[:number], rows[number:] if number < len(rows) else rows
        if params.form == "sum":
            return f(v, D) + f(v, target)
        g = f(v - a * f(v, D), target)
        return g - a * (f(v + d * g, D) - f(v - d * g, D)) / (2 * d)

    own = [w] * len(clients)
    for _ in range(params.rounds):
        members = chosen(draws, params, len(clients))
        for i in members:
            slope = partial(form, loss_gradient(clients.labelled(i)))
            own[i] = in_a_round(w, i, clients, draws, params, slope)
        w = np.mean([own[i] for i in members], axis=0)
    if params.form == "sum":
        for i in range(len(clients)) if params.fine_tune else ():
            own[i] = in_a_round(own[i], i, clients, draws, params, epochs=params.fine_tune)
        return own
    if params.fine_tune:
        return tuned(w, clients, draws, params)
    everyone = [clients.labelled(i) for i in range(len(clients))]
    return [w - a * tiny_gradient(w, data.X, data.y) for data in everyone]


def plain_fed_mtl(clients: Clients, draws: Draws, params: Any) -> list[np.ndarray]:
    """Fed-MTL, with the matrix W of all networks in every step."""
    found = [first_network(draws)] * len(clients)
    for _ in range(params.rounds):
        members = chosen(draws, params, len(clients))
        before = np.stack([found[i] for i in members], axis=1)
        centring = np.eye(len(members)) - 1 / len(members)
        for k, i in enumerate(members):

            def gradient(w: np.ndarray, rows: np.ndarray, k=k, i=i, W=before, O=centring) -> Any:
                W = W.copy()
                W[:, k] = w
                penalty = 2 * params.strength * (W + W @ O @ O)[:, k]
                return loss_gradient(clients.labelled(i))(w, rows) + penalty

            found[i] = in_a_round(found[i], i, clients, draws, params, gradient)
    return found


def plain_l2gd(clients: Clients, draws: Draws, params: Any) -> list[np.ndarray]:
    """L2GD with a fixed number of local rounds."""
    n = len(clients)
    found = [first_network(draws)] * n
    theta = params.alpha * params.strength / (n * params.averaging)
    number = round((1 - params.averaging) * params.rounds)
    local = draws.server.choice(params.rounds, number, replace=False)
    for t in range(params.rounds):
        members = chosen(draws, params, n)
        mean = np.mean([found[i] for i in members], axis=0)
        for i in members:
            if t in local:
                found[i] = in_a_round(found[i], i, clients, draws, params)
            else:
                found[i] = (1 - theta) * found[i] + theta * mean
    return found


def case(oracle: Any, settings: tuple[Mapping[str, Any], ...]) -> Case:
    """Return a case of a method whose oracle gives the parameters of every client at the end.

    The settings come on top of `PARAMS`.
    """
    return Case(oracle, settings=settings, needs=lambda S, r: PARAMS)


PARAMS = {"model": "tiny_mlp", "rounds": 3, "batch": 5, "rate": 0.2, "participation": 0.5}
ALL_OF_THEM = {"participation": 1, "epochs": 2}
WHOLE = {"batch": None, "momentum": 0.0, "rounds": 2}
NONE = {"rounds": 0}
AVERAGED = {"first_head": "averaged", "participation": 0.25}
CASES = {
    "apfl": case(plain_apfl, ({}, ALL_OF_THEM | {"mixture": 0.7}, WHOLE, NONE)),
    "ditto": case(
        plain_ditto, ({}, ALL_OF_THEM | {"strength": 0.1}, WHOLE, NONE, {"pull": "beside"})
    ),
    "fed_mtl": case(plain_fed_mtl, ({}, ALL_OF_THEM | {"strength": 0.3}, WHOLE, NONE)),
    "fedavg": case(plain_averaging, ({}, ALL_OF_THEM, WHOLE, NONE, {"fine_tune": 2})),
    "fedper": case(plain_fedrep, ({}, ALL_OF_THEM, WHOLE, NONE, AVERAGED)),
    "fedprox": case(plain_averaging, ({}, ALL_OF_THEM | {"strength": 1.0}, {"fine_tune": 2})),
    "fedrep": case(
        plain_fedrep,
        ({}, ALL_OF_THEM | {"head_epochs": 3}, WHOLE, {"head_epochs": 0}, AVERAGED),
    ),
    "l2gd": case(
        plain_l2gd,
        (
            {"averaging": 0.5, "rounds": 6},
            ALL_OF_THEM | {"averaging": 0.3, "alpha": 0.9, "strength": 0.5},
            WHOLE | {"averaging": 0.6},
            NONE,
        ),
    ),
    "lg_fedavg": case(plain_local, ({}, ALL_OF_THEM, WHOLE, NONE)),
    "local_only": case(plain_local, ({}, ALL_OF_THEM, WHOLE, NONE)),
    "per_fedavg": case(
        plain_per_fedavg,
        (
            {},
            ALL_OF_THEM | {"inner_rate": 0.3, "support": 0.5},
            WHOLE,
            {"fine_tune": 2},
            {"form": "sum"},
            {"form": "sum", "fine_tune": 2},
        ),
    ),
    "scaffold": case(
        plain_scaffold,
        (
            {},
            ALL_OF_THEM | {"server_rate": 0.5},
            WHOLE,
            NONE,
            {"fine_tune": 2, "rounds": 5},
            {"clip": 0.3},
        ),
    ),
}
