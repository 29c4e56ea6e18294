"""Iterates: the results that an algorithm reports while it runs, and that metrics evaluate.

In a factorisation S ≈ U Vᵀ, each client i keeps its rows Uᵢ of U. The excess of U is the loss of U
minus the smallest loss for the same V. With V = Q R (Q orthonormal), the loss has two terms,

    ½ ‖S − U Vᵀ‖²_F = ½ ‖S − S Q Qᵀ‖²_F + ½ ‖S Q − U Rᵀ‖²_F.

The first term is the loss of the exact solution Û = S V (VᵀV)†. The second term is the excess of U.
Clients can measure the excess from Sᵢ and Uᵢ, even if the excess is far below the rounding error of
the loss.
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
    """Factors of the samples S ≈ U Vᵀ; each algorithm chooses how to store U."""

    V: np.ndarray

    def excess(self) -> np.ndarray:
        """Return every client's loss minus the smallest loss for V, or a single 0 if U is exact."""
        ...


@dataclass(frozen=True, eq=False)
class ExplicitFactors:
    """Factors of the samples S ≈ U Vᵀ; each client keeps ``state.U``, its rows Uᵢ, shape (n_i, r).

    Attributes
    ----------
    V : ndarray of shape (d, r)
    look : callable
        Function ``(step, message) -> replies`` that calls ``step(data, state, message)`` for every
        client, and does not count this as communication, such as `fedcore.Federation.observe`.
    """

    V: np.ndarray
    look: Callable[..., Sequence[Any]]

    def excess(self) -> np.ndarray:
        """Return every client's excess ``½ ‖Sᵢ Q − Uᵢ Rᵀ‖²_F``, where V = Q R."""
        q = column_space(self.V)
        return 0.5 * np.array(self.look(squared_misfit, (q, self.V.T @ q)))


def squared_misfit(data: np.ndarray, state: Any, message: tuple[np.ndarray, np.ndarray]) -> float:
    """Return ``‖data @ Q − state.U @ Rᵀ‖²_F``, where the message is (Q, Rᵀ)."""
    q, r_t = message
    return float(np.linalg.norm(data @ q - state.U @ r_t) ** 2)


@dataclass(frozen=True, eq=False)
class ExactFactors:
    """Factors whose U is always the best one for V, so its loss is the smallest for V."""

    V: np.ndarray

    def excess(self) -> np.ndarray:
        """Return an array with a single 0, the excess over the smallest loss for V."""
        return np.zeros(1)


@dataclass(frozen=True, eq=False)
class SpectralFactors:
    """Factors that store V and, in place of U, how far U is from Û, the best U for V.

    The difference U − Û satisfies ``(U − Û) T = E₀ diag(remaining)``. The columns of T are the
    eigenvectors of VᵀV, and E₀ is ``(U − Û) T`` at the start of the run.

    Attributes
    ----------
    V : ndarray of shape (d, r)
    energy : ndarray of shape (n_clients, k)
        Squared norms of the columns of each client's ``E₀ diag(σ)``, in data units squared. The
        vector σ has the k non-zero singular values of V.
    remaining : ndarray of shape (k,)
        Factor by which each column of E₀ has shrunk.
    """

    V: np.ndarray
    energy: np.ndarray
    remaining: np.ndarray

    def excess(self) -> np.ndarray:
        """Return every client's excess ``½ Σⱼ remainingⱼ² energyᵢⱼ``, without using the data."""
        return 0.5 * self.energy @ self.remaining**2


class Classifiers(Protocol):
    """A classifier for every client, and the network parameters that the server holds."""

    held: np.ndarray  # the parameters that the server holds, shape (p,); p is 0 without any

    def parameters(self) -> Iterator[np.ndarray]:
        """Yield every array of network parameters once."""
        ...

    def scores(self, samples: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return each client's class scores, of shape (m_i, classes), for its (m_i, d) samples."""
        ...


@dataclass(eq=False)
class Iterate:
    """Current result of an algorithm: ``basis``, ``factors`` or ``classifiers``.

    Attributes
    ----------
    basis : ndarray or Block of shape (d, r), optional
        Matrix whose columns span the subspace.
    factors : Factors, optional
        Factors V and U of an algorithm without a basis.
    classifiers : Classifiers, optional
        Classifiers of all clients, for an algorithm without a basis.
    models : ndarray of shape (n_clients, d), optional
        Coefficients of the clients' regressions.
    features : ndarray of shape (d, k), optional
        Matrix that maps a new client's samples to the features of its regression, by default the
        shared matrix.
    target : int, optional
        Number of leading directions that the algorithm is to find, by default the number of columns
        of the shared matrix.
    local : sequence of ndarray of shape (d, r)
        Bases of the clients, aligned with each other, before the server combines them.
    clients : callable, optional
        Function ``() -> {name: one array for each client}`` that reads the clients' arrays. This
        does not count as communication. A `fedcore.History` can store these arrays.
    derived : dict
        Cached values; each key is the function that computed the value from this iterate.
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
        """Return the (d, r) matrix that all clients share: V, or the basis.

        Raises
        ------
        InputError
            Raised if the algorithm learns classifiers.
        """
        if isinstance(self.basis, Block):
            self.basis = np.asarray(self.basis)
        if self.factors is not None:
            return self.factors.V
        if self.basis is None:
            raise InputError(
                "this metric needs a subspace, but the algorithm learns classifiers: choose "
                "another metric"
            )
        return self.basis

    @property
    def held(self) -> np.ndarray | Block:
        """Return the server's shared matrix or network parameters.

        A shared matrix may be a `Block` of coordinates, which becomes an array when it is read.
        """
        if self.classifiers is not None:
            return self.classifiers.held
        return self.basis if isinstance(self.basis, Block) else self.shared

    @property
    def finite(self) -> bool:
        """Return whether all numbers of the iterate are finite."""
        arrays = [inside(self.held), *([] if self.models is None else [self.models])]
        if self.classifiers is not None:
            arrays += self.classifiers.parameters()
        return all(np.isfinite(array).all() for array in arrays)
