"""A problem: the clients' matrices and the answer that methods are measured against.

Made once (see `fedcore.sources`), written to one HDF5 file, and read by every cell that needs it.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import h5py
import numpy as np
import scipy.linalg

from fedcore import sealed
from fedcore.clients import Clients, Reduction
from fedcore.errors import DataError
from fedcore.linalg import range_basis, triangular_factor

SCHEMA = 1


class Reference(NamedTuple):
    """Singular values, and right singular vectors as columns, of the stacked clients."""

    singular_values: np.ndarray  # (min(n, d),), descending
    right_vectors: np.ndarray  # (d, min(n, d))


class Problem:
    """Client matrices and, computed when first asked for, the answer to compare with.

    Attributes
    ----------
    name : str
    clients : Clients
        One matrix of shape (n_i, d) per client, rows are samples; may be given as a list.
    status : {"official", "rebuilt", "surrogate", "synthetic"}
    note : str
        What a reader of a result must know about the data.
    """

    def __init__(
        self,
        name: str,
        clients: Sequence[np.ndarray],
        status: str = "synthetic",
        note: str = "",
    ) -> None:
        self.name, self.status, self.note = name, status, note
        self.clients = clients if isinstance(clients, Clients) else Clients(clients)
        self._last: tuple[np.ndarray, float] = np.empty(0), np.nan

    @cached_property
    def reference(self) -> Reference:
        """SVD of the vertical stack S of the clients, in double precision."""
        factor = triangular_factor(c.astype(np.float64, copy=False) for c in self.clients)
        _, sigma, right_t = scipy.linalg.svd(factor, full_matrices=False, check_finite=False)
        return Reference(sigma, np.ascontiguousarray(right_t.T))

    @cached_property
    def checksum(self) -> str:
        """sha256 of the clients' shapes and bytes."""
        digest = hashlib.sha256()
        for client in self.clients:
            digest.update(str((client.shape, client.dtype.str)).encode())
            digest.update(client.data)
        return digest.hexdigest()

    @property
    def singular_values(self) -> np.ndarray:
        """Singular values of S, shape (min(n, d),), descending."""
        return self.reference.singular_values

    @property
    def right_vectors(self) -> np.ndarray:
        """Right singular vectors of S as columns, shape (d, min(n, d))."""
        return self.reference.right_vectors

    @property
    def n_samples(self) -> int:
        """Samples of all clients."""
        return self.clients.n_samples

    @property
    def n_features(self) -> int:
        """Columns of every client's matrix."""
        return self.clients.n_features

    def exact_loss(self, v: np.ndarray) -> float:
        """Return ``min_U ½‖S − U Vᵀ‖²_F = ½‖S (I − Q Qᵀ)‖²_F``, Q a basis of range(V).

        Evaluated on ``Σ Wᵀ`` of the SVD of S, which has the same norms at d rows instead of n.
        The last matrix asked for is remembered: a method with a fixed V asks at every iteration.
        """
        if not np.array_equal(self._last[0], v):  # by content: `v` may have been changed in place
            weighted = self.singular_values[:, None] * self.right_vectors.T
            q = range_basis(v).basis
            residual = weighted - (weighted @ q) @ q.T
            self._last = (v.copy(), 0.5 * float(np.linalg.norm(residual) ** 2))
        return self._last[1]

    def optimal_loss(self, n_components: int) -> float:
        """Return the Eckart–Young floor ``ε_min = ½ Σ_{i>r} σᵢ²``."""
        return 0.5 * float(np.sum(self.singular_values[n_components:] ** 2))


def save(problem: Problem, path: str | os.PathLike[str]) -> None:
    """Write `problem` to one HDF5 file, whole or not at all."""
    with sealed.create(path) as file:
        file.attrs["schema"] = SCHEMA
        for key in ("name", "status", "note", "checksum"):
            file.attrs[key] = getattr(problem, key)
        for i, client in enumerate(problem.clients):
            dataset = file.create_dataset(f"clients/{i:05d}", data=client)
            dataset.attrs["description"] = f"client {i}: samples x features"
        if problem.clients.gram is not None:
            dataset = file.create_dataset("gram", data=problem.clients.gram)
            dataset.attrs["description"] = "sum of the clients' Gram matrices"
        if problem.clients.reduction is not None:
            dataset = file.create_dataset("samples", data=problem.clients.reduction.samples)
            dataset.attrs["description"] = (
                "rows of the matrices that the clients' factors stand for"
            )
            dataset.attrs["largest_row"] = problem.clients.reduction.largest_row
        for key, text in (
            ("singular_values", "of the stacked clients, descending"),
            ("right_vectors", "right singular vectors of the stacked clients, as columns"),
        ):
            dataset = file.create_dataset(f"reference/{key}", data=getattr(problem, key))
            dataset.attrs["description"] = text


def load(path: str | os.PathLike[str]) -> Problem:
    """Read a problem.

    Raises
    ------
    DataError
        When the file is missing, cut off, damaged, or of another schema.
    """
    try:
        with sealed.read(path) as file:
            if file.attrs["schema"] != SCHEMA:
                raise DataError(
                    f"{path}: schema {file.attrs['schema']}, expected {SCHEMA}; delete it"
                )
            problem = Problem(
                file.attrs["name"],
                _stored(path, file) if "gram" in file else _matrices(file),
                file.attrs["status"],
                file.attrs["note"],
            )
            if "samples" in file:
                rows = file["samples"]
                problem.clients.reduction = Reduction(
                    tuple(map(int, rows[()])), float(rows.attrs["largest_row"])
                )
            # Fill the cached properties, so that they are computed once per problem.
            problem.checksum = file.attrs["checksum"]
            problem.reference = Reference(*(file[f"reference/{k}"][()] for k in Reference._fields))
            return problem
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist; make the problem first") from error
    except (OSError, KeyError) as error:
        raise DataError(
            f"{path} is not a whole problem file ({error}); delete it and make it again"
        ) from error


def _matrices(file: h5py.File) -> list[np.ndarray]:
    return [client[()] for client in file["clients"].values()]


def _stored(path: str | os.PathLike[str], file: h5py.File) -> Clients:
    """Clients that stay in the file until a method asks for more than their summed products."""

    def read() -> list[np.ndarray]:
        with h5py.File(path, "r") as again:  # its seal has been checked
            return _matrices(again)

    found = list(file["clients"].values())
    return Clients(read, [c.shape for c in found], [c.dtype for c in found], file["gram"][()])


def name_key(name: str) -> int:
    """Stable 32-bit key of a name, for seed sequences."""
    return zlib.crc32(name.encode())
