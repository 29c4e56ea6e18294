"""Reconstruction of a client's Gram matrix from what the client sends.

Wang, Liu & Zhang, *Seeking consensus on subspaces in federated principal component analysis*,
Proposition 2 and Figure 1. In subspace iteration the server sends Z⁽¹⁾, …, Z⁽ᵏ⁾ to a client and
receives ``Y⁽ʲ⁾ = G Z⁽ʲ⁾``. ``G = SᵢᵀSᵢ`` is the client's Gram matrix, n × n for n features. The
server solves

    min ‖Φ‖_F  subject to  Φ [Z⁽¹⁾ … Z⁽ᵏ⁾] = [Y⁽¹⁾ … Y⁽ᵏ⁾].

With Q an orthonormal basis of the span of the Z's, the solution is ``Φ = B Qᵀ``, ``B = G Q``. Its
error ``‖G (I − QQᵀ)‖_F`` does not grow with the rounds, and is zero when the Z's span the space.
This is Proposition 2 and the default. With ``symmetric=True`` (not in the paper) the server also
uses the symmetry of G and takes the smallest symmetric solution,
``Φ = B Qᵀ + Q Bᵀ − Q (QᵀB) Qᵀ``. Its error ``‖(I − QQᵀ) G (I − QQᵀ)‖_F`` does not grow either, and
is at most the error of the default. Both statements hold for exact linear replies and exact
arithmetic; G need not be positive semidefinite.

In floating point the Z's of a converging iteration are soon nearly dependent, and the paper's
``Y Zᵀ (Z Zᵀ)⁻¹`` fails. Here B solves ``min ‖B [QᵀZ⁽¹⁾ …] − [Y⁽¹⁾ …]‖_F`` by a QR factorisation,
updated with every round; a direction that is faint at first becomes sharper later. With quickly
decaying spectra, or many rounds to a full span, the replies in double precision do not determine
all of G: the error stays above zero even where `equations` says n.

Other methods' replies are not ``G Z``. LocalPower's come from several local steps and
orthonormalisations; FAPS's are ``Qᵢ Z`` with a Qᵢ that changes from round to round. An honest but
curious server would try the same attack. No Φ then explains all replies, and the attack takes the
smallest Φ with the least misfit. Its error may grow with the rounds. A large error means that
*this* attack fails; another one may succeed. The guess Φ = 0 has error 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from fedcore.arrays import as_array
from fedcore.errors import InputError
from fedcore.federation.transcript import Transcript
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder

Pair = tuple[np.ndarray, np.ndarray]

COLUMN = ("1", "‖Φ − G‖_F / ‖G‖_F of the first client's Gram matrix G, rebuilt by the server")


class Reconstruction:
    """The attack, one round after the other.

    A round costs O(n² p) operations, and asking for Φ or its error O(n³) at most.

    Parameters
    ----------
    n_features : int
        n.
    tolerance : float, optional
        A direction counts as new when its part outside of the span so far is larger than this,
        relative to ‖Z‖₂. Small parts enlarge the rounding errors of the replies. The default is
        the messages' rounding unit to the power 3/4, about 2e−12 in double precision.

    Attributes
    ----------
    basis : ndarray of shape (n, k)
        Q, orthonormal columns that span the Z's so far.
    """

    def __init__(self, n_features: int, *, tolerance: float | None = None) -> None:
        self.tolerance = tolerance
        self.basis = np.empty((n_features, 0))
        # R and Ωᵀ [Y⁽¹⁾ …]ᵀ, for [Z⁽¹⁾ …]ᵀ = Ω R Qᵀ with ΩᵀΩ = I. Ω is not kept.
        self._triangle = np.empty((0, 0))
        self._rotated = np.empty((0, n_features))

    def add(self, received: np.ndarray, sent: np.ndarray) -> np.ndarray:
        """Use one more pair (Z, Y).

        Returns
        -------
        ndarray of shape (n, new)
            The columns that `basis` has grown by.

        Raises
        ------
        InputError
            When Z and Y are not matrices of shape (n, p).
        """
        n, k = self.basis.shape
        if received.shape != sent.shape or received.shape[:1] != (n,):
            raise InputError(
                f"a pair needs two (n, p) matrices with n = {n}, got shapes "
                f"{received.shape} and {sent.shape}"
            )
        unit = max(_unit(received), _unit(sent))
        tolerance = unit**0.75 if self.tolerance is None else self.tolerance
        Z, Y = received.astype(np.float64), sent.astype(np.float64)
        # Part of Z outside of the span, by Gram-Schmidt twice. Its large singular vectors are new.
        # Normalising them enlarges what is left of the span: they are orthogonalised again.
        rest, known = _project(Z, self.basis)
        left, sizes, _ = scipy.linalg.svd(rest, full_matrices=False, check_finite=False)
        new = sizes > tolerance * np.linalg.norm(Z, 2)
        fresh = np.linalg.qr(_project(left[:, new], self.basis)[0])[0]
        self.basis = np.hstack([self.basis, fresh])
        # Rows of Zᵀ in that basis go under R, rows of Yᵀ under the rotated ones.
        triangle = np.zeros((self.basis.shape[1],) * 2, order="F")
        triangle[:k, :k] = self._triangle
        rotated = np.zeros((len(triangle), n), order="F")
        rotated[:k] = self._rotated
        rows = np.vstack([known, fresh.T @ rest]).T
        block = min(32, len(triangle))
        self._triangle, reflectors, factors, _ = lapack.dtpqrt(0, block, triangle, rows)
        self._rotated = lapack.dtpmqrt(0, reflectors, factors, rotated, Y.T, trans="T")[0]
        return fresh

    def images(self) -> np.ndarray:
        """Return B, the least-squares estimate of ``G Q`` from the replies, shape (n, k)."""
        return scipy.linalg.solve_triangular(self._triangle, self._rotated, check_finite=False).T

    def matrix(self, *, symmetric: bool = False) -> np.ndarray:
        """Return Φ, shape (n, n)."""
        images = self.images()
        if not symmetric:
            return images @ self.basis.T
        half = images - self.basis @ (self.basis.T @ images) / 2
        product = half @ self.basis.T
        return product + product.T


def reconstruct(
    pairs: Iterable[Pair], *, symmetric: bool = False, tolerance: float | None = None
) -> np.ndarray:
    """Smallest Φ that explains a client's replies.

    Parameters
    ----------
    pairs : iterable of (ndarray of shape (n, p), ndarray of shape (n, p))
        What the client received and what it sent, in order; see `pairs_of`.
    symmetric : bool, default=False
        Whether to use that the Gram matrix is symmetric.
    tolerance : float, optional
        See `Reconstruction`.

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
    for received, sent in _each(pairs):
        attack = attack or Reconstruction(len(received), tolerance=tolerance)
        attack.add(received, sent)
    if attack is None:
        raise InputError("nothing to reconstruct from: the client sent nothing")
    return attack.matrix(symmetric=symmetric)


