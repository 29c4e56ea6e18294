"""Problems: the clients' matrices, with the exact answer to which results are compared.

The exact answer is, for example, the SVD of all samples, or the model that generated the labels.
For large sparse data, products with the data replace the SVD.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from fedcore.errors import InputError
from fedcore.files.lazy import LazyMatrices
from fedcore.linalg import column_space, gram_matrix, top_eigenvectors, triangular_factor
from fedcore.problems.clients import Clients, require_alike
from fedcore.problems.regression import Truth
from fedcore.sparse import SparseRows, refuse

# If the SVD of sparse data needs more multiplications (some ten seconds), exact answers come from
# products with the data. Dense data always get their SVD (reference).
COSTLY_OPERATIONS = 1e11


class Reference(NamedTuple):
    """Singular values and right singular vectors (columns) of the stacked client matrices."""

    singular_values: np.ndarray  # (min(n, d),), descending
    right_vectors: np.ndarray  # (d, min(n, d))


def reference_of(blocks: Iterable[np.ndarray]) -> Reference:
    """Return the SVD of stacked blocks in double precision; the blocks are read one at a time."""
    factor = triangular_factor(blocks)
    _, sigma, right_t = scipy.linalg.svd(factor, full_matrices=False, check_finite=False)
    return Reference(sigma, np.ascontiguousarray(right_t.T))


def add_to(digest: Any, matrix: np.ndarray | SparseRows) -> None:
    """Add the shape, the data type and the bytes of a matrix to a hash of `hashlib`."""
    digest.update(str((matrix.shape, matrix.dtype.str)).encode())
    for part in matrix.parts if isinstance(matrix, SparseRows) else [matrix]:
        digest.update(part.data)


class Problem:
    """Client matrices with the exact answer, such as their SVD, which is computed on first use.

    Attributes
    ----------
    name : str
    clients : Clients
        One matrix of shape (n_i, d) per client, with samples as rows. A list of matrices is also
        allowed.
    status : str
        Origin of the samples, one of `fedcore.problems.STATUSES`.
    note : str
        Remark about the data for readers of a result.
    truth : Truth, optional
        Model that generated the clients' labels, or None if it is unknown.
    held_out : Clients, optional
        Labelled samples of every client on which classifiers are tested. No client trains on these
        samples.
    setting : dict
        Values of the generator's parameters for this problem, if it is one of several random draws
        and these parameters differ between the draws. The dict is empty if the draws differ only by
        their seeds.
    """

    def __init__(
        self,
        name: str,
        clients: Sequence[np.ndarray],
        status: str = "synthetic",
        note: str = "",
        truth: Truth | None = None,
        held_out: Clients | None = None,
    ) -> None:
        self.name, self.status, self.note, self.truth = name, status, note, truth
        self.clients = clients if isinstance(clients, Clients) else Clients(clients)
        self.held_out = held_out
        if held_out is not None:
            require_alike(held_out, self.clients)
        self.setting: dict[str, Any] = {}
        self._last: tuple[np.ndarray, float] = np.empty(0), np.nan
        self._leading = np.empty((0, 0))

    @cached_property
    def reference(self) -> Reference:
        """SVD of the vertical stack S of the client matrices, in double precision.

        Raises
        ------
        InputError
            If the clients are sparse and too large for an SVD (see `by_products`).
        """
        if self.clients.sparse and self._costly:
            raise InputError(
                f"problem {self.name}: this measure needs all {self.n_features} singular vectors, "
                f"which take minutes for {self.n_samples} sparse samples: record objective or "
                "subspace_distance, or give dense matrices, by .toarray()"
            )
        return reference_of(_dense_blocks(self.clients))

    @cached_property
    def checksum(self) -> str:
        """sha256 of the shapes and bytes of all matrices and labels."""
        digest = hashlib.sha256()
        for samples in [self.clients] if self.held_out is None else [self.clients, self.held_out]:
            for matrix in chain(samples, [] if samples.labels is None else samples.labels):
                add_to(digest, matrix)
        return digest.hexdigest()

    @property
    def answer(self) -> dict[str, np.ndarray]:
        """Exact answer as arrays for the history file.

        For most problems, the answer consists of the singular values of the stacked matrices. For a
        problem with `truth`, the answer consists of the singular values of the true heads (the
        clients' own coefficients). For a problem with held-out samples, the answer consists of each
        client's numbers of training and held-out samples. If `by_products` is true, the answer is
        empty.
        """
        if self.held_out is not None:
            return {
                f"{name}_samples": np.array([rows for rows, _ in samples.shapes])
                for name, samples in (("training", self.clients), ("held_out", self.held_out))
            }
        if self.truth is None:
            return {} if self.by_products else {"singular_values": self.singular_values}
        return {"head_singular_values": self.truth.head_singular_values}

    def directions(self, most: int) -> dict[str, np.ndarray]:
        """Return the exact directions that a method should find, for the history file.

        The directions are the leading right singular vectors of the stacked matrices. For a problem
        with `truth`, the directions are all columns of the true representation. The result is empty
        if there are held-out samples, or if `by_products` is true.

        Parameters
        ----------
        most : int
            Largest number of singular vectors to return.
        """
        if self.truth is not None:
            return {"representation": self.truth.representation}
        if self.held_out is not None or self.by_products:
            return {}
        return {"leading_vectors": self.right_vectors[:, :most]}

    @property
    def by_products(self) -> bool:
        """True if `reference` is not available, because an SVD of the sparse data takes minutes.

        In this case, `exact_loss` and `leading_vectors` use products with the clients' data.
        """
        return self.clients.sparse and self._costly and "reference" not in self.__dict__

    @property
    def _costly(self) -> bool:
        n, d = self.n_samples, self.n_features
        return n * d * min(n, d) > COSTLY_OPERATIONS

    @property
    def singular_values(self) -> np.ndarray:
        """Singular values of the stacked matrices, shape (min(n, d),), descending."""
        return self.reference.singular_values

    @property
    def right_vectors(self) -> np.ndarray:
        """Right singular vectors of the stacked matrices as columns, shape (d, min(n, d))."""
        return self.reference.right_vectors

    @property
    def n_samples(self) -> int:
        """Number of samples of all clients together."""
        return self.clients.n_samples

    @property
    def n_features(self) -> int:
        """Number of features: the columns of each client's matrix."""
        return self.clients.n_features

    def with_largest_row(self, norm: float) -> Problem:
        """Return a copy with all samples scaled by one factor, so that the longest has norm `norm`.

        Parameters
        ----------
        norm : float
            Euclidean norm of the longest sample in the copy.

        Raises
        ------
        InputError
            If clients learn from labels, hold factors instead of rows, or are sparse.
        """
        if self.truth is not None or self.held_out is not None or self.clients.reduction:
            raise InputError(
                f"problem {self.name}: only unlabelled single rows can be scaled; leave out "
                "largest_row"
            )
        if self.clients.sparse:
            refuse("scaling rows to a largest norm")
        factor = norm / max(float(np.linalg.norm(c, axis=1).max()) for c in self.clients)
        rows = LazyMatrices(lambda i: self.clients[i] * factor, len(self.clients))
        clients = Clients(rows, self.clients.shapes, self.clients.dtypes)
        scaled = Problem(self.name, clients, self.status, self.note)
        sigma, right = self.reference
        scaled.reference = Reference(sigma * factor, right)
        return scaled

    def exact_loss(self, v: np.ndarray) -> float:
        """Return the loss ``min_U ½‖S − U Vᵀ‖²_F = ½‖S (I − Q Qᵀ)‖²_F`` of the stacked clients S.

        Q is an orthonormal basis of range(V). In the computation, the factor ``Σ Wᵀ`` of the SVD of
        S replaces S, because this factor has at most d rows. If `by_products` is true, the loss is
        computed as ½(‖S‖² − ‖S Q‖²), with a rounding error relative to ‖S‖². The loss for the last
        V is stored, because a method that keeps V fixed needs the same loss at every iteration.

        Parameters
        ----------
        v : ndarray of shape (d, r)

        Returns
        -------
        float
            Loss in data units squared.
        """
        if not np.array_equal(self._last[0], v):  # compares values: `v` may have changed in place
            if self.by_products:
                loss = loss_outside(self.clients, v)
            else:
                weighted = self.singular_values[:, None] * self.right_vectors.T
                q = column_space(v)
                residual = weighted - (weighted @ q) @ q.T
                loss = 0.5 * float(np.linalg.norm(residual) ** 2)
            self._last = (v.copy(), loss)
        return self._last[1]

    def leading_vectors(self, k: int) -> np.ndarray:
        """Return the k leading right singular vectors of the stacked clients, shape (d, k).

        If `by_products` is true, the vectors are computed from products with the data, and are kept
        for later calls with the same or a smaller k.

        Parameters
        ----------
        k : int
            Number of vectors.
        """
        if not self.by_products:
            return self.right_vectors[:, :k]
        if self._leading.shape[1] < k:
            self._leading = leading_vectors(self.clients, k)
        return self._leading[:, :k]


def _dense_blocks(clients: Clients) -> Iterator[np.ndarray]:
    """Yield the matrices in double precision; a sparse matrix comes as dense blocks of rows."""
    for matrix in clients:
        if isinstance(matrix, SparseRows):
            yield from matrix.blocks(max(4 * clients.n_features, 1024))
        else:
            yield matrix.astype(np.float64, copy=False)


def loss_outside(clients: Sequence[SparseRows], v: np.ndarray) -> float:
    """Return the loss ``½‖S (I − Q Qᵀ)‖²_F = ½(‖S‖²_F − ‖S Q‖²_F)`` of the stacked clients S.

    Q is an orthonormal basis of range(V). The loss has a rounding error of about 1e−16 ‖S‖²_F. The
    loss is NaN if `v` is not finite.

    Parameters
    ----------
    clients : sequence of SparseRows of shape (n_i, d)
    v : ndarray of shape (d, r)
    """
    q = column_space(v.astype(np.float64, copy=False))
    inside = sum(float(np.linalg.norm(client @ q) ** 2) for client in clients)
    return 0.5 * float(np.maximum(sum(client.squares() for client in clients) - inside, 0.0))


def leading_vectors(clients: Sequence[SparseRows], k: int) -> np.ndarray:
    """Return the k leading right singular vectors of the stacked clients, shape (d, k).

    The method is Lanczos or, if 8k > d, an eigendecomposition of the Gram matrix.

    Parameters
    ----------
    clients : sequence of SparseRows of shape (n_i, d)
    k : int
    """
    d = clients[0].shape[1]
    if 8 * k > d:  # Lanczos would need a basis of the whole space
        return top_eigenvectors(gram_matrix(clients, np.dtype(np.float64)), k)
    # ARPACK's error is absolute for small eigenvalues, so the largest ones are made of order one.
    scale = sum(client.squares() for client in clients)

    def gram(block: np.ndarray) -> np.ndarray:
        return sum(client.T @ (client @ block) for client in clients) / scale

    operator = scipy.sparse.linalg.LinearOperator((d, d), matvec=gram, matmat=gram, dtype=float)
    start = np.random.default_rng(0).standard_normal(d)  # equal inputs give equal results
    values, vectors = scipy.sparse.linalg.eigsh(
        operator, k=k, which="LA", v0=start, ncv=min(d, 2 * k + 20)
    )
    return np.ascontiguousarray(vectors[:, np.argsort(-values)])
