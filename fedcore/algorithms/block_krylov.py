"""Block Lanczos method on the server, with full reorthogonalisation and thick restarts.

The method is in none of the five papers that fedcore reproduces. The messages are the same as in
simultaneous subspace iteration (SSI): in each round, every client downloads and uploads one n×p
block, where n is the number of features and p the number of columns. Unlike in SSI, the server
keeps the blocks Q of all rounds as columns of a matrix V. In every round the server computes, with
the samples of client i as columns of Aᵢ and AAᵀ = Σᵢ AᵢAᵢᵀ:

    U = Σᵢ AᵢAᵢᵀ Q;   V ← [V Q];   T = Vᵀ AAᵀ V;   F = (I − V Vᵀ) U;   Q ← orth(F).

The Rayleigh–Ritz basis in range(V) is V S, where the columns of S are the p leading eigenvectors of
T. The error falls from round to round like a Chebyshev polynomial, whereas the error of SSI falls
like a power. Because AAᵀV = V T + [0 … 0 F], the server can take one more power step, Z = orth(AAᵀ
V S), without a message. The method records Z as the iterate of the round. After one round, Z spans
the same space as the iterate of SSI.

If V has `memory` blocks of p columns, or n columns in all, the server restarts: it replaces V by
the leading Ritz vectors, at most half as many as V has columns. After a restart T is diagonal, and
the clients need not repeat any product with AAᵀ.

If the complement of range(V) has fewer than p dimensions, Q holds a basis of the complement and is
padded with Ritz vectors. If `memory` allows ⌈n/p⌉ blocks, range(V) is the whole space after ⌈n/p⌉
rounds, and the answer is exact up to rounding.

If range(V) is invariant under AAᵀ, F is rounding noise, and the next Q has arbitrary directions
orthogonal to V.

After k rounds the server knows the products of a Gram matrix of the data with k·p orthonormal
vectors. After n/p rounds the server knows the whole Gram matrix. Without secure aggregation, it
knows each client's own Gram matrix; with secure aggregation, only their sum. Other methods that
exchange n×p blocks reveal about as much, because they need more rounds for the same accuracy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import scipy.linalg

from fedcore.algorithms import Algorithm, ssi
from fedcore.algorithms.ssi import communication, starting_basis
from fedcore.federation.federation import Federation
from fedcore.linalg import orth
from fedcore.parts.convergence_test import ConvergenceTest
from fedcore.parts.gram_products import gram_product
from fedcore.rowspace import inside, orthonormal
from fedcore.validation import whole


@dataclass(frozen=True)
class Params(ssi.Params):
    """Hyper-parameters that the method adds to those of `ssi.Params`.

    Attributes
    ----------
    memory : int
        Number of blocks of p columns that the server may keep before it restarts.
    """

    memory: Annotated[int, whole(2)] = 32


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run block Lanczos.

    Returns
    -------
    dict
        Orthonormal ``basis`` of shape (n_features, n_components). ``ritz_values``, of shape
        (n_components,), contains the leading Ritz values of AAᵀ in data units squared. If ``tol``
        is positive, the dict also contains the entries of
        `fedcore.parts.convergence_test.ConvergenceTest.output`.
    """
    Q, wanted = starting_basis(federation, params, rng), params.n_components
    frame = federation.frame(Q)
    if frame is not None:  # wide clients: all that follows are coordinates
        Q = frame.start
    shown = frame.block if frame is not None else lambda Z: Z
    n, p = Q.shape
    room = min(p * params.memory, n)
    keep = p * (room // p // 2)  # 0 when the space has no room for two blocks
    test = ConvergenceTest(params.tol, federation.shape, wanted)
    fresh = p  # columns of Q that V lacks

    Z, theta = Q, np.full(p, np.nan)
    store, T = np.empty((n, 0)), np.empty((0, 0))
    V = store  # the columns of the store that are in use
    record(0, basis=shown(Z[:, :wanted]))
    for k in record.rounds(params.rounds):
        federation.broadcast(shown(Q))
        reply = inside(federation.sum(gram_product))
        U = reply.astype(V.dtype, copy=False)[:, :fresh]
        store = _with_room(store, V.shape[1] + fresh, room)
        store[:, V.shape[1] : V.shape[1] + fresh] = Q[:, :fresh]
        V = store[:, : V.shape[1] + fresh]
        T = _bordered(T, (U.T @ V).T)  # BLAS takes half the time for few rows of few columns
        theta, S = _leading(T)
        both = (np.hstack([T[:, -fresh:], S[:, :p] * theta[:p]]).T @ V.T).T  # reads V once
        F = U - both[:, :fresh]
        arrived = _arrived(test, theta, F, S[-fresh:], wanted, reply.dtype)
        Z = orth(both[:, fresh:] + F @ S[-fresh:, :p])
        record(k, basis=shown(Z[:, :wanted]), last=arrived)
        left = room - V.shape[1]
        if left == 0:
            both = (S[:, : keep + p].T @ V.T).T
            others = both[:, keep:]
            store[:, :keep], T = orth(both[:, :keep]), np.diag(theta[:keep])
            V = store[:, :keep]
            # After a narrower block V was the whole space: F is noise, with too few columns.
            Q = Z if not keep else others if fresh < p else _complement(F, V)
        elif left < p:
            rest = scipy.linalg.qr(V, check_finite=False)[0][:, V.shape[1] :]  # orthogonal to V
            Q = np.hstack([rest, V @ S[:, : p - left]])
        else:
            Q = _complement(F, V)
        fresh = min(p, left) or p
    Z = Z[:, :wanted]
    basis = Z if frame is None else orthonormal(np.asarray(frame.block(Z)))
    return {"basis": basis, "ritz_values": theta[:wanted], **test.output()}


def _arrived(
    test: ConvergenceTest, theta: np.ndarray, F: np.ndarray, S: np.ndarray, p: int, dtype: np.dtype
) -> bool:
    """Return whether the p leading Ritz vectors have converged, judged by their residuals F S."""
    if not np.isfinite(F).all():
        return False
    residual, following = float(np.linalg.norm(F @ S[:, :p], 2)), None
    if len(theta) > p:  # p : p + 1 keeps a matrix, whose 2-norm does not overflow
        following = float(theta[p]), float(np.linalg.norm(F @ S[:, p : p + 1], 2))
    return test.met(residual, theta[:p], following, dtype, final=len(theta) == len(F))


def _with_room(store: np.ndarray, columns: int, most: int) -> np.ndarray:
    """Return `store`, or a larger copy if `store` has fewer than `columns` columns."""
    if store.shape[1] >= columns:
        return store
    larger = np.empty((len(store), min(4 * columns, most)), order="F")
    larger[:, : store.shape[1]] = store
    return larger


def _bordered(T: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Return T with `column` = Vᵀ U added on the right and the transpose added at the bottom."""
    j = len(T)
    found = np.empty((len(column),) * 2)
    found[:j, :j], found[:j, j:], found[j:, :j] = T, column[:j], column[:j].T
    found[j:, j:] = (column[j:] + column[j:].T) / 2
    return found


def _leading(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the eigenvalues of T in descending order, and the eigenvectors of T."""
    theta, S = scipy.linalg.eigh(T, check_finite=False)
    return theta[::-1], S[:, ::-1]


def _complement(block: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the part of `block` that is orthogonal to range(V).

    A pass subtracts from each column its part in range(V), and orthonormalises the rest. If little
    of a column is left, the scaling to norm 1 amplifies the rounding errors in range(V). The pass
    is therefore repeated if the subtracted part was large.
    """
    Q = orth(block)
    for _ in range(3):
        part = (Q.T @ V).T
        Q = orth(Q - (part.T @ V.T).T)
        if np.linalg.norm(part) <= 0.5:
            break
    return Q


ALGORITHM = Algorithm(
    paper="faps",
    parameters=Params,
    run=run,
    communication=communication,
    sparse=True,
    gram_products_only=True,
    citation=(
        "Golub & Underwood (1977), restarted after Wu & Simon, *Thick-restart Lanczos method* "
        "(SIMAX 2000)"
    ),
    look=("purple", "dashed"),
)
