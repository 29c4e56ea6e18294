"""A proven bound on the distance to the exact subspace, from messages that the server has anyway.

Let G = Σ SᵢᵀSᵢ. A server that has sent blocks Q and received their products G Q knows, for an
orthonormal basis W of all blocks, H = WᵀG W and F = G W − W H. It also knows the trace of G, from
the last round of the estimator. In a basis that begins with W,

    G = (H Fᵀ; F C),   C ⪰ 0,   trace C = ρ = trace G − trace H,   so that ‖C‖ ≤ ρ.

For x > ρ the inertia of G − x is that of C − x, which is negative, plus that of the Schur
complement ``H − x + Fᵀ(x − C)⁻¹F ⪯ H − x + FᵀF/(x − ρ)``. Hence λ_{r+1}(G) ≤ x if the (r+1)-st
eigenvalue of H + FᵀF/(x − ρ) is at most x. Let Y be the leading r Ritz vectors in range(W), with
the least Ritz value θ_r and the residual R = G Y − Y YᵀG Y. Davis & Kahan, *The rotation of
eigenvectors by a perturbation III* (1970), give

    sin(Y, leading eigenspace) ≤ ‖R‖₂ / (θ_r − x),

and sin(Z, ·) ≤ sin(Z, Y) + sin(Y, ·) for the subspace Z that the run returns. Nothing is assumed of
eigenvalues that the run may have missed. The bound says something if ρ < θ_r: when all directions
that the server has not asked about hold less variance together than component r does.

An algorithm without a test of its own gets an estimate of the same sine, from the same Ritz pairs,
of which (Y, G Y) is always known after the last round. x is then the next Ritz value, or the mean
of the eigenvalues outside range(W) if that is larger: λ_{r+1} is hardly below either, so that the
estimate is large where the subspace is far off, and may be too small where range(W) has missed a
direction.

Rounding: 16 ε θ₁, the largest residual seen at an exact eigenspace in precision ε (see
`fedcore.parts.residuals`), is added to ‖R‖₂ and x, and 16 ε trace G to ρ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from fedcore.federation.transcript import Transcript
from fedcore.linalg import sin_theta

# Algorithms whose clients reply to a block Q with SᵢᵀSᵢ Q, and whose server takes the sum.
PRODUCTS = frozenset(
    ("block_krylov", "momentum_power", "power_exact", "power_gd", "power_iteration", "power_prox",
     "ssi")
)  # fmt: skip
BLOCKS = 40  # that are kept beside the last; later ones of a slow method depend on these
STEPS = 12  # of the bisection for x
ROUNDING = 16.0

Pair = tuple[np.ndarray, np.ndarray]


class Products(Transcript):
    """Keeps the blocks and sums of products of one run; passes all on to a user's transcript.

    Parameters
    ----------
    told : Transcript or None
        That of the user.
    rounds : int
        Rounds before the run, which its numbers do not count.
    n_clients : int

    Attributes
    ----------
    pairs : list of (ndarray, ndarray)
        Blocks Q and G Q, of shape (n_features, ·); the last block of the run comes first.
    """

    def __init__(self, told: Transcript | None, rounds: int, n_clients: int) -> None:
        super().__init__(
            None if told is None else told.clients, sums_only=told is None or told.sums_only
        )
        self._told, self._rounds, self._n_clients = told, rounds, n_clients
        self.pairs: list[Pair] = []

    def on_upload(self, number: int, exchanges: Sequence[tuple[int | None, Any, Any]]) -> None:
        """Keep the sum of the replies if they are as many and as large as they should be."""
        if self._told is not None:
            self._told.on_upload(number + self._rounds, exchanges)
        whole = [client for client, _, _ in exchanges] == [None]
        if not whole and len(exchanges) != self._n_clients:
            return
        block, replies = exchanges[0][1], [sent for _, _, sent in exchanges]
        if not all(isinstance(m, np.ndarray) for m in (block, *replies)):
            return
        if block.ndim == 2 and {m.shape for m in replies} == {block.shape}:
            total = np.sum([m.astype(np.float64) for m in replies], axis=0)
            if len(self.pairs) <= BLOCKS:  # the one that was last is an early one
                self.pairs.append(self.pairs[0] if self.pairs else (block, total))
            self.pairs[0] = block, total


def bound(Z: np.ndarray, pairs: Sequence[Pair], trace: float) -> float:
    """Return a bound on the sine of the largest angle to the leading eigenspace; 1 if unknown.

    Parameters
    ----------
    Z : ndarray of shape (d, r)
        Orthonormal columns.
    pairs : sequence of (ndarray, ndarray)
        Blocks Q and their products G Q.
    trace : float
        Trace of G.
    """
    d, r = Z.shape
    if r == d:
        return 0.0
    found = _ritz(pairs, d, r, trace)
    if found is None:
        return 1.0
    theta, _, F, unit = found
    slack = ROUNDING * unit * theta[0]
    rest = 0.0 if len(theta) == d else max(1.0 - theta.sum(), 0.0) + ROUNDING * unit
    return _sine(Z, found, _next_eigenvalue(theta, F, rest, r) + slack, slack)


def estimate(Z: np.ndarray, pairs: Sequence[Pair], trace: float, dimension: int) -> float:
    """Return an estimate of the sine that `bound` bounds; 1 if the pairs say nothing.

    Parameters
    ----------
    Z, pairs, trace
        As for `bound`.
    dimension : int
        Of the space that the samples can span, ``min(n, d)``, or of centred ones n − 1.
    """
    d, r = Z.shape
    if r == d:
        return 0.0
    found = _ritz(pairs, d, r, trace)
    if found is None:
        return 1.0
    theta = found.values
    others = max(dimension - len(theta), 1)
    following = max(theta[r] if len(theta) > r else 0.0, (1.0 - theta.sum()) / others)
    return _sine(Z, found, following, 0.0)


class Ritz(NamedTuple):
    """Ritz pairs in the span W of all blocks, in units of the trace.

    Attributes
    ----------
    values : ndarray of shape (m,)
        Descending.
    leading : ndarray of shape (d, r)
        Y.
    residuals : ndarray of shape (d, m)
        F in the basis of the Ritz vectors.
    unit : float
        Relative rounding error of the products.
    """

    values: np.ndarray
    leading: np.ndarray
    residuals: np.ndarray
    unit: float


def _ritz(pairs: Sequence[Pair], d: int, r: int, trace: float) -> Ritz | None:
    """Return the Ritz pairs; None for fewer than r, or for replies that are no products."""
    # In units of the trace, so that no product of two of these overflows.
    pairs = [(Q, U / trace) for Q, U in pairs if len(Q) == d and np.isfinite(U).all()]
    if not pairs:
        return None
    unit = max(float(np.finfo(Q.dtype).eps) for Q, _ in pairs)
    W, GW, least = _basis(pairs, apart=unit**0.25)
    unit /= least  # dividing a part of a block by its size has divided its rounding errors, too
    H = W.T @ GW
    if W.shape[1] < r or not _symmetric(H, unit):
        return None
    theta, S = np.linalg.eigh((H + H.T) / 2)
    theta, S = theta[::-1], S[:, ::-1]
    return Ritz(theta, W @ S[:, :r], (GW - W @ H) @ S, unit)


def _sine(Z: np.ndarray, found: Ritz, x: float, slack: float) -> float:
    """``‖R‖ / (θ_r − x) + sin(Z, Y)``, at most 1."""
    r = Z.shape[1]
    gap = found.values[r - 1] - x
    if not gap > 0:
        return 1.0
    residual = np.linalg.norm(found.residuals[:, :r], 2) + slack
    return float(min(1.0, residual / gap + sin_theta(found.leading, Z)))


def _basis(pairs: Sequence[Pair], apart: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Orthonormal basis W of all blocks, G W, and the size of the smallest part of a block.

    Parts whose size is at most `apart` of their block's Frobenius norm are left out.
    """
    W = GW = np.empty((len(pairs[0][0]), 0))
    least = 1.0
    for given, product in pairs:
        if W.shape[1] == len(W):  # there is no other direction
            break
        size = np.linalg.norm(given)
        if not 0 < size < np.inf:
            continue
        Q, U = given / size, product / size
        for _ in range(2):  # once more for the digits that the first subtraction leaves
            inside = W.T @ Q
            Q, U = Q - W @ inside, U - GW @ inside
        basis, sizes, turned = np.linalg.svd(Q, full_matrices=False)
        good = sizes > apart
        W = np.hstack([W, basis[:, good]])
        GW = np.hstack([GW, (U @ turned[good].T) / sizes[good]])
        least = min(least, float(sizes[good].min(initial=1.0)))
    return W, GW, least


def _symmetric(H: np.ndarray, unit: float) -> bool:
    """Whether H can be WᵀG W: an algorithm that sends something else is noticed."""
    return bool(np.abs(H - H.T).max() <= np.sqrt(unit) * np.abs(H).max())


def _next_eigenvalue(theta: np.ndarray, F: np.ndarray, rest: float, r: int) -> float:
    """Return an x with λ_{r+1}(G) ≤ x; infinite if there is none below θ_r.

    Parameters
    ----------
    theta : ndarray of shape (m,)
        Eigenvalues of H, descending.
    F : ndarray of shape (d, m)
        In the eigenbasis of H.
    rest : float
        ρ.
    r : int
    """
    following = theta[r] if len(theta) > r else 0.0
    if not rest:
        return float(following)
    low, high, found = max(rest, following), float(theta[r - 1]), np.inf
    FF = F.T @ F
    for _ in range(STEPS):
        x = (low + high) / 2
        if not low < x < high:
            break
        inside = np.linalg.eigvalsh(np.diag(theta) + FF / (x - rest))[::-1]
        if len(inside) <= r or inside[r] <= x:
            high = found = x
        else:
            low = x
    return found
