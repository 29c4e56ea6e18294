"""Attack by which the server reconstructs a client's Gram matrix from the client's replies.

The attack is from Wang, Liu & Zhang, *Seeking consensus on subspaces in federated principal
component analysis*, Proposition 2 and Figure 1. In subspace iteration the server sends Z⁽¹⁾, …,
Z⁽ᵏ⁾ to a client and receives ``Y⁽ʲ⁾ = G Z⁽ʲ⁾``. The matrix ``G = SᵢᵀSᵢ`` is the client's Gram
matrix, n × n for n features. The attacking server solves

    min ‖Φ‖_F  subject to  Φ [Z⁽¹⁾ … Z⁽ᵏ⁾] = [Y⁽¹⁾ … Y⁽ᵏ⁾].

Let Q be an orthonormal basis of the span of the Z⁽ʲ⁾. The solution is ``Φ = B Qᵀ`` with ``B = G
Q``. The error ``‖Φ − G‖_F = ‖G (I − QQᵀ)‖_F`` does not grow with the rounds, and is zero if the
Z⁽ʲ⁾ span the whole space. Proposition 2 states this result for exactly linear replies and exact
arithmetic.

In floating point, the Z⁽ʲ⁾ of a converging iteration are soon nearly dependent, and the paper's
formula ``Y Zᵀ (Z Zᵀ)⁻¹`` fails. This module computes the B that minimises ``‖B [QᵀZ⁽¹⁾ …] − [Y⁽¹⁾
…]‖_F``, by a QR factorisation that is updated in every round. Later messages make B more precise in
directions that the first messages hardly contain. If the spectrum of G decays quickly, or if the
Z⁽ʲ⁾ span the space only after many rounds, replies in double precision do not determine all of G.
The error then stays above zero even if the Z⁽ʲ⁾ span the whole space.

In methods other than subspace iteration, the replies are not ``G Z``. Replies of LocalPower come
from several local steps and orthonormalisations. Replies of FAPS are ``Qᵢ Z`` with a Qᵢ that
changes from round to round. No single Φ explains all replies of such a method. Against these
methods, the attack uses the least-squares solution Φ of least norm. The error of this Φ may grow
with the rounds. A large error means that *this* attack fails; another attack may succeed. For
comparison, the trivial guess Φ = 0 has the relative error 1.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.linalg
from scipy.linalg import lapack

from fedcore.federation.transcript import Transcript
from fedcore.problems.problem import Problem
from fedcore.recorder import Recorder

Pair = tuple[np.ndarray, np.ndarray]

COLUMN = ("1", "‖Φ − G‖_F / ‖G‖_F of the first client's Gram matrix G, rebuilt by the server")


class Reconstruction:
    """Reconstruction of one client's Gram matrix G; each call of `add` uses one more round.

    A round with messages of p columns costs O(n² p) operations. Computing the reconstruction or its
    error costs at most O(n³) operations.

    Parameters
    ----------
    n_features : int
        Number n of features.

    Attributes
    ----------
    basis : ndarray of shape (n, k)
        Orthonormal columns that span the columns of all messages so far.
    """

    def __init__(self, n_features: int) -> None:
        self.basis = np.empty((n_features, 0))
        # R and Ωᵀ [Y⁽¹⁾ …]ᵀ, for [Z⁽¹⁾ …]ᵀ = Ω R Qᵀ with ΩᵀΩ = I. Ω is not kept.
        self._triangle = np.empty((0, 0))
        self._rotated = np.empty((0, n_features))

    def add(self, received: np.ndarray, sent: np.ndarray) -> np.ndarray:
        """Add a message Z and the client's reply Y, both of shape (n, p).

        A direction of Z counts as new if its part outside the span of `basis` is larger than τ
        ‖Z‖₂. Here τ is the messages' rounding unit to the power 3/4, about 2e−12 in double
        precision. A direction with a smaller part outside would amplify the rounding errors of the
        replies.

        Returns
        -------
        ndarray of shape (n, new)
            The columns that this pair adds to `basis`.
        """
        n, k = self.basis.shape
        tolerance = max(np.finfo(received.dtype).eps, np.finfo(sent.dtype).eps) ** 0.75
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
        """Return the least-squares estimate of ``G @ basis`` from the replies, shape (n, k)."""
        return scipy.linalg.solve_triangular(self._triangle, self._rotated, check_finite=False).T


def errors(pairs: Iterable[Pair], gram: np.ndarray) -> np.ndarray:
    """Return the error ``‖Φ − G‖_F / ‖G‖_F`` of the reconstruction Φ after each round.

    Parameters
    ----------
    pairs : iterable of (ndarray of shape (n, p), ndarray of shape (n, p))
        Messages that the client received and its replies, in the order of the rounds; see
        `pairs_of`.
    gram : ndarray of shape (n, n)
        The client's true Gram matrix G.

    Returns
    -------
    ndarray of shape (rounds,)
    """
    attack = Reconstruction(len(gram))
    # Φ − G has two orthogonal parts: G (I − QQᵀ) outside of the span, and one inside, from the
    # error of B. Computing them apart avoids cancellation.
    outside = np.array(gram, dtype=np.float64, order="F")
    truth = np.empty((len(gram), 0))  # G Q
    scale, found = np.linalg.norm(outside), []
    for received, sent in pairs:
        fresh = attack.add(received, sent)
        if fresh.shape[1]:
            truth = np.hstack([truth, gram @ fresh])
            outside -= (outside @ fresh) @ fresh.T
        inside = np.linalg.norm(attack.images() - truth)
        found.append(np.hypot(inside, np.linalg.norm(outside)) / scale)
    return np.array(found)


def start_transcript() -> Transcript:
    """Return an empty transcript that will record only the first client's uploads."""
    return Transcript(clients=[0])


