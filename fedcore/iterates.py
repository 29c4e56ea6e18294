"""Iterates: what an algorithm shows the recorder, and metrics measure.

Of a factorisation S ≈ U Vᵀ with U kept by the clients, an iterate knows the excess loss. With
V = Q R (Q orthonormal), S − U Vᵀ splits into two orthogonal parts,

    ½ ‖S − U Vᵀ‖²_F = ½ ‖S − S Q Qᵀ‖²_F + ½ ‖S Q − U Rᵀ‖²_F,

the loss of the exact solution Û = S V (VᵀV)† and the *excess* of U over it. Neither part subtracts
large numbers of each other, so that a loss of 1e−30 can be told from one of 1e−15.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from fedcore.linalg import column_space


class Factors(Protocol):
    """V, and U in whatever form the algorithm has it."""

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


@dataclass(eq=False)
class Iterate:
    """What an algorithm has found so far: ``basis`` or ``factors``, and what else it has of these.

    Attributes
    ----------
    basis : ndarray of shape (d, r), optional
        Its columns span the subspace.
    factors : Factors, optional
        V, which stands in the place of a basis, and U.
    models : ndarray of shape (n_clients, d), optional
        Coefficients of the clients' regressions.
    features : ndarray of shape (d, k), optional
        On what a new client fits its head; the default is the shared matrix.
    target : int, optional
        Number of leading directions that are wanted; the default is the number of columns.
    local : sequence of ndarray of shape (d, r)
        The clients' own bases, aligned, before a communication.
    penalty : callable, optional
        ``() -> float``, what the algorithm adds to the loss.
    derived : dict
        What metrics have computed of it, by the function that did.
    """

    basis: np.ndarray | None = None
    factors: Factors | None = None
    models: np.ndarray | None = None
    features: np.ndarray | None = None
    target: int | None = None
    local: Sequence[np.ndarray] = ()
    penalty: Callable[[], float] | None = None
    derived: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def shared(self) -> np.ndarray:
        """V, or the basis: the (d, r) matrix that all clients share."""
        if self.factors is not None:
            return self.factors.V
        assert self.basis is not None
        return self.basis
