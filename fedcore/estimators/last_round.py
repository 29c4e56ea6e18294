"""The last round of a fit: clients send second moments of their data along the found basis."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from fedcore.errors import InputError
from fedcore.federation.centring import squares_of_features
from fedcore.federation.execution import summed
from fedcore.federation.federation import Federation
from fedcore.problems.clients import Clients
from fedcore.problems.tasks import shared_basis

# Squares count as equal if they differ by this many rounding errors of the first or of their own.
OF_FIRST, OF_OWN = 16.0, 4096.0
ALIKE = 0.4  # magnitudes that differ by the fraction eps**ALIKE, or less, count as equal


def _by_gram(clients: Clients, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray | None:
    """Return the sum of all clients' `moments`, or None without a pooled Gram matrix in float64."""
    gram = getattr(clients, "gram", None)
    if gram is None or gram.dtype != np.float64:
        return None
    inside = Z.T @ (gram @ Z)
    return np.append(inside, max(np.trace(gram) - np.trace(inside), 0.0))


@summed(_by_gram)
def moments(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
    """Return ``Zᵀ SᵢᵀSᵢ Z`` and the squared norm of the part of the samples Sᵢ outside range(Z).

    The client computes this squared norm in double precision. If the server computed the norm
    itself, its subtraction of sums in single precision would lose digits.
    """
    return _moments(data, data @ Z)


def moments_and_products(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
    """Return `moments` and the product ``SᵢᵀSᵢ Z``, for runs without a convergence test."""
    scores = data @ Z
    return np.append(_moments(data, scores), data.T @ scores)


def _moments(data: np.ndarray, scores: np.ndarray) -> np.ndarray:
    doubles = scores.astype(np.float64)
    inside = doubles.T @ doubles
    outside = squares_of_features(data).sum() - np.trace(inside)
    return np.append(inside, max(outside, 0.0))


def last_round(federation: Federation, output: Mapping[str, Any]) -> dict[str, Any]:
    """Return the principal axes of the found subspace; `fedcore.run` calls this as ``finish``.

    The clients send the `moments` of their data along the basis Z of the subspace. If the algorithm
    has no convergence test, the clients also send the products ``SᵢᵀSᵢ Z``. The result then
    contains the sum of these products as ``products``, and Z as ``sent``.

    Raises
    ------
    InputError
        If the run has diverged.
    """
    basis = shared_basis(output)
    if not np.isfinite(basis).all():
        raise InputError(
            "the run has diverged, its subspace is not finite: take smaller steps or another "
            "algorithm"
        )
    sent = basis if basis.flags.owndata else basis.copy()
    sent.flags.writeable = False  # so that the message is no copy
    federation.broadcast(sent)
    tested = "converged" in output
    total = federation.sum(moments if tested else moments_and_products).astype(np.float64)
    last = basis.shape[1] ** 2
    dtype = np.result_type(*federation.clients.dtypes)
    found = {"axes": principal_axes(basis, total[:last], dtype), "outside": float(total[last])}
    if tested:
        return found
    return {**found, "sent": basis, "products": total[last + 1 :].reshape(basis.shape)}


class Axes(NamedTuple):
    """Principal axes of a subspace, in descending order of their sums of squared scores.

    Attributes
    ----------
    components : ndarray of shape (r, d)
        The axes as rows. In every row, the entry of largest magnitude is positive; if the largest
        magnitudes agree up to rounding, the first of these entries is positive. Axes whose squares
        agree up to rounding are chosen within their span: the first axis is the unit vector with
        the largest possible entry, and each next axis is chosen in the same way, orthogonal to the
        earlier axes.
    squares : ndarray of shape (r,)
        Sums of the squared scores along the axes, in descending order.
    """

    components: np.ndarray
    squares: np.ndarray


def principal_axes(basis: np.ndarray, inside: np.ndarray, dtype: Any = np.float64) -> Axes:
    """Rotate a basis Z of shape (d, r) to the eigenvectors of its r×r moment matrix `inside`.

    The moment matrix is ``Zᵀ (Σ SᵢᵀSᵢ) Z``, with noise in a private fit.

    Differences that may be rounding errors in the data's precision `dtype` determine neither the
    signs nor the order of the axes.
    """
    r, unit = basis.shape[1], float(np.finfo(dtype).eps)
    squares, rotation = np.linalg.eigh(inside.reshape(r, r))
    squares = squares[::-1]
    rows = np.ascontiguousarray(rotation[:, ::-1].T) @ basis.T  # BLAS takes no steps backwards
    rounding = np.maximum(OF_FIRST * squares[0], OF_OWN * squares[:-1]) * unit
    ends = np.flatnonzero(squares[:-1] - squares[1:] > rounding) + 1
    for first, end in itertools.pairwise([0, *ends, r]):
        rows[first:end] = _turned(rows[first:end], unit**ALIKE)
    return Axes(rows, np.maximum(squares, 0.0))


def _turned(rows: np.ndarray, alike: float) -> np.ndarray:
    """Return an orthonormal basis that depends only on the span of the orthonormal `rows`."""
    if len(rows) == 1:
        sizes = np.abs(rows[0])
        return rows * np.sign(rows[0, np.argmax(sizes >= (1.0 - alike) * sizes.max())])
    earlier = np.linspace(1.0, 1.0 - math.sqrt(alike), rows.shape[1])  # of columns that are alike
    at = scipy.linalg.qr(rows * earlier, mode="r", pivoting=True)[1][: len(rows)]
    rotation, upper = np.linalg.qr(rows[:, at])
    return (rotation * np.sign(np.diagonal(upper))).T @ rows