def column(
    problem: Problem, transcript: Transcript, recorder: Recorder, *, left_out: int = 0
) -> list[float]:
    """Return the attack's error at each row of the history; NaN before the first pair that is used.

    A pair is a message to the first client and the client's reply. The attack does not use the
    first `left_out` pairs.
    """
    exchanges = [exchange for exchange in transcript.exchanges_of(0) if pairs_of([exchange])][
        left_out:
    ]
    client = problem.clients[0]
    found = errors(pairs_of(exchanges), client.T @ client)
    rounds = [exchange.round for exchange in exchanges]
    seen = np.searchsorted(rounds, [row["round"] for row in recorder.rows], side="right")
    return [float(found[k - 1]) if k else float("nan") for k in seen]


def pairs_of(exchanges: Iterable[Any]) -> list[Pair]:
    """Return the pairs (Z, Y) of a matrix in a message and a matrix in its reply, per exchange.

    An exchange is a client's reply and the last message to the client before it. If a message has
    several parts, Z is the first matrix in it, and likewise for Y. An exchange gives a pair only if
    Z and Y exist and have equal shape.
    """
    found = [(_matrix(exchange.received), _matrix(exchange.sent)) for exchange in exchanges]
    return [(Z, Y) for Z, Y in found if Z is not None and Y is not None and Z.shape == Y.shape]


def _matrix(message: Any) -> np.ndarray | None:
    """Return the first matrix in a message, or None if there is none."""
    if isinstance(message, np.ndarray):
        return message if message.ndim == 2 else None
    parts = message.values() if isinstance(message, dict) else message
    if isinstance(parts, str) or not hasattr(parts, "__iter__"):
        return None
    return next((m for m in map(_matrix, parts) if m is not None), None)


def _project(matrix: np.ndarray, basis: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the part of `matrix` orthogonal to `basis`, and the coefficients in `basis`."""
    inside = basis.T @ matrix
    rest = matrix - basis @ inside
    again = basis.T @ rest
    return rest - basis @ again, inside + again
