"""Reconstruction of a client's Gram matrix from what the client sends.

Wang, Liu & Zhang, *Seeking consensus on subspaces in federated principal component analysis*,
Proposition 2 and Figure 1: in subspace iteration, a server that sent Z⁽¹⁾, …, Z⁽ᵏ⁾ to a client and
got back ``Y⁽ʲ⁾ = G Z⁽ʲ⁾``, with the client's Gram matrix ``G = SᵢᵀSᵢ`` (n × n, n features), solves

    min ‖Φ‖_F  subject to  Φ [Z⁽¹⁾ … Z⁽ᵏ⁾] = [Y⁽¹⁾ … Y⁽ᵏ⁾].

With Q an orthonormal basis of the span of the Z's, the solution is ``Φ = B Qᵀ``, ``B = G Q``; its
error ``‖G (I − QQᵀ)‖_F`` cannot grow as rounds are added, and is zero when the Z's span the space.
This is Proposition 2 and the default. A server that also uses that G is symmetric
(``symmetric=True``, not in the paper) takes the smallest symmetric solution,
``Φ = B Qᵀ + Q Bᵀ − Q (QᵀB) Qᵀ``; its error ``‖(I − QQᵀ) G (I − QQᵀ)‖_F`` cannot grow either and is
never above the other. Both hold for exact linear replies; positive semidefiniteness plays no part.

Other methods' replies are not ``G Z``: LocalPower's come from several local steps and
orthonormalisations, FAPS's are ``Qᵢ Z`` with a Qᵢ that changes from round to round. The same attack
is what an honest but curious server would try; no Φ then explains all replies, what is kept is the
explanation of the first reply in every direction, and the error says how far this is from G.
A large error then means that *this* attack fails, not that nothing can be learned by another, and
it may go up as well as down. An error near 1 is that of the guess Φ = 0.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.linalg

from fedcore.errors import InputError

Pair = tuple[np.ndarray, np.ndarray]


class Reconstruction:
    """The attack, one round after the other, at O(n² p) operations each.

    Parameters
    ----------
    n_features : int
        n.
    symmetric : bool, default=False
        Whether to use that the Gram matrix is symmetric.
    tolerance : float, optional
        A direction counts as new when the part of it outside of the span so far is larger than this
        (relative to ‖Z‖₂). What is left of a direction after subtraction carries the rounding
        errors of the replies divided by its size; the default, the square root of the messages'
        rounding unit, leaves half of their digits.

    Attributes
    ----------
    basis : ndarray of shape (n, k)
        Q, orthonormal columns that span the Z's so far.
    images : ndarray of shape (n, k)
        B, what the replies say of ``G Q``.
    """

    def __init__(
        self, n_features: int, *, symmetric: bool = False, tolerance: float | None = None
    ) -> None:
        self.symmetric, self.tolerance = symmetric, tolerance
        self.basis = np.empty((n_features, 0))
        self.images = np.empty((n_features, 0))
        self._half = np.empty((n_features, 0))  # Φ = half Qᵀ, plus its transpose when symmetric

    def add(self, received: np.ndarray, sent: np.ndarray) -> np.ndarray:
        """Use one more pair (Z, Y).

        Returns
        -------
        ndarray of shape (n, k)
            E of the new directions F (the last k columns of `basis`): Φ grows by ``E Fᵀ``, plus its
            transpose in the symmetric case.

        Raises
        ------
        InputError
            When Z and Y are not matrices of shape (n, p).
        """
        if received.shape != sent.shape or received.shape[:1] != self.basis.shape[:1]:
            raise InputError(
                f"a pair needs two (n, p) matrices with n = {len(self.basis)}, got shapes "
                f"{received.shape} and {sent.shape}"
            )
        unit = max(_unit(received), _unit(sent))
        tolerance = np.sqrt(unit) if self.tolerance is None else self.tolerance
        # Part of Z outside of the span, by Gram-Schmidt twice; its singular vectors with the sizes
        # above the tolerance are new.
        Z = received.astype(np.float64, copy=False)
        rest, known = _project(Z, self.basis)
        left, sizes, right_t = scipy.linalg.svd(rest, full_matrices=False, check_finite=False)
        new = sizes > tolerance * np.linalg.norm(Z, 2)
        images = (sent - self.images @ known) @ right_t[new].T / sizes[new]
        # Dividing by a small size has brought parts in the span back: once more.
        rest, known = _project(left[:, new], self.basis)
        fresh, triangle = scipy.linalg.qr(rest, mode="economic", check_finite=False)
        images = scipy.linalg.solve_triangular(
            triangle, (images - self.images @ known).T, trans="T", check_finite=False
        ).T
        half = images
        if self.symmetric:
            half = images - self.basis @ (self.basis.T @ images) - fresh @ (fresh.T @ images) / 2
        self.basis = np.hstack([self.basis, fresh])
        self.images = np.hstack([self.images, images])
        self._half = np.hstack([self._half, half])
        return half

    def matrix(self) -> np.ndarray:
        """Return Φ, shape (n, n)."""
        phi = self._half @ self.basis.T
        return phi + phi.T if self.symmetric else phi


def reconstruct(pairs: Iterable[Pair], **options: Any) -> np.ndarray:
    """Smallest Φ that explains a client's replies.

    Parameters
    ----------
    pairs : iterable of (ndarray of shape (n, p), ndarray of shape (n, p))
        What the client received and what it sent, in order; see `pairs_of`.
    **options
        ``symmetric`` and ``tolerance`` of `Reconstruction`.

    Returns
    -------
    ndarray of shape (n, n)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> gram = np.diag([4.0, 3.0, 2.0, 1.0])
    >>> sent = [rng.standard_normal((4, 2)) for _ in range(2)]
    >>> bool(np.allclose(reconstruct([(Z, gram @ Z) for Z in sent]), gram))
    True
    """
    attack = None
    for received, sent in pairs:
        attack = attack or Reconstruction(len(received), **options)
        attack.add(received, sent)
    if attack is None:
        raise InputError("nothing to reconstruct from: the client sent nothing")
    return attack.matrix()


def errors(pairs: Iterable[Pair], gram: np.ndarray, **options: Any) -> np.ndarray:
    """Error of the reconstruction after each round, ``‖Φ − G‖_F / ‖G‖_F``.

    Parameters
    ----------
    pairs : iterable of (ndarray of shape (n, p), ndarray of shape (n, p))
    gram : ndarray of shape (n, n)
        The truth, ``SᵢᵀSᵢ``.
    **options
        ``symmetric`` and ``tolerance`` of `Reconstruction`.

    Returns
    -------
    ndarray of shape (rounds,)
    """
    attack = Reconstruction(len(gram), **options)
    # F-ordered and updated in place: no n × n product is formed, and no difference cancels.
    missing = np.array(gram, dtype=np.float64, order="F")
    scale, found = np.linalg.norm(missing), []
    for received, sent in pairs:
        half = attack.add(received, sent)
        if half.shape[1]:
            fresh = attack.basis[:, -half.shape[1] :]
            missing -= half @ fresh.T
            if attack.symmetric:
                missing -= fresh @ half.T
        found.append(np.linalg.norm(missing) / scale)
    return np.array(found)


def equations(pairs: Iterable[Pair], *, tolerance: float | None = None) -> np.ndarray:
    """Rank of all Z's after each round: how many of the n columns of G Q are pinned down.

    Parameters
    ----------
    pairs : iterable of (ndarray of shape (n, p), ndarray of shape (n, p))
    tolerance : float, optional
        See `Reconstruction`.

    Returns
    -------
    ndarray of int of shape (rounds,)
    """
    attack, ranks = None, []
    for received, sent in pairs:
        attack = attack or Reconstruction(len(received), tolerance=tolerance)
        attack.add(received, sent)
        ranks.append(attack.basis.shape[1])
    return np.array(ranks, dtype=int)


def pairs_of(exchanges: Iterable[Any]) -> list[Pair]:
    """Return the pairs (Z, Y) among a client's exchanges, as from `Transcript.of`.

    Of a message with several parts the first (n, p) matrix is taken; exchanges in which the two
    sides hold no matrices of equal shape, such as the first sketch, give no pair.
    """
    found = [(_matrix(exchange.received), _matrix(exchange.sent)) for exchange in exchanges]
    return [(Z, Y) for Z, Y in found if Z is not None and Y is not None and Z.shape == Y.shape]


def _matrix(message: Any) -> np.ndarray | None:
    """First matrix in a message; None if there is none."""
    if isinstance(message, np.ndarray):
        return message if message.ndim == 2 else None
    parts = message.values() if isinstance(message, dict) else message
    if isinstance(parts, str) or not hasattr(parts, "__iter__"):
        return None
    return next((m for m in map(_matrix, parts) if m is not None), None)


def _project(matrix: np.ndarray, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Part of `matrix` outside of the span of `basis`, and its coefficients inside."""
    inside = basis.T @ matrix
    rest = matrix - basis @ inside
    again = basis.T @ rest
    return rest - basis @ again, inside + again


def _unit(matrix: np.ndarray) -> float:
    return float(np.finfo(matrix.dtype).eps) if matrix.dtype.kind == "f" else 0.0
