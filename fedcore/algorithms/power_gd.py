"""Factorisation S ≈ U Vᵀ with V from the power initialisation and U by local gradient descent.

V comes from Algorithm 1 of Philippenko, Scaman & Massoulié (AAAI 2025; see `power_iteration`), and
is fixed. Every client with data S runs ``U ← U − γ (U Vᵀ − S) V`` with ``γ = 1/σ_max(V)²``, without
communication. With ``momentum`` the steps have Nesterov's acceleration with the momentum weights
``β_k = k/(k+3)``.

A step without momentum changes the error to ``U − Û ← (U − Û)(I − γ VᵀV)``, where Û is the exact
solution. In the eigenbasis T of VᵀV, each column of the error is therefore, after t steps, a
multiple of its first value: ``(U_t − Û) T = E₀ diag(p_t)`` with ``E₀ = (U₀ − Û) T``. A step of the
code updates only the r factors p_t and the r numbers q_t = 1 − p_t. The code computes the loss from
p_t. The code updates q_t separately, because q_t can be far below the rounding error of p_t. After
the last step t the code computes ``U_t = U₀ − E₀ diag(q_t) Tᵀ``. In exact arithmetic, U_t is the
same as in gradient descent, but a step does not read the data. Instead of E₀ the code stores ``E₀
diag(σ) = U₀ T diag(σ) − S Q``, where V = Q diag(σ) Tᵀ is the SVD of V. Unlike E₀, this product does
not grow if a singular value of V is small.

The entries of the first ``U₀`` are independent N(0, 1/nᵢ) for nᵢ samples, as in the authors' code
(the paper says "random"). With ``orthonormalise`` (Remark 4 of the paper), the clients use an
orthonormal basis of range(V) instead of V. One step then suffices, because the condition number is
1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import count, islice
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm, power_iteration
from fedcore.algorithms.power_iteration import COLUMNS, Scaled, power_initialisation
from fedcore.federation.federation import Federation
from fedcore.iterates import SpectralFactors
from fedcore.linalg import orth, range_basis
from fedcore.validation import CountOrZero


@dataclass(frozen=True)
class Params(power_iteration.Params):
    """Hyper-parameters that gradient descent adds to those of `power_iteration`.

    Attributes
    ----------
    local_steps : int
        Number of gradient steps at every client.
    momentum : bool
        Whether the steps have Nesterov's acceleration, with β_k = k/(k+3).
    orthonormalise : bool
        Whether clients descend with an orthonormal basis of range(V) instead of V (Remark 4 of the
        paper).
    """

    local_steps: CountOrZero = 500
    momentum: bool = False
    orthonormalise: bool = False


def fixed_basis(federation: Federation, params: Any) -> tuple[Scaled, dict[str, int]]:
    """Send V to the clients; return V and the count of directions that are lost to rounding."""
    found, counts = power_initialisation(federation, params)
    found = Scaled(orth(found.V)) if params.orthonormalise else found
    federation.broadcast(found.V)
    return found, counts


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Algorithm 2 of Philippenko, Scaman & Massoulié (AAAI 2025).

    Returns
    -------
    dict
        The entries ``V`` and ``exponent`` of `power_iteration`, and ``U`` with one array of shape
        (n_i, n_components) per client.
    """
    found, counts = fixed_basis(federation, params)
    V, done = found.V, 0

    def draw_error(data: np.ndarray, state: SimpleNamespace, V: np.ndarray) -> None:
        basis, state.sigma, state.T = range_basis(V)
        state.U0 = state.rng.standard_normal((len(data), V.shape[1])) / np.sqrt(len(data))
        state.error = state.U0 @ state.T * state.sigma - data @ basis  # E₀ diag(σ)

    def column_energy(data: np.ndarray, state: SimpleNamespace, message: Any) -> np.ndarray:
        return np.einsum("ij,ij->j", state.error, state.error)

    federation.local(draw_error)
    energy = np.array(federation.observe(column_energy))
    descent = descended(range_basis(V).sigma, params.momentum)
    record(0, factors=SpectralFactors(V, energy, next(descent)[0]), counts=counts)
    for k in record.rounds(params.local_steps):
        record(k, factors=SpectralFactors(V, energy, next(descent)[0]), counts=counts)
        done = k
    return found.output(U=federation.observe(partial(iterate, steps=done, params=params)))


def iterate(
    data: np.ndarray, state: SimpleNamespace, message: Any, *, steps: int, params: Params
) -> np.ndarray:
    """Client step: return the client's U after the given number of gradient steps."""
    sigma = tuple(state.sigma.astype(np.float64).tolist())
    q = np.array(_gone(sigma, params.momentum, steps))
    # The part of U₀ in the null space of VᵀV has zero gradient and stays.
    return state.U0 - (state.error / state.sigma * q) @ state.T.T


def descended(sigma: np.ndarray, momentum: bool) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the error factors p_t and q_t = 1 − p_t for t = 0, 1, …, given V's singular values."""
    sigma = sigma.astype(np.float64)
    rate = (sigma / sigma[:1]) ** 2  # eigenvalues of γ VᵀV
    p = p_ahead = np.ones_like(rate)  # factors of E₀'s columns
    q = q_ahead = np.zeros_like(rate)  # 1 − p
    for k in count(1):
        yield p, q
        p_old, p = p, (1.0 - rate) * p_ahead
        q_old, q = q, rate + (1.0 - rate) * q_ahead
        beta = (k - 1) / (k + 2) if momentum else 0.0
        p_ahead, q_ahead = p + beta * (p - p_old), q + beta * (q - q_old)


@lru_cache(maxsize=1)  # clients in one process find the same numbers
def _gone(sigma: tuple[float, ...], momentum: bool, steps: int) -> tuple[float, ...]:
    """Return q_t = 1 − p_t, where p_t are the error factors after t = `steps` gradient steps."""
    (_, q), *_ = islice(descended(np.array(sigma), momentum), steps, steps + 1)
    return tuple(q.tolist())


ALGORITHM = Algorithm(
    paper="factorization",
    parameters=Params,
    run=run,
    communication=power_iteration.communication,
    sparse=True,
    columns=COLUMNS,
    citation="Philippenko, Scaman & Massoulié (AAAI 2025), Algorithm 2",
    look=("blue", "solid"),
)
