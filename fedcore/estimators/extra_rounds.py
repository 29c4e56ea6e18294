"""Exchanges of a fit with the clients before and after the algorithm's own rounds."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from fedcore.errors import Advice, InputError
from fedcore.federation.execution import summed
from fedcore.federation.federation import Federation
from fedcore.federation.ledger import Ledger
from fedcore.federation.transcript import Transcript
from fedcore.problems.clients import Clients, require_size
from fedcore.problems.tasks import shared_basis
from fedcore.sparse import SparseRows


class Prepared(NamedTuple):
    """Samples as the algorithm gets them, ``(S - mean) / scale``.

    Attributes
    ----------
    clients : Clients
    mean, scale : ndarray of shape (d,)
        In data units; zeros and ones where nothing was asked for.
    ledger : Ledger
        Of the rounds that this took.
    """

    clients: Clients
    mean: np.ndarray
    scale: np.ndarray
    ledger: Ledger


def prepare(
    matrices: Any, seed: np.random.SeedSequence, transcript: Transcript | None, *,
    center: bool, scale: bool,
) -> Prepared:  # fmt: skip
    """Centre the clients' samples and scale their features, in at most one round for each.

    Centring is that of `Federation.center`. Then a client uploads the sum of the squares of every
    feature, d doubles, and downloads the d scales. The scale is the root of the mean square about
    `mean`, with divisor n, as in scikit-learn's StandardScaler; that of a constant feature is 1.
    The matrices must have passed `check_clients`.

    Raises
    ------
    InputError
        For unfit samples.
    """
    federation = Federation(matrices, seed, transcript=transcript, check=False)
    if not federation.clients.largest:  # which `require_size` needs, too
        raise InputError("the data of all clients are zero: there is no subspace to find")
    require_size(federation.clients)
    d = federation.shape.n_features
    mean, scales = np.zeros(d), np.ones(d)
    if center:
        if federation.shape.n_samples == 1:
            raise InputError("n_samples = 1: one sample has no variance about its mean")
        mean = federation.center()
        if not federation.clients.largest:
            raise InputError(
                "all samples are equal: nothing is left of them but their mean",
                advice=[Advice("keep it", {"center": False})],
            )
        require_size(federation.clients, "the data less their mean")
    clients = federation.clients
    if scale:
        replies = [squares_of_features(data) for data in clients]
        federation.ledger.upload(replies)
        total = np.sum(replies, axis=0)
        if transcript is not None:
            _tell(transcript, federation.ledger.rounds, replies, total)
        rounding = np.finfo(np.result_type(*clients.dtypes)).eps * np.abs(mean)
        found = np.sqrt(total / federation.shape.n_samples)
        scales = np.where(found > 10 * rounding, found, 1.0)
        federation.ledger.download(scales, len(clients))
        clients = Clients([scaled(data, scales) for data in clients])
    return Prepared(clients, mean, scales, federation.ledger)


def _tell(transcript: Transcript, number: int, replies: Any, total: Any) -> None:
    """Show a round without a message before it to a transcript."""
    if transcript.sums_only:
        transcript.on_upload(number, [(None, None, total)])
    else:
        watched = range(len(replies)) if transcript.clients is None else transcript.clients
        transcript.on_upload(number, [(i, None, replies[i]) for i in watched])


def squares_of_features(data: np.ndarray | SparseRows) -> np.ndarray:
    """Sum of the squares of every column, in double precision, shape (d,)."""
    if isinstance(data, SparseRows):
        return data.squares_of_columns()
    return np.einsum("ij,ij->j", data, data, dtype=np.float64)


def scaled(data: Any, scales: np.ndarray) -> Any:
    """Columns divided by `scales`, in the precision of the data; sparse rows stay sparse."""
    if isinstance(data, SparseRows):
        return data.over(scales)
    return (data / scales).astype(data.dtype, copy=False)


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
