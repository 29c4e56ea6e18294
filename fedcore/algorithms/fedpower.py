"""FedPower: differentially private subspace iteration with local steps and partial participation.

The method is from Guo, Li, Chang, Wang & Zhang (Machine Learning 2024), here called the paper. In
each of T iterations, client i multiplies its basis Zᵢ by its Gram matrix and adds noise of standard
deviation s:

    Yᵢ = MᵢᵀMᵢ Zᵢ + N(0, s²).

The rows of Mᵢ are the samples of client i, with norm at most 1. Some of the iterations are
synchronisations. After any other iteration the client orthonormalises Yᵢ and continues with the
result. At a synchronisation the client sends Yᵢ and Zᵢ, and the server aligns the Yᵢ and adds them
up. The method equals `local_power` if there is no noise, all clients take part, and iteration T is
a synchronisation.

If `participants` is a number K, the server draws K clients at every synchronisation. By default the
server draws with replacement, as in the paper's Algorithm 3. A client that was drawn w times sends
once and has weight w. The first client, to whose basis all others are aligned, sends in every
round. If iteration T falls between two synchronisations, a last round averages the aligned bases
Zᵢ, and the orthonormalised average is the method's result.

The function `standard_deviation` computes s. The computation of ε counts every product that a
sending client computes. With m clients and n samples, the paper's matrix Aᵢ is m/n times MᵢᵀMᵢ, and
the paper's noise ν is m/n times s. The factor m/n changes no basis Zᵢ or Z.

In the paper, clients that do not send still compute. In fedcore they do not compute, because the
next broadcast would overwrite their results. By default the entries of the first basis Z₀ are
uniform, as in `local_power`; in the paper, they are Gaussian.
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
    """Hyper-parameters of FedPower.

    Attributes
    ----------
    n_components : int
        Number r of columns of the basis Z.
    target : int, optional
        Dimension k ≤ r of the eigenspace sought; by default r.
    iterations : int
        Number T of products with the data that a client makes if it takes part in all rounds.
    local_steps : int
        Number p of products before the first synchronisation.
    schedule : str
        Rule by which `local_steps` changes from one synchronisation to the next, as in
        `local_power`.
    alignment : str
        Rule that aligns each client's basis Zᵢ with the first client's Z₁, as in `local_power`.
    epsilon : float or None
        Privacy loss ε of the whole run. With None, the method adds no noise and gives no privacy.
    delta : float
        Parameter δ of the (ε, δ)-DP guarantee for the whole run.
    calibration : str
        ``tight`` takes the least noise with which, by the privacy accountant, the run is (ε, δ)-DP.
        ``paper`` takes the noise that Theorem 6 of Guo et al. gives.
    participants : int, optional
        Number K of clients drawn at each synchronisation; by default all clients take part
        (Algorithm 2 of Guo et al.).
    replacement : bool
        Whether the K clients are drawn with replacement.
    entries : str
        Distribution of the entries of the first basis Z₀ before its orthonormalisation:
        ``gaussian`` as in Guo et al., or ``uniform`` as in `local_power`.
    clip : bool
        If true, rows of norm above 1 are scaled to norm 1; if false, a run with noise refuses such
        rows.
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
                f"n_components = {self.n_components} is smaller than target = {self.target}: "
                "choose n_components of at least target"
            )


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run FedPower.

    Returns
    -------
    dict
        Orthonormal ``basis`` of shape (n_features, n_components).
    """
    m, K = federation.shape.n_clients, params.participants
    if K is not None and K > m and not params.replacement:
        there = counted(m, "client")
        raise InputError(
            f"participants = {K} cannot be drawn from {there} without replacement: choose at most "
            f"{m}, or replacement = true"
        )
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
    """Return two client steps that compute ``MᵀM Z``, with noise unless `epsilon` is None.

    The first client step is for local steps, and the second is for rounds of a single product.
    """
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
    """Draw the clients that send, and return {index: weight}, beginning with the first client.

    The result is None if all clients send with weight 1.
    """
    if params.participants is None:
        return None
    drawn = rng.choice(federation.shape.n_clients, params.participants, replace=params.replacement)
    return {0: 0} | {int(i): int(np.sum(drawn == i)) for i in np.unique(drawn)}


def average(
    federation: Federation, q: int, alignment: str, product: Step, weights: dict[int, int] | None
) -> np.ndarray:
    """Return the weighted sum ``Σᵢ wᵢ Zᵢ Dᵢ`` of the bases after q local steps.

    The matrix Dᵢ aligns the basis Zᵢ with the first client's. A run of FedPower calls this function
    in its last round, if iteration T falls between two synchronisations.
    """

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
    """Yield the number of products between synchronisations; their sum may exceed `iterations`."""
    t = k = 0
    while t < params.iterations:
        q = SCHEDULES[params.schedule](params.local_steps, k)
        t, k = t + q, k + 1
        yield q


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run.

    In each round, every client downloads the d×r matrix Z. A sending client uploads one matrix of
    this size, or two if its basis Zᵢ is aligned. With `participants` the number of uploads is
    random, and the cost counts the largest possible number.
    """
    m, steps = shape.n_clients, list(intervals(params))
    senders = m if params.participants is None else min(m, params.participants + 1)
    blocks = [1 + (params.alignment != "none" and q > 1) for q in steps]
    if sum(steps) > params.iterations:
        blocks[-1] = 1  # Zᵢ alone
    block = shape.n_features * params.n_components
    return Cost(len(steps), senders * sum(blocks) * block, m * len(steps) * block)


def sensitivity(r: int) -> float:
    """Return the sensitivity of ``MᵀM Z`` for r orthonormal columns Z: 1 if r = 1, else √2.

    The sensitivity is the largest ``‖(aaᵀ − bbᵀ) Z‖_F`` for a row a that is replaced by a row b.
    For every Z, ``‖(aaᵀ − bbᵀ) Z‖_F² ≤ ‖aaᵀ − bbᵀ‖_F² = ‖a‖⁴ + ‖b‖⁴ − 2 (aᵀb)² ≤ 2``. For a single
    column the norm is at most ``‖aaᵀ − bbᵀ‖₂ ≤ 1``. Orthogonal unit rows a and b attain the bound
    for one column if range(Z) contains a. The rows attain the bound for several columns if range(Z)
    contains both a and b.
    """
    return math.sqrt(min(r, 2))


def theorem_6(r: int, steps: int, epsilon: float, delta: float) -> float:
    """Return the noise's standard deviation in Theorem 6 of Guo et al., for T = `steps` products.

    The result is ``2 √r max{√(T/ε), 2 √(2 T ln(1/δ)) / ε}``. For m clients with n samples in total,
    the ν of Guo et al. is m/n times the result. They call ν both a variance and a standard
    deviation; their proof uses a standard deviation.
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
    """Return the standard deviation of the noise that makes `steps` products (ε, δ)-DP together.

    Each product is ``MᵀM Z``, where the rows of M have norm at most 1. Z has r orthonormal columns
    and depends on the data only through earlier releases.

    Parameters
    ----------
    calibration : str
        ``paper`` takes the noise of `theorem_6`, and ``tight`` takes the least noise that suffices
        for the exact `sensitivity`.
    r : int
        Number of columns of Z.
    steps : int
    epsilon, delta : float

    Raises
    ------
    InputError
        If an argument is out of its range.
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
