"""Analyze Gauss: private PCA by Gaussian noise on the second-moment matrix.

The result is the top eigenvectors of ``C = AᵀA + E``, where the rows of A are the samples. The
noise E is symmetric, and its entries on and above the diagonal are independent N(0, σ²).
Neighbouring data sets differ by one added or removed row a. A row of norm at most 1 changes AᵀA by
‖aaᵀ‖_F ≤ 1. The upper triangle of AᵀA therefore has sensitivity 1.

``calibration="paper"`` takes σ = √(2 ln(1.25/δ))/ε and refuses ε > 1, because this σ is not proved
to suffice for ε > 1. ``calibration="tight"`` takes the least σ with which the Gaussian mechanism is
(ε, δ)-DP (Balle & Wang, ICML 2018). Let σⱼ be the singular values of A. To leading order in the
noise, the squared sine of the angle between the first eigenvectors of C and of AᵀA has an
expectation of at most ``σ² Σ_{j>1} (σ₁² − σⱼ²)⁻²``. With several clients, each client adds noise to
the matrix AᵀA of its own rows. The server receives only noisy matrices, adds them up, and need not
be trusted. The summed noise of m clients has m times the variance of one client's noise.
"""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Cost, Shape
from fedcore.linalg import from_upper_triangle, top_eigenvectors, upper_triangle
from fedcore.parts.budget import Budgeted
from fedcore.parts.gram_products import local_gram
from fedcore.privacy import calibration


class Params(Budgeted):
    """The hyper-parameters of `Budgeted`, such as ε and δ, and no others.

    Attributes
    ----------
    start : None
        The method ignores `start`, because it computes eigenvectors directly.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_small_epsilon()


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Algorithm 1 of Dwork, Talwar, Thakurta & Zhang (STOC 2014).

    Returns
    -------
    dict
        ``basis``, of shape (n_features, n_components), has the top eigenvectors of the noisy matrix
        C as columns.
    """
    params.open(federation, "add_or_remove_one", rows=False)

    def second_moment(data: np.ndarray, state: SimpleNamespace, message: Any) -> np.ndarray:
        return upper_triangle(local_gram(data, state))

    def noisy_second_moment(data: np.ndarray, state: SimpleNamespace, message: Any) -> np.ndarray:
        moments = second_moment(data, state, message)
        return state.privacy.gaussian(moments, sensitivity=1.0, noise_multiplier=sigma)

    if params.epsilon is None:
        moments = federation.sum(second_moment)
    else:
        sigma = noise_multiplier(params)
        moments = federation.sum(noisy_second_moment)
    C = from_upper_triangle(moments, federation.shape.n_features)
    V = top_eigenvectors(C, params.n_components)
    record(0, basis=V)
    return {"basis": V}


def communication(params: Params, shape: Shape) -> Cost:
    """Return the cost of the whole run: every client uploads the upper triangle of a d×d matrix."""
    triangle = shape.n_features * (shape.n_features + 1) // 2
    return Cost(1, shape.n_clients * triangle, 0)


def noise_multiplier(params: Params) -> float:
    """Return the standard deviation σ of the noise at sensitivity 1."""
    assert params.epsilon is not None
    if params.calibration == "paper":
        return math.sqrt(2.0 * math.log(1.25 / params.delta)) / params.epsilon
    return calibration.gaussian_noise_multiplier(params.epsilon, params.delta)


ALGORITHM = Algorithm(
    paper="dppower",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    private_fit={},
    citation=(
        "Dwork, Talwar, Thakurta & Zhang, *Analyze Gauss: optimal bounds for privacy-preserving "
        "principal component analysis* (STOC 2014), Algorithm 1"
    ),
    look=("black", "dash-dotted"),
)
