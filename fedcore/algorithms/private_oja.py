"""Private Oja's method: one pass over shuffled rows with clipped, noisy steps.

Over a random permutation of the rows, in batches of `batch` (1 in the paper),

    w ← w + η_t (clip_β(a⟨a,w⟩) + 2βα z_t),   z_t ~ N(0, I),   η_t = h/((λ̄₁ − λ̄₂)(ξ + t)),
    w ← w/‖w‖,

with the eigenvalue gap of the population taken as known. Neighbours: one row is replaced. A row is
used once. A step is therefore a local randomiser, and shuffling amplifies its privacy.

``paper``: α = C log(n/δ)/(ε√n) with C = 1. The paper proves it, up to C, for ε ≤ √(log(n/δ)/n)
(Lemma 3.1); larger ε are refused. ``tight`` has no such limit: the amplification by shuffling of
adaptive local randomisers (Feldman, McMillan & Talwar, FOCS 2021, Theorem 3.1, with Theorem 3.8 for
the δ of the Gaussian mechanism) gives the ε₀ that a step may spend. The number of rows n is public,
because neighbours have equally many rows.

Departures: k > 1 columns (Frobenius clipping, orthonormalised steps) and batches are not in the
paper. The mean of a batch gets noise once; a replaced row changes it by 2β/`batch`. The sum over
the last, incomplete batch is divided by `batch` as well. Amplification counts ⌊n/batch⌋ positions:
given the other rows of all batches, the shuffle puts a row into one of at least so many batches.
Several clients pass w on from one to the next, and each shuffles its own rows.
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
    """Parameters of `Budgeted`, and these.

    Attributes
    ----------
    gap : float
        λ̄₁ − λ̄₂, eigenvalue gap of E aaᵀ, taken as known.
    rate : float
        h of the steps h / (gap (ξ + t)).
    offset : float
        ξ of the steps.
    bound : float
        β, norm to which longer gradients are clipped.
    batch : int
        Number of rows of a step.
    """

    gap: Positive = 0.1
    rate: Positive = 2.0
    offset: Positive = 100.0
    bound: Positive = 1.0
    batch: Count = 1


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Algorithm 2; see the module's text.

    Returns
    -------
    dict
        ``basis`` of shape (n_features, n_components).
    """
    params.open(federation, "replace_one", bounded=False)
    W = gaussian_start(federation, params, rng)
    return {"basis": client_after_client(federation, partial(one_pass, params), W, record)}


def communication(params: Params, shape: Shape) -> Cost:
    """One d×k block to every client and back, one client after the other."""
    block = shape.n_features * params.n_components
    return Cost(shape.n_clients, shape.n_clients * block, shape.n_clients * block)


def client_after_client(
    federation: Federation, step: Step, W: np.ndarray, record: Any
) -> np.ndarray:
    """Pass W from client to client; each client's reply replaces W. Return the last W."""
    record(0, basis=W)
    for k in record.rounds(federation.shape.n_clients):
        federation.broadcast(W, to=[k - 1])
        W = federation.gather(step, of=[k - 1])[0]
        record(k, basis=W)
    return W


def one_pass(params: Params, data: np.ndarray, state: SimpleNamespace, W: np.ndarray) -> np.ndarray:
    """Client step: one pass of Oja's method over the client's rows."""
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
    """Return α, the noise of a step in units of its sensitivity 2β/batch, for n rows.

    Raises
    ------
    InputError
        When ε is above the limit of the calibration ``paper``.
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
