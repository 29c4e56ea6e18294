"""Iterates of a factorisation S ≈ U Vᵀ with U kept by the clients, and their excess loss.

With V = Q R (Q orthonormal), S − U Vᵀ splits into two orthogonal parts,

    ½ ‖S − U Vᵀ‖²_F = ½ ‖S − S Q Qᵀ‖²_F + ½ ‖S Q − U Rᵀ‖²_F,

the loss of the exact solution Û = S V (VᵀV)† and the *excess* of U over it. Neither part subtracts
large numbers of each other, so that a loss of 1e−30 can be told from one of 1e−15.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedcore.linalg import column_space


class Factors(Protocol):
    """What a recorder is given: V, and U in whatever form the algorithm has it."""

    V: np.ndarray

    def excess(self, clients: Sequence[np.ndarray]) -> float:
        """Return ``½ ‖(U − Û) Vᵀ‖²_F``."""
        ...


@dataclass(frozen=True, eq=False)
class ExplicitFactors:
    """U given as one matrix per client.

    Attributes
    ----------
    V : ndarray of shape (d, r)
    U : sequence of ndarray of shape (n_i, r)
    """

    V: np.ndarray
    U: Sequence[np.ndarray]

    def excess(self, clients: Sequence[np.ndarray]) -> float:
        """Return ``½ Σᵢ ‖Sᵢ Q − Uᵢ Rᵀ‖²_F``; one pass over the data."""
        q = column_space(self.V)
        r_t = self.V.T @ q
        return 0.5 * sum(
            float(np.linalg.norm(s @ q - u @ r_t) ** 2)
            for s, u in zip(clients, self.U, strict=True)
        )


@dataclass(frozen=True, eq=False)
class ExactFactors:
    """U is the exact solution Û for this V."""

    V: np.ndarray

    def excess(self, clients: Sequence[np.ndarray]) -> float:
        """Return 0."""
        return 0.0


@dataclass(frozen=True, eq=False)
class SpectralFactors:
    """U given by its error in the eigenbasis of VᵀV: ``(U − Û) T = E₀ diag(remaining)``.

    Attributes
    ----------
    V : ndarray of shape (d, r)
    energy : ndarray of shape (k,)
        Squared norms of the columns of ``E₀ diag(σ)``, σ the non-zero singular values of V, summed
        over the clients; in data units squared.
    remaining : ndarray of shape (k,)
        What is left of each column of E₀.
    """

    V: np.ndarray
    energy: np.ndarray
    remaining: np.ndarray

    def excess(self, clients: Sequence[np.ndarray]) -> float:
        """Return ``½ Σⱼ remainingⱼ² energyⱼ``; no pass over the data."""
        return 0.5 * float(self.remaining**2 @ self.energy)
