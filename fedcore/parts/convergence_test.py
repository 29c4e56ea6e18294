"""Convergence test, without additional messages, for iterations with the Gram matrix G = Σ SᵢᵀSᵢ.

Sᵢ are the samples of client i. A server that has sent a matrix Z with p orthonormal columns and
received U = G Z knows the residual R = U − Z ZᵀU. The test estimates the sine of the largest angle
between range(Z) and the leading eigenspace of G. The sine is at most ``‖R‖₂ / (θ_p − λ_{p+1})``,
where θ_p is the smallest eigenvalue of ZᵀU (Davis & Kahan, *The rotation of eigenvectors by a
perturbation III*, 1970). The server does not know the next eigenvalue λ_{p+1} of G. In the place of
λ_{p+1}, the test uses the (p+1)-st Ritz value in the span of the latest matrices Z, plus
`UNCERTAINTY` times the residual of the corresponding Ritz vector.

The result is an estimate and not a bound. The estimate is too small if the iteration has missed a
leading eigenvalue. If an eigenvalue has multiplicity above p, for example, the iteration finds only
p of its directions. The algorithms' parameter `n_oversamples` adds columns to Z; with these columns
the test can notice missed directions.

Rounding errors keep the residual above zero. Let ε be the unit roundoff of the products, and θ₁ the
largest Ritz value. At the exact eigenspace, ‖R‖₂ is between ε θ₁ and 16 ε θ₁ (measured for up to
3·10⁵ samples and 3000 features). Let n be the number of samples and d the number of features. Even
if the estimate is above the tolerance, the test therefore succeeds when ‖R‖₂ is at most ``(16 + √(n
+ d)) ε θ₁`` and has not halved in the last round. A ‖R‖₂ below ε θ₁ counts as ε θ₁. If only
rounding is left in the residual, the estimate shows how well the data determine the subspace in
this precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
import scipy.linalg

from fedcore.errors import ArbitraryWarning, ConvergenceWarning, warn
from fedcore.federation.ledger import Shape
from fedcore.problems.clients import Clients
from fedcore.words import counted

TOL = 1e-8  # default for the sine of the angle
WARNING_SINE = 1e-3  # sine of the angle above which a user is warned of rounding
UNCERTAINTY = 10.0  # residuals of the next Ritz value by which λ_{p+1} may be above it
OUTPUT_KEYS = {"converged", "angle_estimate", "ritz_edge"}  # keys of `ConvergenceTest.output`
# Times the fall of a residual that the gap explains; beyond it, the space has ended.
SUDDEN_FALL = 100.0
LEAST_DIFFERENCE = 1e-3  # relative difference above which two singular values count as different


class ConvergenceTest:
    """Convergence test of one run, which the server applies in every round.

    Parameters
    ----------
    tol : float
        Largest accepted sine of the angle to the leading eigenspace; 0 disables the test.
    shape : Shape
        Numbers of clients, samples and features.
    wanted : int
        Number p of leading columns of Z that are tested. Z may have more than p columns.
    """

    def __init__(self, tol: float, shape: Shape, wanted: int) -> None:
        self._tol, self._shape, self._wanted = tol, shape, wanted
        self._before: tuple[np.ndarray, np.ndarray] | None = None  # the last Z and its U
        self._following: tuple[float, float] | None = None
        self._last = np.inf  # residual of the round before, and its next Ritz value
        self._shown: tuple[float, float] | None = None
        self._estimate, self._edge, self._met = np.nan, (np.nan, np.nan), False

    def blocks(
        self, Z: np.ndarray, U: np.ndarray, span: tuple[np.ndarray, np.ndarray] | None = None
    ) -> bool:
        """Store Z and U = G Z, and return whether range(Z) has converged.

        Parameters
        ----------
        Z : ndarray of shape (n_features, p or more)
            Matrix with orthonormal columns. If Z has more than p columns, `by_ritz_values` must
            have rotated them.
        U : ndarray of the same shape
            The product G Z.
        span : (ndarray, ndarray), optional
            Result of `join_blocks` for the present and the previous pair (Z, U), if the caller has
            it.
        """
        if not self._tol or not np.isfinite(U).all():
            return False
        p, inner = self._wanted, Z.T @ U
        theta = np.linalg.eigvalsh((inner + inner.T) / 2)[::-1]
        R = U - Z @ inner
        if Z.shape[1] > p:
            self._following = float(theta[p]), _norm(R[:, p : p + 1])
        elif self._before is not None:
            V, AV = span or join_blocks(Z, U, *self._before)
            if V.shape[1] > p:
                found = _ritz(V, AV, p)
                # As blocks converge, the span adds less and less: the best estimate is kept. A
                # Ritz value is at most its eigenvalue, and its residual says how far below.
                best = self._following
                if best is None or found[0] - found[1] > best[0] - best[1]:
                    self._following = found
        self._before = Z, U
        return self.met(_norm(R[:, :p]), theta[:p], self._following, U.dtype)

    def met(
        self,
        residual: float,
        theta: np.ndarray,
        following: tuple[float, float] | None,
        dtype: np.dtype,
        *,
        final: bool = False,
    ) -> bool:
        """Return whether a basis with this residual and these Ritz values has converged.

        Parameters
        ----------
        residual : float
            The spectral norm ‖R‖₂ of the residual.
        theta : ndarray of shape (p,)
            The basis's Ritz values in descending order.
        following : (float, float) or None
            The (p+1)-st Ritz value and the norm of its Ritz vector's residual, or None if unknown.
        dtype : numpy.dtype
            Precision of the products.
        final : bool, default=False
            True if no further round can lower the residual.
        """
        if not self._tol:
            return False
        n, d = self._shape.n_samples, self._shape.n_features
        whole = len(theta) == d  # the basis spans the whole space
        unit = float(np.finfo(dtype).eps * max(theta[0], 0.0))
        residual = max(residual, unit)  # smaller residuals are rounding
        rounding = (16 + np.sqrt(n + d)) * unit
        value, error = (0.0, 0.0) if whole else following or (np.nan, np.nan)
        gap = float(theta[-1]) - value - UNCERTAINTY * error
        # While the next Ritz value changes, another round may still show how wide the gap is.
        turns = self._turns(error, value, float(theta[-1]), rounding)
        known = not turns and (gap > 0 or not error > rounding or following == self._shown)
        stalled = residual <= rounding and (final or (known and residual > self._last / 2))
        sudden = self._last > SUDDEN_FALL * residual * _gain(float(theta[-1]), value)
        self._last, self._shown = residual, following
        self._edge = float(theta[-1]), value
        self._estimate = 0.0 if whole else residual / gap if gap > 0 else np.inf
        # One round may miss a direction in which the start has a small component, and so may the
        # round that uses up all other directions. The next round then shows the missed direction.
        enough = whole or final or not (sudden or turns)
        self._met = bool(stalled or (enough and self._estimate <= self._tol))
        return self._met

    def _turns(self, error: float, value: float, least: float, rounding: float) -> bool:
        """Return whether the next Ritz vector turns to an eigenvector that the test has not seen.

        Suppose that the next Ritz vector has a small component along an eigenvector whose
        eigenvalue is at least `least`, the p-th Ritz value. In one round, this component and the
        residual `error` grow by ``least / value`` or more. A growth above halfway from 1 to this
        factor counts as such a turn.
        """
        if self._shown is None or not error > rounding:
            return False
        return 2 * value * error > (value + least) * self._shown[1]

    def output(self) -> dict[str, Any]:
        """Return the entries that the test adds to an algorithm's output.

        Returns
        -------
        dict
            ``converged`` is true if the last tested Z has passed the test. ``angle_estimate`` is
            the estimated sine of the largest angle between the last tested range(Z) and the leading
            eigenspace. The estimate is infinite if the test does not know the gap between the
            eigenvalues or finds none, and NaN if no Z was tested. ``ritz_edge`` contains the p-th
            and the (p+1)-st Ritz value in data units squared, or NaN if unknown. The dict is empty
            if ``tol`` is 0.
        """
        if not self._tol:
            return {}
        return {
            "converged": np.bool_(self._met),
            "angle_estimate": np.float64(self._estimate),
            "ritz_edge": np.array(self._edge),
        }


def estimate_untested(
    Z: np.ndarray, U: np.ndarray, outside: float, dimension: int, dtype: np.dtype
) -> float:
    """Estimate the sine of the largest angle between range(Z) and the leading eigenspace.

    Let G be the Gram matrix of the samples. In the place of the unknown eigenvalue λ_{p+1} of G,
    the estimate uses the mean eigenvalue outside range(Z), which is hardly larger than λ_{p+1}. The
    estimate is large if range(Z) is far from invariant under G. The estimate is too small if
    range(Z) is nearly invariant but lacks a leading direction.

    Parameters
    ----------
    Z : ndarray of shape (n_features, p)
        Matrix with orthonormal columns.
    U : ndarray of shape (n_features, p)
        The product G Z.
    outside : float
        Squared Frobenius norm of the samples outside range(Z).
    dimension : int
        Dimension of the space that the samples can span.
    dtype : numpy.dtype
        Precision of the products.
    """
    if Z.shape[0] == Z.shape[1]:
        return 0.0
    Z, inner = Z.astype(np.float64), Z.T @ U
    theta = np.linalg.eigvalsh((inner + inner.T) / 2)
    gap = theta[0] - outside / max(dimension - Z.shape[1], 1)
    residual = max(_norm(U - Z @ inner), float(np.finfo(dtype).eps * theta[-1]))
    return float(residual / gap) if gap > 0 else 1.0


def by_ritz_values(Z: np.ndarray, U: np.ndarray, *others: np.ndarray) -> tuple[np.ndarray, ...]:
    """Rotate Z so that its columns are Ritz vectors, largest Ritz value first.

    U = G Z and the matrices `others` are rotated like Z.
    """
    inner = Z.T @ U
    S = np.linalg.eigh((inner + inner.T) / 2)[1][:, ::-1]
    return tuple((block @ S).astype(block.dtype, copy=False) for block in (Z, U, *others))


def join_blocks(
    Z: np.ndarray, U: np.ndarray, Z_old: np.ndarray, U_old: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return an orthonormal basis V of span[Z Z_old] that begins with Z, and the product G V.

    U is G Z, U_old is G Z_old, and all arguments have shape (n_features, p). The part of Z_old
    outside range(Z) shrinks as the iteration converges. V omits the directions of Z_old that lose
    half of their digits when range(Z) is removed from them.
    """
    overlap = Z.T @ Z_old
    basis, sizes, rotation_t = scipy.linalg.svd(
        Z_old - Z @ overlap, full_matrices=False, check_finite=False
    )
    good = sizes > np.sqrt(np.finfo(U.dtype).eps)
    images = ((U_old - U @ overlap) @ rotation_t[good].T) / sizes[good]
    return np.hstack([Z, basis[:, good]]), np.hstack([U, images])


