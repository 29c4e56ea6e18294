"""Adaptive power method that needs no knowledge of the spectral gap.

For each guess κ = 1, ½, ¼, … of the spectral gap, the method runs T = ⌈`unit`/κ⌉ steps of Algorithm
1 of Nguyen, Ene & Nguyen (see `adaptive_power`). The exponential mechanism (McSherry & Talwar, FOCS
2007) chooses one of the resulting bases X by their utilities ‖A X‖²_F, where the rows of A are the
samples. Neighbouring data sets differ by one added or removed row a, which changes a utility by at
most ‖a‖² ≤ 1.

Nguyen, Ene & Nguyen give no constants for the search over κ. In fedcore the exponential mechanism
is (`choice_share`·ε)-DP. All steps of all guesses have the same noise multiplier, the least with
which the privacy accountant finds the whole run (ε, δ)-DP. ``calibration="paper"`` is refused. With
several clients, each client adds noise to the products of its own rows, and chooses a guess by the
utilities for its own rows. The server takes the guess that most clients chose. In a tie, the
largest guess wins.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.linalg import orth
from fedcore.parts.budget import Budgeted, gaussian_start
from fedcore.parts.filtering import Noise, filtered_product, search_epsilon, step_events
from fedcore.parts.gram_products import gram_product
from fedcore.privacy import calibration
from fedcore.privacy.bounded_rows import product
from fedcore.privacy.events import Bounded
from fedcore.privacy.mechanisms import derived
from fedcore.validation import Count, Positive, Share

SEARCH_SHARE, FAILURE, RATIO = 0.1, 0.05, 2.0  # of `adaptive_power`


@dataclass(frozen=True)
class Params(Budgeted):
    """Hyper-parameters that the method adds to those of `Budgeted`, such as ε and δ.

    Attributes
    ----------
    guesses : int
        Number of guesses of the gap κ.
    unit : float
        Number of steps for the guess κ = 1. Corollary 1.1 of Nguyen, Ene & Nguyen has a logarithm
        in the place of `unit`.
    choice_share : float
        Share of ε that the exponential mechanism spends.
    """

    guesses: Count = 4
    unit: Positive = 6.0
    choice_share: Share = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.calibration == "paper":
            raise InputError(
                "calibration = 'paper' is not defined for adaptive_search: use 'tight'"
            )


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Algorithm 1 for every guess of the gap, and choose one of the resulting bases.

    Returns
    -------
    dict
        Orthonormal ``basis`` of shape (n_features, n_components).
    """
    params.open(federation, "add_or_remove_one")
    step = gram_product
    if params.epsilon is not None:
        step = filtered_product(calibrate(params, params.epsilon), FAILURE, RATIO)
    start = X = gaussian_start(federation, params, rng)
    record(0, basis=X)
    ends = list(itertools.accumulate(schedule(params)))
    candidates = []
    for k in record.rounds(ends[-1]):
        federation.broadcast(start if k - 1 in ends else X)
        X = orth(federation.sum(step))
        record(k, basis=X)
        if k in ends:
            candidates.append(X)
    if record.ended:
        return {"basis": X}

    def vote(data: np.ndarray, state: SimpleNamespace, message: Any) -> np.ndarray:
        utilities = np.array([np.sum(product(data, X) ** 2) for X in message])
        if params.epsilon is None:
            return utilities
        share = params.choice_share * params.epsilon
        choice = state.privacy.exponential(utilities, sensitivity=1.0, epsilon=share)
        return derived(state, np.eye(len(message))[choice])

    federation.broadcast(candidates)
    X = candidates[int(np.argmax(federation.sum(vote)))]
    record(ends[-1] + 1, basis=X)
    return {"basis": X}


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run.

    In each step, every client receives one d×k matrix (d features, k components) and sends one. For
    the choice of a guess, every client receives all candidate bases and sends one number for each
    basis.
    """
    steps, block = sum(schedule(params)), shape.n_features * params.n_components
    up = steps * block + params.guesses
    down = (steps + params.guesses) * block
    return Cost(steps + 1, shape.n_clients * up, shape.n_clients * down)


def schedule(params: Params) -> list[int]:
    """Return the number of steps T for every guess of the gap."""
    return [math.ceil(params.unit * 2.0**j) for j in range(params.guesses)]


def calibrate(params: Params, epsilon: float) -> Noise:
    """Return the noise of one step with which all steps and the choice of a guess spend (ε, δ)."""
    steps = sum(schedule(params))
    choice = Bounded(params.choice_share * epsilon)
    multiplier = calibration.calibrate(
        lambda z: {**step_events(z, SEARCH_SHARE, steps), choice: 1}, epsilon, params.delta
    )
    return Noise(search_epsilon(multiplier, SEARCH_SHARE), multiplier, 2.0)


ALGORITHM = Algorithm(
    paper="dppower",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    citation="Nguyen, Ene & Nguyen (arXiv:2602.11454), before Corollary 1.1",
    look=("sky", "dash-dotted"),
)
