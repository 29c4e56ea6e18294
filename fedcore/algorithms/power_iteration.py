"""Distributed randomized power iteration.

Philippenko, Scaman & Massoulié, *In-depth analysis of low-rank matrix factorisation in a federated
setting* (AAAI 2025), Algorithm 1, with the restarts of Section 3 (m samples of Φ, best κ(V) kept).

The clients sketch ``Vⁱ = Sⁱᵀ Φⁱ`` with Gaussian Φⁱ, the server sums, and α times V is sent back and
multiplied by ``Sⁱᵀ Sⁱ``: ``V = (SᵀS)^α Sᵀ Φ`` after α + 1 communications. V is not orthonormalised
between the multiplications, as in the paper, which needs its singular values.

Two readings of the restarts: ``select = "initial"`` compares κ of the sketches and multiplies only
the best one (the authors' code); ``"final"`` multiplies every sample and compares κ of the results
(the text).
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.checks import require_at_least, require_one_of
from fedcore.errors import InputError
from fedcore.factors import ExactFactors
from fedcore.federation import Federation
from fedcore.ledger import Cost, Shape
from fedcore.linalg import condition_number

PAPER = "factorization"
SELECTIONS = ("initial", "final")


@dataclass(frozen=True)
class Params:
    """Hyper-parameters.

    Attributes
    ----------
    n_components : int
        Rank r of the factorisation.
    power : int, default=0
        α, number of multiplications by SᵀS after the sketch.
    samples : int, default=1
        m, number of sketches of which the best-conditioned is kept.
    select : {"initial", "final"}, default="initial"
        Whether κ is compared before or after the multiplications.
    start : ndarray of shape (n_features, n_components), optional
        Φⁱ = Sⁱ start in the place of a Gaussian Φⁱ; `samples` must then be 1.
    """

    n_components: int
    power: int = 0
    samples: int = 1
    select: str = "initial"
    start: np.ndarray | None = None

    def __post_init__(self) -> None:
        require_at_least(1, n_components=self.n_components, samples=self.samples)
        require_at_least(0, power=self.power)
        require_one_of(SELECTIONS, select=self.select)
        if self.start is not None and self.samples > 1:
            raise InputError(f"with a start there is nothing to sample, got samples={self.samples}")


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run Algorithm 1; see the module's text.

    Returns
    -------
    dict
        ``V``, ndarray of shape (n_features, n_components).
    """
    V = power_initialisation(federation, params)
    federation.broadcast(V)
    record(0, factors=ExactFactors(V))
    return {"V": V}


def power_initialisation(federation: Federation, params: Any) -> np.ndarray:
    """Return V = (SᵀS)^α SᵀΦ, the best-conditioned of `params.samples` draws of Φ."""
    early = params.select == "initial"
    candidates = []
    for _ in range(params.samples):
        V = _sketch(federation, params)
        candidates.append(V if early else _multiply(federation, V, params.power))
    V = candidates[0] if len(candidates) == 1 else min(candidates, key=condition_number)
    return _multiply(federation, V, params.power) if early else V


def communication(params: Any, shape: Shape) -> Cost:
    """Cost of Algorithm 1: m + α uploads (m(α + 1) when κ is compared at the end).

    The last V goes down once more, to be used by the clients; this is no round of its own.
    """
    block = shape.n_clients * shape.n_features * params.n_components
    multiplications = params.power * (1 if params.select == "initial" else params.samples)
    uploads = params.samples + multiplications
    downloads = multiplications + 1 + (params.start is not None)
    return Cost(uploads, uploads * block, downloads * block)


def _sketch(federation: Federation, params: Any) -> np.ndarray:
    if params.start is not None:
        federation.broadcast(params.start)
        return federation.sum(gram_product)

    def sketch(data: np.ndarray, state: SimpleNamespace, message: Any) -> np.ndarray:
        return data.T @ state.rng.standard_normal((len(data), params.n_components))

    return federation.sum(sketch)


def _multiply(federation: Federation, V: np.ndarray, times: int) -> np.ndarray:
    for _ in range(times):
        federation.broadcast(V)
        V = federation.sum(gram_product)
    return V


def gram_product(data: np.ndarray, state: SimpleNamespace, V: np.ndarray) -> np.ndarray:
    """Client step: ``Sⁱᵀ (Sⁱ V)``."""
    return data.T @ (data @ V)