class Parametrised(Protocol):
    """An algorithm with a method `takes` that tells whether a parameter exists."""

    def takes(self, name: str) -> bool:
        """Return whether the algorithm has a parameter of this name."""
        ...


def with_tolerance(algorithm: Parametrised, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return `params`, with the default ``tol = TOL`` if the algorithm has this parameter."""
    return {"tol": TOL, **params} if algorithm.takes("tol") else dict(params)


def warn_of_end(
    algorithm: str, settings: Any, output: Mapping[str, Any], iterations: float, clients: Clients
) -> None:
    """Warn if a run has not converged, or if rounding errors determine the subspace that it found.

    Parameters
    ----------
    algorithm : str
    settings : object
        The algorithm's ``Params``.
    output : mapping
        The algorithm's output. If the output lacks any of the `OUTPUT_KEYS`, the function gives no
        warning.
    iterations : float
        Number of the run's last iteration. If this number is below ``settings.rounds``, the caller
        has stopped the run early, and the function does not warn of missing convergence.
    clients : Clients
        The clients' samples.
    """
    if not output.keys() >= OUTPUT_KEYS:  # a plug-in's own test may return "converged" too
        return
    p, estimate = settings.n_components, float(output["angle_estimate"])
    sigma, following = np.sqrt(np.maximum(output["ritz_edge"], 0.0))
    known = not np.isnan(following)
    between = f"singular values {p} and {p + 1}"
    if known:
        between += f" ({sigma:.6g} and {following:.6g})"
    about = _told_apart(estimate, settings.tol)
    angle = f"by an angle of about {about}" if estimate < 1 else "by any angle"
    if not output["converged"]:
        if iterations >= settings.rounds and estimate <= settings.tol:
            warn(
                f"{algorithm} may have converged in its last round, but only another round can "
                f"confirm this: allow {settings.rounds + 1} rounds",
                ConvergenceWarning,
            )
        elif iterations >= settings.rounds:
            warn(
                f"{algorithm} has not converged in {counted(settings.rounds, 'round')}: the "
                f"subspace may be off {angle} (tol = {settings.tol:g}). Allow more rounds or a "
                f"larger tol, or choose n_components where the gap is wider than between {between}."
                " Of all methods, block_krylov needs the fewest rounds",
                ConvergenceWarning,
            )
    elif estimate <= max(WARNING_SINE, settings.tol):
        return
    elif not known:
        warn(
            f"{algorithm} has found a subspace that its rounds do not change, but has not found "
            f"singular value {p + 1}, so other subspaces may be as good: give n_oversamples=1 to "
            "look for this value",
            ArbitraryWarning,
        )
    elif sigma - following > LEAST_DIFFERENCE * sigma and sigma**2 > _rounding(clients):
        dtype = np.result_type(*clients.dtypes)
        double = "give float64 data or " if dtype == np.float32 else ""
        warn(
            f"rounding of {dtype} data may turn the subspace {angle}, because singular value 1 is "
            f"so much larger than the gap between {between}: {double}scale the features",
            ConvergenceWarning,
        )
    else:
        warn(
            f"{between} are as good as equal in the precision of the data, so that rounding "
            f"turns the subspace {angle} and the components are arbitrary: choose n_components "
            "where the gap between singular values is wider",
            ArbitraryWarning,
        )


def _gain(inside: float, outside: float) -> float:
    """Return the factor by which a Lanczos round lowers a residual, from Chebyshev's bound.

    `inside` is the smallest wanted eigenvalue, and `outside` is the next eigenvalue.
    """
    if not inside > outside:
        return 1.0
    ratio = min(inside / outside if outside > 0 else np.inf, 1e16)
    return 2 * ratio - 1 + 2 * float(np.sqrt(ratio * (ratio - 1)))


def _told_apart(estimate: float, tol: float) -> str:
    """Format an estimate with just enough digits to show that it is above `tol`."""
    shown = max(tol, float(f"{tol:g}"))
    texts = (f"{estimate:.{digits}g}" for digits in range(1, 18))
    return next((text for text in texts if float(text) > shown), f"{estimate:.1g}")


def _rounding(clients: Clients) -> float:
    """Return 16 ε ‖S‖²_F; eigenvalues of Σ SᵢᵀSᵢ below this number may be rounding errors."""
    return 16 * float(np.finfo(np.result_type(*clients.dtypes)).eps) * clients.squares


def _ritz(V: np.ndarray, AV: np.ndarray, p: int) -> tuple[float, float]:
    """Return the (p+1)-st Ritz value in range(V), and the norm of its Ritz vector's residual."""
    T = V.T @ AV
    theta, S = np.linalg.eigh((T + T.T) / 2)
    value, s = theta[-p - 1], S[:, -p - 1]
    return float(value), _norm((AV @ s - value * (V @ s))[:, None])


def _norm(matrix: np.ndarray) -> float:
    return float(np.linalg.norm(matrix, 2))
