"""FedPower: differentially private subspace iteration with local steps and stragglers.

Each of T iterations is a product with noise,

    Yᵢ = MᵢᵀMᵢ Zᵢ + N(0, s²),   Mᵢ the samples × features of client i, rows of norm at most 1,

orthonormalised locally or, at a synchronisation, sent with Zᵢ to be aligned and summed. Without
noise, with all clients and a synchronisation at T, this is `local_power`. With K `participants` the
server draws K clients at every synchronisation, with replacement as in Algorithm 3, or without. A
client that was drawn w times sends once and has weight w. The first client is the reference for the
alignment and sends in every round. If there is no synchronisation at T, one more round averages the
aligned Zᵢ at T, and this average is the answer. `standard_deviation` defines s. The privacy account
charges every product of a client that sends. The paper's ``Aᵢ = (m/n) MᵢᵀMᵢ`` and ν are m/n times
the matrix and the noise here; this factor changes no iterate.

Departures: a client that does not send does not compute, because the next broadcast would
overwrite its work. Unless `entries` says so, Z₀ is drawn as in `local_power`, not as in the paper.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.algorithms.local_power import ALIGNMENTS, SCHEDULES, aggregate, align, weights_of
from fedcore.algorithms.ssi import starting_basis
from fedcore.errors import InputError
from fedcore.federation.federation import Federation, Step
from fedcore.federation.ledger import Cost, Shape
from fedcore.linalg import haar, orth
from fedcore.parts.gram_products import (
    gram_product,
    local_gram_product,
    local_gram_product_in_double,
)
from fedcore.parts.params import Parameters
from fedcore.privacy.accounting import Epsilon
from fedcore.privacy.calibration import Calibration, gaussian_noise_multiplier
from fedcore.privacy.mechanisms import derived
from fedcore.validation import Count, CountOrZero, Share, checked, one_of
from fedcore.words import counted


@dataclass(frozen=True)
class Params(Parameters):
    """Hyper-parameters; schedule and alignment are those of `local_power`.

    Attributes
    ----------
    n_components : int
        r, columns of Z.
    target : int, optional
        k ≤ r, dimension of the eigenspace sought; r when not given.
    iterations : int
        T, products of a client.
    local_steps : int
        p, products before the first synchronisation.
    schedule : str
        Change of `local_steps` from one synchronisation to the next, as in `local_power`.
    alignment : str
        Alignment of the Zᵢ to the first client's, as in `local_power`.
    epsilon : float or None
        ε of the whole run; None runs the method without noise and without privacy.
    delta : float
        δ of the whole run.
    calibration : str
        ``tight`` takes the least noise that the accountant finds for (ε, δ), ``paper`` the noise of
        the paper's Theorem 6.
    participants : int, optional
        K, number of clients drawn; when not given, all clients take part (Algorithm 2).
    replacement : bool
        Whether the K clients are drawn with replacement.
    entries : str
        Law of the entries of Z₀ before its orthonormalisation: ``gaussian`` as in the paper, or
        ``uniform`` as in `local_power`.
    clip : bool
        Whether rows of norm above 1 are scaled to norm 1; otherwise a run with noise refuses them.
    """

    target: Count | None = None
    iterations: CountOrZero = 10
    local_steps: Count = 2
    schedule: Annotated[str, one_of(SCHEDULES)] = "linear"
    alignment: Annotated[str, one_of(ALIGNMENTS)] = "procrustes"
    epsilon: Epsilon | None = 0.5
    delta: Share = 1e-4
    calibration: Calibration = "paper"
    participants: Count | None = None
    replacement: bool = True
    entries: Annotated[str, one_of(("uniform", "gaussian"))] = "uniform"
    clip: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.target is not None and self.target > self.n_components:
            raise InputError(
                f"n_components = {self.n_components} is below target = {self.target}: iterate with "
                "at least as many columns as directions sought"
            )


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run FedPower; see the module's text.

    Returns
    -------
    dict
        ``basis`` of shape (n_features, n_components).
    """
    m, K = federation.shape.n_clients, params.participants
    if K is not None and K > m and not params.replacement:
        there = counted(m, "client")
        raise InputError(f"{K} participants cannot be drawn from {there} without replacement")
    product, single = products(federation, params)
    k = params.target or params.n_components
    if params.start is None and params.entries == "gaussian":
        Z = haar(federation.shape.n_features, params.n_components, rng)
    else:
        Z = starting_basis(federation, params, rng)
    record(0, basis=Z, target=k)
    steps, t = list(intervals(params)), 0
    for number in record.rounds(len(steps)):
        q = steps[number - 1]
        federation.broadcast(Z)
        weights = draw(federation, params, rng)
        of = None if weights is None else list(weights)
        synchronous = t + q <= params.iterations
        if synchronous:
            t += q
            total = aggregate(
                federation, q, params.alignment, product=product, single=single, weights=weights
            )
        else:
            q, t = params.iterations - t, params.iterations
            total = average(federation, q, params.alignment, product, weights)
        Z = orth(total)
        shared = synchronous and q == 1
        local = [] if shared else federation.client_state("Z", of=of)
        record(t, basis=Z, target=k, local=align(local, params.alignment))
    return {"basis": Z}


