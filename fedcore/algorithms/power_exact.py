"""Factorisation S ≈ U Vᵀ with V from the power initialisation and the exact U at every client.

Algorithm 1 of Philippenko, Scaman & Massoulié (AAAI 2025; see `power_iteration`) computes V. With V
fixed, every client minimises its loss ``½ ‖Sⁱ − Uⁱ Vᵀ‖²_F`` by the closed form ``Ûⁱ = Sⁱ V (VᵀV)†``
of Section 2 of the same paper. The code uses the thin SVD of V and not VᵀV, because VᵀV squares the
condition number of V.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from fedcore.algorithms import Algorithm
from fedcore.algorithms.power_iteration import (
    COLUMNS,
    Params,
    communication,
    power_initialisation,
)
from fedcore.federation.federation import Federation
from fedcore.iterates import ExactFactors
from fedcore.linalg import range_basis


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Compute V by the power initialisation, and U by the exact solution at every client.

    Returns
    -------
    dict
        The entries ``V`` and ``exponent`` of `power_iteration`, and ``U`` with one array of shape
        (n_i, n_components) per client.
    """
    found, counts = power_initialisation(federation, params)
    federation.broadcast(found.V)

    def solve(data: np.ndarray, state: SimpleNamespace, V: np.ndarray) -> np.ndarray:
        basis, sigma, rotation = range_basis(V)
        return (data @ basis / sigma) @ rotation.T

    record(0, factors=ExactFactors(found.V), counts=counts)
    return found.output(U=federation.observe(solve))


ALGORITHM = Algorithm(
    paper="factorization",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    columns=COLUMNS,
    citation="Philippenko, Scaman & Massoulié (AAAI 2025), Algorithm 1",
    look=("vermillion", "solid"),
)
