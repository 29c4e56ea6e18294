"""Block Lanczos on the server, with full reorthogonalisation and thick restarts.

Golub & Underwood (1977), restarted after Wu & Simon, *Thick-restart Lanczos method* (SIMAX 2000).
Not in the five papers: what can be had of exactly SSI's messages (one n×p block down and one up per
client and round) when the server keeps the blocks instead of forgetting them. In every round

    U = Σᵢ AᵢAᵢᵀ Q;   V ← [V Q];   T = Vᵀ AAᵀ V;   F = (I − V Vᵀ) U;   Q ← orth(F),

and V S, with S the p leading eigenvectors of T, is the best basis in range(V) (Rayleigh–Ritz). The
error falls like a Chebyshev polynomial in the place of SSI's power. Since AAᵀV = V T + [0 … 0 F],
the server also knows one power step further, Z = orth(AAᵀ V S), which is what is recorded: never
worse than V S, and after one round what SSI has. When V has no room for the next block, it shrinks
to its leading Ritz vectors, half of the limit; T is then diagonal, and no product is lost. The
complement F of an invariant V is rounding noise, and Q then continues with any directions
orthonormal to V: the recursion does not break down.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg

from fedcore.algorithms import ssi
from fedcore.algorithms.ssi import communication as communication
from fedcore.algorithms.ssi import starting_basis
from fedcore.checks import require_at_least
from fedcore.federation import Federation
from fedcore.linalg import orth
from fedcore.steps import gram_product

PAPER = "faps"


@dataclass(frozen=True)
class Params(ssi.Params):
    """Those of `ssi`, and what is this method's own.

    Attributes
    ----------
    memory : int, default=32
        Blocks that the server may keep (the columns of V over p), at least 2.
    """

    memory: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        require_at_least(2, memory=self.memory)


def run(federation: Federation, params: Params, rng: np.random.Generator, record: Any) -> dict:
    """Run block Lanczos; see the module's text.

    Returns
    -------
    dict
        ``basis`` of shape (n_features, n_components), and ``ritz_values`` of shape
        (n_components,), the leading eigenvalues of AAᵀ as V has them.
    """
    n, p = federation.shape.n_features, params.n_components
    room = p * min(params.memory, n // p)
    keep = p * (room // p // 2)  # none where the space has no room for two blocks: SSI

    Q = starting_basis(federation, params, rng)
    Z, theta = Q, np.full(p, np.nan)
    V, T = np.empty((n, 0)), np.empty((0, 0))
    stop = record(0, basis=Z)
    for k in range(1, params.rounds + 1):
        if stop:
            break
        federation.broadcast(Q)
        U = federation.sum(gram_product).astype(V.dtype, copy=False)
        V = np.hstack([V, Q])
        T = _bordered(T, V.T @ U)
        theta, S = _leading(T)
        F = U - V @ T[:, -p:]
        Z = orth(V @ (S[:, :p] * theta[:p]) + F @ S[-p:, :p])
        stop = record(k, basis=Z)
        if V.shape[1] + p > room:
            V, T = orth(V @ S[:, :keep]), np.diag(theta[:keep])
        Q = _complement(F, V) if keep else Z
    return {"basis": Z, "ritz_values": theta[:p]}


def _bordered(T: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Return T with the block `column` = Vᵀ U as its last columns and rows."""
    j = len(T)
    corner = (column[j:] + column[j:].T) / 2
    return np.block([[T, column[:j]], [column[:j].T, corner]])


def _leading(T: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues of T in descending order, and its eigenvectors."""
    theta, S = scipy.linalg.eigh(T, check_finite=False)
    return theta[::-1], S[:, ::-1]


def _complement(block: np.ndarray, V: np.ndarray) -> np.ndarray:
    """Orthonormal basis of `block` made orthogonal to V; three times, should it be but noise."""
    Q = orth(block)
    for _ in range(3):
        Q = orth(Q - V @ (V.T @ Q))
    return Q