def products(federation: Federation, params: Params) -> tuple[Step, Step]:
    """Client steps ``MᵀM Z`` with noise: for local steps, and for rounds of a single product."""
    if params.clip or params.epsilon is not None:
        federation.bound_rows(1.0, clip=params.clip)
    if params.epsilon is None:
        return local_gram_product, gram_product
    federation.protect(delta=params.delta, neighbours="replace_one")
    r, T, change = params.n_components, params.iterations, sensitivity(params.n_components)
    s = standard_deviation(params.calibration, r, max(T, 1), params.epsilon, params.delta)

    def noisy(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
        value = local_gram_product_in_double(data, state, Z)
        return state.privacy.gaussian(value, sensitivity=change, noise_multiplier=s / change)

    return noisy, noisy


def draw(federation: Federation, params: Params, rng: np.random.Generator) -> dict[int, int] | None:
    """Weight of each client that sends, the reference first; None if all clients have weight 1."""
    if params.participants is None:
        return None
    drawn = rng.choice(federation.shape.n_clients, params.participants, replace=params.replacement)
    return {0: 0} | {int(i): int(np.sum(drawn == i)) for i in np.unique(drawn)}


def average(
    federation: Federation, q: int, alignment: str, product: Step, weights: dict[int, int] | None
) -> np.ndarray:
    """Return ``Σᵢ wᵢ Zᵢ Dᵢ`` after q more steps: the last round, if T is no synchronisation."""

    def local_steps(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
        for _ in range(q):
            Z = orth(product(data, state, Z))
        state.Z = Z
        return derived(state, Z)

    of = None if weights is None else list(weights)
    aligned = align(federation.gather(local_steps, of=of), alignment)
    weight = weights_of(federation, weights)
    return np.sum([w * Z for w, Z in zip(weight, aligned, strict=True)], axis=0)


def intervals(params: Params) -> Iterator[int]:
    """Yield the number of products from each synchronisation to the next; the sum may exceed T."""
    t = k = 0
    while t < params.iterations:
        q = SCHEDULES[params.schedule](params.local_steps, k)
        t, k = t + q, k + 1
        yield q


def communication(params: Params, shape: Shape) -> Cost:
    """One d×r block down per client and round, one up, and a second up when Zᵢ is aligned.

    With `participants` the number of blocks up is random; the result is its largest value.
    """
    m, steps = shape.n_clients, list(intervals(params))
    senders = m if params.participants is None else min(m, params.participants + 1)
    blocks = [1 + (params.alignment != "none" and q > 1) for q in steps]
    if sum(steps) > params.iterations:
        blocks[-1] = 1  # Zᵢ alone
    block = shape.n_features * params.n_components
    return Cost(len(steps), senders * sum(blocks) * block, m * len(steps) * block)


def sensitivity(r: int) -> float:
    """Largest ``‖(aaᵀ − bbᵀ) Z‖_F`` over rows a, b: 1 for one column, √2 for more.

    One row a is replaced by another row b. ``‖(aaᵀ − bbᵀ) Z‖_F² ≤ ‖aaᵀ − bbᵀ‖_F² =
    ‖a‖⁴ + ‖b‖⁴ − 2 (aᵀb)² ≤ 2``, and for a single column the norm is at most ``‖aaᵀ − bbᵀ‖₂ ≤ 1``.
    Orthogonal unit rows attain both bounds: a in range(Z) for one column, a and b for more.
    """
    return math.sqrt(min(r, 2))


def theorem_6(r: int, steps: int, epsilon: float, delta: float) -> float:
    """Standard deviation of Theorem 6 of Guo et al. (FedPower), for T = `steps` products.

    ``2 √r max{√(T/ε), 2 √(2 T ln(1/δ)) / ε}``, which is (n/m) times the paper's ν, because MᵀM is
    (n/m) times the paper's A. The paper calls ν both a variance and a standard deviation; its proof
    uses the latter.
    """
    log = math.log(1.0 / delta)
    return (
        2.0
        * math.sqrt(r)
        * max(math.sqrt(steps / epsilon), 2.0 * math.sqrt(2.0 * steps * log) / epsilon)
    )


@checked
def standard_deviation(
    calibration: Calibration, r: int, steps: int, epsilon: float, delta: float
) -> float:
    """Standard deviation of the noise on every entry for (ε, δ)-DP of `steps` products together.

    Each is a product ``MᵀM Z``, where the rows of M have norm at most 1. Z has r orthonormal
    columns and depends on the data only through earlier releases.

    Parameters
    ----------
    calibration : str
        ``paper`` for `theorem_6`, ``tight`` for the least noise at the exact `sensitivity`.
    r : int
        Columns of Z.
    steps : int
    epsilon, delta : float

    Raises
    ------
    InputError
        For an argument out of its range.
    """
    if calibration == "paper":
        return theorem_6(r, steps, epsilon, delta)
    return sensitivity(r) * gaussian_noise_multiplier(epsilon, delta, steps)


ALGORITHM = Algorithm(
    paper="fedpower",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    citation=(
        "Guo, Li, Chang, Wang & Zhang, *FedPower: privacy-preserving distributed eigenspace "
        "estimation* (Machine Learning 2024), Algorithms 2 and 3"
    ),
)
