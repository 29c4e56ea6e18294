"""Noisy power method for private PCA, which protects single entries or whole rows of the data.

The rows of A are the samples. The method is the power iteration for the symmetrised matrix (0 A; Aᵀ
0), which computes Y and X in turn. With Gaussian matrices G and G′ and the noise multiplier z, the
noise is proportional to the largest row norm of the block that A or Aᵀ multiplies:

    Y = A X + ‖X‖_{2,∞} z G,     X ← orth(Aᵀ Y + ‖Y‖_{2,∞} z G′).

The noisy Y stays with the clients. The parameter `protects` says how neighbouring data sets differ.

With ``protects="entry"``, one entry of A changes by at most 1 (the model of Hardt & Roth and of
Hardt & Price). The sensitivities of the products are the largest row norms of X and Y, which are
‖x‖_∞ and ‖y‖_∞ for single columns.

With ``protects="row_by_entries"``, one row a of norm at most 1 is replaced by zeros. Composition
over the d entries of the row then needs √d times the noise of ``protects="entry"`` ("[HR13, HP14] +
Composition" of Nguyen, Ene & Nguyen). The number of rows counts as public, because the largest row
norm of the noisy Y depends on this number.

With ``protects="row"``, one row a of norm at most 1 is added or removed. The iteration with ``row``
is ``X ← orth(AᵀA X + z G)``, because ‖a(aᵀX)‖_F ≤ 1. The method is then the adaptive power method
(`adaptive_power`) with the threshold θ = 1 and without a search. Nguyen, Ene & Nguyen call this
method the "naive way".

``calibration="paper"`` takes z = √(4 L log(1/δ))/ε for L noisy products (Hardt & Price, Figure 3).
For T iterations, the number L is T with ``protects="row"``, and 2T otherwise. For a large ε (at δ =
1e-6, from ε = 42 on) this noise is too small for (ε, δ)-DP, and fedcore refuses the run.
``calibration="tight"`` takes the least z with which L Gaussian releases are (ε, δ)-DP. With several
clients, each client adds noise to the products of its own rows. The server receives only noisy
products, adds them up, and need not be trusted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.algorithms.ssi import communication
from fedcore.errors import InputError
from fedcore.federation.federation import Federation
from fedcore.linalg import orth
from fedcore.parts.budget import Budgeted, gaussian_start
from fedcore.parts.gram_products import gram_product, local_gram_product_in_double
from fedcore.privacy import accounting, calibration
from fedcore.privacy.bounded_rows import product, transposed_product
from fedcore.privacy.events import Gaussian
from fedcore.validation import CountOrZero, one_of

RELATIONS = {  # `protects` -> relation of `fedcore.privacy.events.NEIGHBOURS`
    "entry": "change_entry",
    "row_by_entries": "zero_out_one",
    "row": "add_or_remove_one",
}


@dataclass(frozen=True)
class Params(Budgeted):
    """Hyper-parameters that the method adds to those of `Budgeted`, such as ε and δ.

    Attributes
    ----------
    rounds : int
        Number T of iterations, each a product with AᵀA.
    protects : str
        How neighbouring data sets differ: in one entry (``entry``) or in one row (``row``).
        ``row_by_entries`` protects a row by composition over its entries.
    """

    rounds: CountOrZero = 10
    protects: Annotated[str, one_of(RELATIONS)] = "row"


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run the private power method.

    Returns
    -------
    dict
        Orthonormal ``basis`` of shape (n_features, n_components).
    """
    by_row = params.protects == "row"
    bounded = params.protects != "entry"
    params.open(federation, RELATIONS[params.protects], bounded=bounded, rows=not by_row)
    step = gram_product
    if params.epsilon is not None and params.rounds:
        step = noisy_product(params, federation.shape.n_features)
    X = gaussian_start(federation, params, rng)
    record(0, basis=X)
    for t in record.rounds(params.rounds):
        federation.broadcast(X)
        X = orth(federation.sum(step))
        record(t, basis=X)
    return {"basis": X}


def noise_multiplier(params: Params) -> float:
    """Return the noise multiplier z of every noisy product.

    Raises
    ------
    InputError
        Raised if the calibration ``paper`` would spend more than ε.
    """
    assert params.epsilon is not None
    epsilon, delta = params.epsilon, params.delta
    releases = params.rounds if params.protects == "row" else 2 * params.rounds
    if params.calibration == "tight":
        return calibration.gaussian_noise_multiplier(epsilon, delta, releases)
    z = math.sqrt(4.0 * releases * math.log(1.0 / delta)) / epsilon
    spent = accounting.epsilon({Gaussian(z): releases}, delta)
    if spent > epsilon:
        raise InputError(
            f"epsilon = {epsilon:g}: the paper's calibration would spend an epsilon of {spent:.4g} "
            f"at delta = {delta:g}; choose a smaller epsilon, or use calibration = 'tight'"
        )
    return z


def noisy_product(params: Params, n_features: int) -> Any:
    """Return the client step of one iteration, which computes a noisy product with AᵀA."""
    z = noise_multiplier(params)
    scale = math.sqrt(n_features) if params.protects == "row_by_entries" else 1.0

    def by_rows(data: np.ndarray, state: SimpleNamespace, X: np.ndarray) -> np.ndarray:
        value = local_gram_product_in_double(data, state, X)
        return state.privacy.gaussian(value, sensitivity=1.0, noise_multiplier=z)

    def by_entries(data: np.ndarray, state: SimpleNamespace, X: np.ndarray) -> np.ndarray:
        noisy = state.privacy.gaussian
        Y = noisy(product(data, X), sensitivity=scale * _largest_row(X), noise_multiplier=z)
        value = transposed_product(data, Y)
        return noisy(value, sensitivity=scale * _largest_row(Y), noise_multiplier=z)

    return by_rows if params.protects == "row" else by_entries


def _largest_row(matrix: np.ndarray) -> float:
    """Return ‖matrix‖_{2,∞}, the largest row norm of the matrix.

    The matrix must be public or a noisy release, because its norm determines the scale of the
    noise.
    """
    return float(np.sqrt(np.einsum("ij,ij->i", matrix, matrix).max()))


ALGORITHM = Algorithm(
    paper="dppower",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    private_fit={"protects": "row"},
    citation=(
        "Hardt & Roth (STOC 2013) and Hardt & Price, *The noisy power method: a meta algorithm "
        "with applications* (NIPS 2014)"
    ),
    look=("green", "dash-dotted"),
)
