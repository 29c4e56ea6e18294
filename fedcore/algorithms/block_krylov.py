"""Block Lanczos on the server, with full reorthogonalisation and thick restarts.

Golub & Underwood (1977), restarted after Wu & Simon, *Thick-restart Lanczos method* (SIMAX 2000).
Not in the five papers: what can be had of exactly SSI's messages (one n×p block down and one up per
client and round) when the server keeps the blocks instead of forgetting them. In every round

    U = Σᵢ AᵢAᵢᵀ Q;   V ← [V Q];   T = Vᵀ AAᵀ V;   F = (I − V Vᵀ) U;   Q ← orth(F),

and V S, with S the p leading eigenvectors of T, is the best basis in range(V) (Rayleigh–Ritz). The
error falls like a Chebyshev polynomial in the place of SSI's power. Since AAᵀV = V T + [0 … 0 F],
the server also knows one power step further, Z = orth(AAᵀ V S), which is what is recorded: never
worse than V S, and after one round what SSI has. When V has no room for the next block, it shrinks
to its leading Ritz vectors, half of the limit; T is then diagonal, and no product is lost. Where
the space ends before another p directions, Q holds what is left of it, and Ritz vectors as padding
that the server does not use: after ⌈n/p⌉ rounds V is the whole space and the answer exact, if the
memory is as large. The complement F of an invariant V is rounding noise, and Q then continues with
any directions orthonormal to V: the recursion does not break down.

**What the server sees.** The blocks Q are orthonormal to one another, so that k rounds tell it k·p
columns of a matrix in a basis that it knows. With plain sums that is every client's own Gram
matrix, all of it after n/p rounds; with secure aggregation only that of the sum. Until they are as
near to the answer, the other methods of this message tell about as much, in more rounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy.linalg

from fedcore.algorithms import ssi
from fedcore.algorithms.ssi import communication as communication
from fedcore.algorithms.ssi import starting_basis
from fedcore.federation.federation import Federation
from fedcore.linalg import orth
from fedcore.parts.gram_products import gram_product
from fedcore.parts.residuals import Residual
from fedcore.validation import whole

PAPER = "faps"


@dataclass(frozen=True)
class Params(ssi.Params):
    """Those of `ssi`, and what is this method's own.

    Attributes
    ----------
    memory : int
        Blocks of p columns that the server may keep; a restart makes room.
    """

    memory: Annotated[int, whole(2)] = 32


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run block Lanczos; see the module's text.

    Returns
    -------
    dict
        ``basis`` of shape (n_features, n_components), and ``ritz_values`` of shape
        (n_components,), the leading eigenvalues of AAᵀ as V has them; with a tolerance also what
        `fedcore.parts.residuals.Residual.output` has.
    """
    n, p = federation.shape.n_features, params.n_components
    room = min(p * params.memory, n)
    keep = p * (room // p // 2)  # none where the space has no room for two blocks
    test, fresh = Residual(params.tol, federation.shape), p  # columns of Q that V lacks

    Q = starting_basis(federation, params, rng)
    Z, theta = Q, np.full(p, np.nan)
    V, T = np.empty((n, 0)), np.empty((0, 0))
    record(0, basis=Z)
    for k in record.rounds(params.rounds):
        federation.broadcast(Q)
        reply = federation.sum(gram_product)
        U = reply.astype(V.dtype, copy=False)[:, :fresh]
        V = np.hstack([V, Q[:, :fresh]])
        T = _bordered(T, V.T @ U)
        theta, S = _leading(T)
        F = U - V @ T[:, -fresh:]
        arrived = _arrived(test, theta, F, S[-fresh:], p, reply.dtype)
        Z = orth(V @ (S[:, :p] * theta[:p]) + F @ S[-fresh:, :p])
        record(k, basis=Z)
        if arrived:
            break
        left = room - V.shape[1]
        if left == 0:
            others = V @ S[:, keep : keep + p]
            V, T = orth(V @ S[:, :keep]), np.diag(theta[:keep])
            # After a narrower block F has too few columns, and is noise: V was the whole space.
            Q = Z if not keep else others if fresh < p else _complement(F, V)
        elif left < p:
            Q = np.hstack([_rest(V), V @ S[:, : p - left]])
        else:
            Q = _complement(F, V)
        fresh = min(p, left) or p
    return {"basis": Z, "ritz_values": theta[:p], **test.output()}


def _arrived(
    test: Residual, theta: np.ndarray, F: np.ndarray, S: np.ndarray, p: int, dtype: np.dtype
) -> bool:
    """Whether the leading Ritz vectors have arrived; the residual of each is F times its S."""
    if not np.isfinite(F).all():
        return False
    residual, following = float(np.linalg.norm(F @ S[:, :p], 2)), None
    if len(theta) > p:  # a matrix of one column: the norm of a vector would leave the range
        following = float(theta[p]), float(np.linalg.norm(F @ S[:, p : p + 1], 2))
    return test.met(residual, theta[:p], following, dtype, final=len(theta) == len(F))


def _bordered(T: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Return T with the block `column` = Vᵀ U as its last columns and rows."""
    j = len(T)
    corner = (column[j:] + column[j:].T) / 2
    return np.block([[T, column[:j]], [column[:j].T, corner]])


def _leading(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of T in descending order, and its eigenvectors."""
    theta, S = scipy.linalg.eigh(T, check_finite=False)
    return theta[::-1], S[:, ::-1]


def _rest(V: np.ndarray) -> np.ndarray:
    """Orthonormal basis of all that is orthogonal to V."""
    return scipy.linalg.qr(V, check_finite=False)[0][:, V.shape[1] :]


def _complement(block: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Orthonormal basis of `block` made orthogonal to V; three times, should it be but noise."""
    Q = orth(block)
    for _ in range(3):
        Q = orth(Q - V @ (V.T @ Q))
    return Q
