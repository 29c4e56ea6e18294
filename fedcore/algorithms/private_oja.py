"""Private Oja's method: one pass over shuffled rows with clipped, noisy steps.

The method is Algorithm 2 of Liu, Kong, Jain & Oh (NeurIPS 2022), here called the paper. A client
passes over a random permutation of its rows a, in batches of `batch` rows (1 in the paper). Each
step clips the gradient a⟨a,w⟩ to norm β (`bound`), and adds noise with the multiplier α:

    w ← w + η_t (clip_β(a⟨a,w⟩) + 2βα z_t),   z_t ~ N(0, I),   η_t = h/((λ̄₁ − λ̄₂)(ξ + t)),
    w ← w/‖w‖.

The parameters `rate` = h and `offset` = ξ set the step size. The gap λ̄₁ − λ̄₂ between the two
largest eigenvalues of the population's matrix E aaᵀ is taken as known. Neighbouring data sets
differ in one replaced row. Because each row is used only once, each step is a local randomiser of
its own rows, and shuffling the rows amplifies the step's privacy.

``calibration="paper"`` takes the noise multiplier α = C log(n/δ)/(ε√n) with C = 1, where n is the
number of full batches. The paper's Lemma 3.1 proves this formula, except for the value of C, if ε ≤
√(log(n/δ)/n). ``calibration="paper"`` refuses ε > √(log(n/δ)/n), and ``calibration="tight"``
accepts every ε. If n is large enough, shuffling the rows lets each step spend a budget ε₀ above ε;
``tight`` then takes the noise for ε₀ if it is smaller than the noise for ε. The budget ε₀ follows
from Feldman, McMillan & Talwar (FOCS 2021), Theorem 3.1, with Theorem 3.8 for the δ of the Gaussian
mechanism. The number of rows is public, because neighbouring data sets have equally many rows.

The paper has neither batches nor k > 1 columns. For k > 1 columns, clipping uses the Frobenius
norm, and each step orthonormalises the columns. Noise is added once per batch, to the mean of the
clipped gradients; a replaced row changes this mean by at most 2β/`batch`. If the last batch is
incomplete, the sum over its rows is divided by `batch`, and not by the number of its rows. The
amplification is computed for n local randomisers, because the shuffle puts a given row into one of
at least n batches. With several clients, w passes from client to client, and each client shuffles
its own rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.errors import InputError
from fedcore.federation.federation import Federation, Step
from fedcore.federation.ledger import Cost, Shape
from fedcore.linalg import orth
from fedcore.parts.budget import Budgeted, gaussian_start, local_budget
from fedcore.privacy import calibration
from fedcore.privacy.bounded_rows import row_norms, without_endless_rows
from fedcore.privacy.mechanisms import derived
from fedcore.validation import Count, Positive

STEPS = 1024  # per block, for which rows are copied and noise is drawn at once
ROUNDING = 1.0 + 1e-9


@dataclass(frozen=True)
class Params(Budgeted):
    """Hyper-parameters that the method adds to those of `Budgeted`, such as ε and δ.

    Attributes
    ----------
    gap : float
        Gap λ̄₁ − λ̄₂ between the two largest eigenvalues of the population's matrix E aaᵀ, taken as
        known.
    rate : float
        Numerator h of the step sizes h / (gap (ξ + t)).
    offset : float
        Offset ξ of the step sizes h / (gap (ξ + t)).
    bound : float
        Bound β on the norm of a row's gradient; larger gradients are scaled to norm β.
    batch : int
        Number of rows that a step uses.
    """

    gap: Positive = 0.1
    rate: Positive = 2.0
    offset: Positive = 100.0
    bound: Positive = 1.0
    batch: Count = 1


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Algorithm 2 of Liu, Kong, Jain & Oh (NeurIPS 2022).

    Returns
    -------
    dict
        Orthonormal ``basis`` of shape (n_features, n_components).
    """
    params.open(federation, "replace_one", bounded=False)
    W = gaussian_start(federation, params, rng)
    return {"basis": client_after_client(federation, partial(one_pass, params), W, record)}


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run.

    Every client has one round, in which it downloads the d×k matrix W and uploads the next W.
    """
    block = shape.n_features * params.n_components
    return Cost(shape.n_clients, shape.n_clients * block, shape.n_clients * block)


def client_after_client(
    federation: Federation, step: Step, W: np.ndarray, record: Any
) -> np.ndarray:
    """Pass W from client to client, replace W by each client's reply, and return the last W."""
    record(0, basis=W)
    for k in record.rounds(federation.shape.n_clients):
        federation.broadcast(W, to=[k - 1])
        W = federation.gather(step, of=[k - 1])[0]
        record(k, basis=W)
    return W


def one_pass(params: Params, data: np.ndarray, state: SimpleNamespace, W: np.ndarray) -> np.ndarray:
    """Client step: make one pass of Oja's method over the client's rows, and return the last W."""
    rng, noise = state.rng, 0.0
    if params.epsilon is not None:
        noise = 2.0 * params.bound / params.batch * noise_multiplier(params, len(data))
        rng = state.privacy.bounded(params.epsilon, params.delta, "shuffled Oja")
    order = rng.permutation(len(data))
    W, t = np.array(W, dtype=np.float64), 0
    for start in range(0, len(data), STEPS * params.batch):
        rows = without_endless_rows(data[order[start : start + STEPS * params.batch]])
        norms = row_norms(rows)
        steps = -(-len(rows) // params.batch)
        draws = noise * rng.standard_normal((steps, *W.shape)) if noise else np.zeros(steps)
        short = not noise or norms.max() ** 2 <= params.bound * ROUNDING  # W is orthonormal
        for i in range(steps):
            part = slice(i * params.batch, (i + 1) * params.batch)
            Y = rows[part] @ W
            if not short:
                lengths = norms[part] * np.sqrt(np.einsum("ij,ij->i", Y, Y))
                Y *= (params.bound / np.maximum(lengths, params.bound))[:, None]
            gradient = rows[part].T @ Y / params.batch + draws[i]
            W += params.rate / (params.gap * (params.offset + t)) * gradient
            W = W / math.sqrt(np.vdot(W, W)) if W.shape[1] == 1 else orth(W)
            t += 1
    return derived(state, W)


def noise_multiplier(params: Params, n: int) -> float:
    """Return the noise multiplier α of a step, for a client with n rows.

    The standard deviation of the noise is α times the sensitivity 2β/batch.

    Raises
    ------
    InputError
        Raised if ε is above the limit of the calibration ``paper``.
    """
    assert params.epsilon is not None
    epsilon, delta, steps = params.epsilon, params.delta, max(1, n // params.batch)
    if params.calibration == "tight":
        budgets = (epsilon, delta), local_budget(epsilon, delta, steps)
        return min(calibration.gaussian_noise_multiplier(*b) for b in budgets if b is not None)
    limit = math.sqrt(math.log(steps / delta) / steps)
    if epsilon > limit:
        raise InputError(
            f"epsilon = {epsilon:g}: the paper's calibration is proved for epsilon up to "
            f"{limit:.3g} at {steps} steps; use calibration = 'tight'"
        )
    return math.log(steps / delta) / (epsilon * math.sqrt(steps))


ALGORITHM = Algorithm(
    paper="dppower",
    parameters=Params,
    run=run,
    communication=communication,
    case={"sequential": True},
    citation=(
        "Liu, Kong, Jain & Oh, *DP-PCA: statistically optimal and differentially private PCA* "
        "(NeurIPS 2022), Algorithm 2"
    ),
    look=("orange", "dash-dotted"),
)
