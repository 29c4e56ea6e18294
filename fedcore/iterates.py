"""Iterates: an algorithm passes them to the recorder, and metrics measure them.

An iterate of a factorisation S ≈ U Vᵀ, whose U the clients keep, can also tell its excess loss, by
which its loss exceeds the smallest loss for this V. With V = Q R (Q orthonormal), S − U Vᵀ splits
into two orthogonal parts,

    ½ ‖S − U Vᵀ‖²_F = ½ ‖S − S Q Qᵀ‖²_F + ½ ‖S Q − U Rᵀ‖²_F.

The first part is the loss of the exact solution Û = S V (VᵀV)†. The second part is the *excess* of
U over Û. The excess can be measured far below the rounding errors of the loss. The clients can
measure it, because each has its Sᵢ and Uᵢ.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from fedcore.errors import InputError
from fedcore.linalg import column_space
from fedcore.rowspace import Block, inside


class Factors(Protocol):
    """V, and U in the form in which the algorithm keeps it."""

    V: np.ndarray

    def excess(self) -> np.ndarray:
        """Return every client's ``½ ‖(Uᵢ − Ûᵢ) Vᵀ‖²_F``, shape (n_clients,); (1,) if all are 0."""
        ...


@dataclass(frozen=True, eq=False)
class ExplicitFactors:
    """U that every client keeps as ``state.U``, of shape (n_i, r).

    Attributes
    ----------
    V : ndarray of shape (d, r)
    look : callable
        ``(step, message) -> replies``, such as `fedcore.Federation.observe`. It runs a step at the
        clients outside the protocol.
    """

    V: np.ndarray
    look: Callable[..., Sequence[Any]]

    def excess(self) -> np.ndarray:
        """Return ``½ ‖Sᵢ Q − Uᵢ Rᵀ‖²_F``, for which the clients make one pass over their data."""
        q = column_space(self.V)
        return 0.5 * np.array(self.look(squared_misfit, (q, self.V.T @ q)))


def squared_misfit(data: np.ndarray, state: Any, message: tuple[np.ndarray, np.ndarray]) -> float:
    """Client step that computes ``‖Sᵢ Q − Uᵢ Rᵀ‖²_F`` from the message, Q and Rᵀ."""
    q, r_t = message
    return float(np.linalg.norm(data @ q - state.U @ r_t) ** 2)


@dataclass(frozen=True, eq=False)
class ExactFactors:
    """V alone: U is the best one for this V, the exact solution Û, and has no excess."""

    V: np.ndarray

    def excess(self) -> np.ndarray:
        """Return 0."""
        return np.zeros(1)


@dataclass(frozen=True, eq=False)
class SpectralFactors:
    """U given by its error in the eigenbasis T of VᵀV: ``(U − Û) T = E₀ diag(remaining)``.

    Attributes
    ----------
    V : ndarray of shape (d, r)
    energy : ndarray of shape (n_clients, k)
        Squared norms of the columns of every client's ``E₀ diag(σ)``, where σ has the k non-zero
        singular values of V; in data units squared.
    remaining : ndarray of shape (k,)
        Factor by which each column of E₀ has shrunk.
    """

    V: np.ndarray
    energy: np.ndarray
    remaining: np.ndarray

    def excess(self) -> np.ndarray:
        """Return ``½ Σⱼ remainingⱼ² energyᵢⱼ``; no pass over the data."""
        return 0.5 * self.energy @ self.remaining**2


class Classifiers(Protocol):
    """A classifier for every client, and the parameters that the server holds."""

    held: np.ndarray  # the parameters that the server holds, shape (p,); p is 0 without any

    def parameters(self) -> Iterator[np.ndarray]:
        """Yield every array of parameters once."""
        ...

    def scores(self, samples: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return the scores of the classes, (m_i, classes), for each client's (m_i, d) samples."""
        ...


@dataclass(eq=False)
class Iterate:
    """What an algorithm has found so far: ``basis``, ``factors`` or ``classifiers``, and more.

    Attributes
    ----------
    basis : ndarray or Block of shape (d, r), optional
        Its columns span the subspace.
    factors : Factors, optional
        V and U; V takes the place of a basis.
    classifiers : Classifiers, optional
        A classifier for every client; then there is no basis.
    models : ndarray of shape (n_clients, d), optional
        Coefficients of the clients' regressions.
    features : ndarray of shape (d, k), optional
        Matrix on which a new client fits its head; the default is the shared matrix.
    target : int, optional
        Number of leading directions to find; the default is the number of columns of the shared
        matrix.
    local : sequence of ndarray of shape (d, r)
        The clients' own bases, aligned, before the server combines them.
    clients : callable, optional
        ``() -> {name: one array for each client}``. Reads, outside the protocol, the arrays that
        the clients hold; for histories that keep them.
    derived : dict
        Quantities that metrics have computed from this iterate; the keys say what computed each.
    """

    basis: np.ndarray | Block | None = None
    factors: Factors | None = None
    classifiers: Classifiers | None = None
    models: np.ndarray | None = None
    features: np.ndarray | None = None
    target: int | None = None
    local: Sequence[np.ndarray] = ()
    clients: Callable[[], Mapping[str, Sequence[np.ndarray]]] | None = None
    derived: dict[Hashable, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def shared(self) -> np.ndarray:
        """V, or the basis: the (d, r) matrix that all clients share.

        Raises
        ------
        InputError
            When the algorithm learns classifiers.
        """
        if isinstance(self.basis, Block):
            self.basis = np.asarray(self.basis)
        if self.factors is not None:
            return self.factors.V
        if self.basis is None:
            raise InputError("this metric needs a subspace, and the algorithm learns classifiers")
        return self.basis

    @property
    def held(self) -> np.ndarray | Block:
        """What the server holds: the shared matrix, or parameters of classifiers.

        It may be a block that becomes an array when it is read.
        """
        if self.classifiers is not None:
            return self.classifiers.held
        return self.basis if isinstance(self.basis, Block) else self.shared

    @property
    def finite(self) -> bool:
        """Whether all numbers are finite."""
        arrays = [inside(self.held), *([] if self.models is None else [self.models])]
        if self.classifiers is not None:
            arrays += self.classifiers.parameters()
        return all(np.isfinite(array).all() for array in arrays)