def errors(
    pairs: Iterable[Pair],
    gram: np.ndarray,
    *,
    symmetric: bool = False,
    tolerance: float | None = None,
) -> np.ndarray:
    """Error of the reconstruction after each round, ``‖Φ − G‖_F / ‖G‖_F``.

    Parameters
    ----------
    pairs : iterable of (ndarray of shape (n, p), ndarray of shape (n, p))
    gram : ndarray of shape (n, n)
        The truth, ``SᵢᵀSᵢ``.
    symmetric : bool, default=False
        Whether to use that the Gram matrix is symmetric.
    tolerance : float, optional
        See `Reconstruction`.

    Returns
    -------
    ndarray of shape (rounds,)
    """
    attack = Reconstruction(len(gram), tolerance=tolerance)
    # Φ − G has two orthogonal parts: one outside of the span, G (I − P) or (I − P) G (I − P) with
    # P = QQᵀ, and one inside, from the error of B. Computing them apart avoids cancellation.
    outside = np.array(gram, dtype=np.float64, order="F")
    truth = np.empty((len(gram), 0))  # G Q
    scale, found = np.linalg.norm(outside), []
    for received, sent in _each(pairs):
        fresh = attack.add(received, sent)
        if fresh.shape[1]:
            truth = np.hstack([truth, gram @ fresh])
            outside -= (outside @ fresh) @ fresh.T
            if symmetric:
                outside -= fresh @ (fresh.T @ outside)
        wrong, Q = attack.images() - truth, attack.basis
        inside = np.linalg.norm(wrong)
        if symmetric:  # the blocks P·(I − P) and (I − P)·P are of equal norm
            within = Q.T @ wrong
            across = np.linalg.norm(wrong - Q @ within)
            inside = np.hypot(np.linalg.norm(within + within.T) / 2, np.sqrt(2) * across)
        found.append(np.hypot(inside, np.linalg.norm(outside)) / scale)
    return np.array(found)


def equations(pairs: Iterable[Pair], *, tolerance: float | None = None) -> np.ndarray:
    """Rank of all Z's after each round, up to `tolerance`; G is determined at rank n.

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
    for received, sent in _each(pairs):
        attack = attack or Reconstruction(len(received), tolerance=tolerance)
        attack.add(received, sent)
        ranks.append(attack.basis.shape[1])
    return np.array(ranks, dtype=int)


def _each(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Yield pairs of arrays, and refuse what is none."""
    if not isinstance(pairs, Iterable):
        raise InputError(f"pairs must be an iterable of (received, sent), got {pairs!r}")
    for i, pair in enumerate(pairs):
        if not isinstance(pair, Sequence) or isinstance(pair, str) or len(pair) != 2:
            raise InputError(f"pairs[{i}] must be (received, sent), got {pair!r}")
        received, sent = (as_array(part, f"pairs[{i}]") for part in pair)
        if received.ndim != 2:
            raise InputError(f"pairs[{i}] has shape {received.shape}, expected (n, p)")
        if not {received.dtype.kind, sent.dtype.kind} <= set("biuf"):
            raise InputError(f"pairs[{i}] holds {received.dtype} and {sent.dtype}, not numbers")
        yield received, sent


def watch() -> Transcript:
    """Return a transcript of the first client only."""
    return Transcript(clients=[0])


def column(
    problem: Problem, transcript: Transcript, recorder: Recorder, *, left_out: int = 0
) -> list[float]:
    """Return the error of the reconstruction at every recorded row, NaN before the first pair.

    The first `left_out` pairs are not used.
    """
    exchanges = [exchange for exchange in transcript.of(0) if pairs_of([exchange])][left_out:]
    client = problem.clients[0]
    found = errors(pairs_of(exchanges), client.T @ client)
    rounds = [exchange.round for exchange in exchanges]
    seen = np.searchsorted(rounds, [row["round"] for row in recorder.rows], side="right")
    return [float(found[k - 1]) if k else float("nan") for k in seen]


def pairs_of(exchanges: Iterable[Any]) -> list[Pair]:
    """Return the pairs (Z, Y) among a client's exchanges, as from `Transcript.of`.

    A message with several parts counts by its first (n, p) matrix. An exchange gives no pair if
    the two sides hold no matrices of equal shape, such as that of the first sketch.
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
