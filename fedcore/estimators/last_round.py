"""The exchange of a fit with the clients after the algorithm's own rounds."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from fedcore.errors import InputError
from fedcore.federation.centring import squares_of_features
from fedcore.federation.execution import summed
from fedcore.federation.federation import Federation
from fedcore.problems.clients import Clients
from fedcore.problems.tasks import shared_basis


def _by_gram(clients: Clients, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray | None:
    """The sum of `moments` from a Gram matrix of all clients, if there is one in double."""
    gram = getattr(clients, "gram", None)
    if gram is None or gram.dtype != np.float64:
        return None
    inside = Z.T @ (gram @ Z)
    return np.append(inside, max(np.trace(gram) - np.trace(inside), 0.0))


@summed(_by_gram)
def moments(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
    """Client step of the last round: ``Zᵀ SᵢᵀSᵢ Z`` and the squares of Sᵢ outside range(Z).

    The second number has no cancellation where the server subtracts, even in single precision.
    """
    return _moments(data, data @ Z)


def moments_and_products(data: np.ndarray, state: SimpleNamespace, Z: np.ndarray) -> np.ndarray:
    """Client step of the last round after a run without a test: also ``SᵢᵀSᵢ Z``."""
    scores = data @ Z
    return np.append(_moments(data, scores), data.T @ scores)


def _moments(data: np.ndarray, scores: np.ndarray) -> np.ndarray:
    doubles = scores.astype(np.float64)
    inside = doubles.T @ doubles
    outside = squares_of_features(data).sum() - np.trace(inside)
    return np.append(inside, max(outside, 0.0))


def last_round(federation: Federation, output: Mapping[str, Any]) -> dict[str, Any]:
    """Exchange the moments of the basis; for ``finish=`` of `fedcore.run`.

    Without a test of the algorithm's own, the clients also send their products with the basis, in
    the output ``products`` with the basis as ``sent``.

    Raises
    ------
    InputError
        When the run has diverged.
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
    found = {"axes": principal_axes(basis, total[:last]), "outside": float(total[last])}
    if tested:
        return found
    return {**found, "sent": basis, "products": total[last + 1 :].reshape(basis.shape)}


class Axes(NamedTuple):
    """Principal axes of a subspace, in order of their squares.

    Attributes
    ----------
    components : ndarray of shape (r, d)
        The entry of largest magnitude of every row is positive.
    squares : ndarray of shape (r,)
        Sums of the squares of the scores, descending.
    """

    components: np.ndarray
    squares: np.ndarray


def _largest(row: np.ndarray) -> int:
    """Return the first index of the largest magnitude, without an array of magnitudes."""
    high, low = int(row.argmax()), int(row.argmin())
    return min((high, low), key=lambda at: (-abs(row[at]), at))


def principal_axes(basis: np.ndarray, inside: np.ndarray) -> Axes:
    """Rotate a basis of shape (d, r) to the eigenvectors of its r·r moments `inside`."""
    r = basis.shape[1]
    squares, rotation = np.linalg.eigh(inside.reshape(r, r))
    rows = np.ascontiguousarray(rotation[:, ::-1].T) @ basis.T  # BLAS takes no steps backwards
    largest = [_largest(row) for row in rows]
    rows[rows[np.arange(len(rows)), largest] < 0] *= -1.0
    return Axes(rows, np.maximum(squares[::-1], 0.0))
