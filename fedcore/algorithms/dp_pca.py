"""DP-PCA: Oja's method on minibatches with a private mean of the gradients.

The rows are split into T batches of B; with gradients gᵢ = aᵢ⟨aᵢ,w⟩ of a batch,

1. Λ̂, a private estimate of the top eigenvalue of their covariance: top eigenvalues of subsets of
   differences g₂ᵢ − g₂ᵢ₋₁ vote for a bin [2^{j/4}, 2^{(j+1)/4}) of a private histogram;
2. a private mean: for each coordinate a private histogram with bins of width 2τ finds an interval
   of length 4τ; gradients are clipped to the interval and averaged, with Gaussian noise;
3. ``w ← w + η_t ĝ, w ← w/‖w‖, η_t = h/((λ̄₁ − λ̄₂)(ξ + t))``, the population's gap taken as known.

Neighbours: one row is replaced. A row is in one batch only, so that each batch has the whole budget
(ε, δ): half for step 1, half for step 2, (ε₂, δ₂). As in their analysis τ covers a gradient with
high probability: τ = 2^{1/4} √(2 Λ̂ log(B d T/ζ)), ζ = 0.01. ``paper``: the histogram of each of d'
coordinates has ε₂/(4√(2 d' log(4/δ₂))) and δ₂/4d', the noise √(2 log(2.5/δ₂))/(ε₂/2), proved for ε
≤ 4. ``tight``: the least noise that the accountant allows, with half of the zCDP budget for the
histograms.

The number of subsets that vote (`VOTES`), ζ and the split of the budget were chosen here, and not
checked against the full text. Departures: an empty histogram ends the paper's algorithm; here it
centres the interval at 0, or skips the step if it is the histogram of Λ̂. k > 1 columns are
flattened into d' = dk coordinates. Several clients pass w on from one to the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.algorithms.private_oja import client_after_client, communication
from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.linalg import orth
from fedcore.parts.budget import Budgeted, gaussian_start
from fedcore.parts.private_mean import Budget, private_mean
from fedcore.privacy import accounting
from fedcore.privacy.bounded_rows import without_endless_rows
from fedcore.privacy.events import Bounded, Event, Gaussian
from fedcore.privacy.mechanisms import derived
from fedcore.validation import Count, Positive


@dataclass(frozen=True)
class Params(Budgeted):
    """Parameters of `Budgeted`, and these.

    Attributes
    ----------
    gap : float
        λ̄₁ − λ̄₂, eigenvalue gap of E aaᵀ, taken as known.
    rate : float
        h of the steps h / (gap (ξ + t)).
    offset : float
        ξ of the steps.
    batches : int
        T, number of batches into which every client splits its rows.
    """

    gap: Positive = 0.1
    rate: Positive = 4.0
    offset: Positive = 4.0
    batches: Count = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_small_epsilon(4.0)


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Algorithm 3; see the module's text.

    Returns
    -------
    dict
        ``basis`` of shape (n_features, n_components).
    """
    params.open(federation, "replace_one", bounded=False)
    W = gaussian_start(federation, params, rng)
    budget = None if params.epsilon is None else calibrate(params, W.size)

    def one_pass(data: np.ndarray, state: SimpleNamespace, W: np.ndarray) -> np.ndarray:
        stream = state.rng
        if params.epsilon is not None:
            if len(data) < params.batches:
                raise InputError(
                    f"the rows of every client are split into batches = {params.batches}, and one "
                    f"client has {len(data)}: choose batches of at most {len(data)}"
                )
            stream = state.privacy.bounded(params.epsilon, params.delta, "DP-PCA")
        for t, batch in enumerate(np.array_split(stream.permutation(len(data)), params.batches)):
            rows = without_endless_rows(data[batch])
            if budget is None:
                mean = rows.T @ (rows @ W) / max(len(rows), 1)
            else:
                gradients = (rows[:, :, None] * (rows @ W)[:, None, :]).reshape(len(rows), -1)
                mean = private_mean(gradients, budget, params.batches, stream).reshape(W.shape)
            W = orth(W + params.rate / (params.gap * (params.offset + t)) * mean)
        return derived(state, W)

    return {"basis": client_after_client(federation, one_pass, W, record)}


def calibrate(params: Params, coordinates: int) -> Budget:
    """Budget of one batch for gradients of `coordinates` numbers."""
    assert params.epsilon is not None
    epsilon, delta = params.epsilon / 2.0, params.delta / 2.0
    small = delta / (4.0 * coordinates)
    if params.calibration == "paper":
        part = epsilon / (4.0 * math.sqrt(2.0 * coordinates * math.log(4.0 / delta)))
        z = math.sqrt(2.0 * math.log(2.5 / delta)) / (epsilon / 2.0)
        return Budget((epsilon, delta), (part, small), z)

    def part_of(z: float) -> float:
        return 1.0 / (z * math.sqrt(coordinates))

    def events(z: float) -> dict[Event, int]:
        return {Gaussian(z): 1, Bounded(part_of(z), small): coordinates}

    z = accounting.calibrate(events, epsilon, delta)
    return Budget((epsilon, delta), (part_of(z), small), z)


ALGORITHM = Algorithm(
    paper="dppower",
    parameters=Params,
    run=run,
    communication=communication,
    case={  # the clients of the checks are small
        "sequential": True,
        "needs": lambda S, r: {"batches": 2, "clip": True},
    },
    citation=(
        "Liu, Kong, Jain & Oh, *DP-PCA: statistically optimal and differentially private PCA* "
        "(NeurIPS 2022), Algorithm 3"
    ),
    look=("vermillion", "dash-dotted"),
)
