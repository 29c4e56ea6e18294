"""Iterates: an algorithm passes them to the recorder, and metrics measure them.

The iterate of a factorisation S ≈ U Vᵀ, with U kept by the clients, computes the excess loss. With
V = Q R (Q orthonormal), S − U Vᵀ splits into two orthogonal parts,

    ½ ‖S − U Vᵀ‖²_F = ½ ‖S − S Q Qᵀ‖²_F + ½ ‖S Q − U Rᵀ‖²_F.

The first is the loss of the exact solution Û = S V (VᵀV)†, the second the *excess* of U over it.
The excess can be measured far below the rounding errors of the loss.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from fedcore.linalg import column_space


class Factors(Protocol):
    """V, and U in the algorithm's form."""

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
        Factor by which each column of E₀ has shrunk.
    """

    V: np.ndarray
    energy: np.ndarray
    remaining: np.ndarray

    def excess(self, clients: Sequence[np.ndarray]) -> float:
        """Return ``½ Σⱼ remainingⱼ² energyⱼ``; no pass over the data."""
        return 0.5 * float(self.remaining**2 @ self.energy)


@dataclass(eq=False)
class Iterate:
    """What an algorithm has found so far: ``basis`` or ``factors``, and further optional parts.

    Attributes
    ----------
    basis : ndarray of shape (d, r), optional
        Its columns span the subspace.
    factors : Factors, optional
        V, which replaces a basis, and U.
    models : ndarray of shape (n_clients, d), optional
        Coefficients of the clients' regressions.
    features : ndarray of shape (d, k), optional
        Matrix on which a new client fits its head; the default is the shared matrix.
    target : int, optional
        Number of leading directions to find; the default is the number of columns.
    local : sequence of ndarray of shape (d, r)
        The clients' own bases, aligned, before the server combines them.
    penalty : callable, optional
        ``() -> float``, the penalty that the algorithm adds to the loss.
    derived : dict
        Quantities that metrics have computed from this iterate, by the function that computed them.
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
