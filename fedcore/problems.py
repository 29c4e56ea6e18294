"""A problem: the clients' matrices and the answer that methods are measured against.

Made once from its specification in a configuration file (a generator, or a data set with a
partition), written to one HDF5 file, and read by every cell that needs it.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import h5py
import numpy as np
import scipy.linalg

from fedcore import atomic, generators
from fedcore.errors import ConfigError, DataError, nearest
from fedcore.federation import check_clients
from fedcore.linalg import range_basis, triangular_factor

SCHEMA = 1

SCALES = {
    "none": lambda x: np.asarray(x, dtype=np.float64),
    "unit": lambda x: x / 255.0,
    "signed_unit": lambda x: (x / 255.0 - 0.5) / 0.5,
}


class Reference(NamedTuple):
    """Singular values, and right singular vectors as columns, of the stacked clients."""

    singular_values: np.ndarray  # (min(n, d),), descending
    right_vectors: np.ndarray  # (d, min(n, d))


@dataclass
class Problem:
    """Client matrices and, computed when first asked for, the answer to compare with.

    Attributes
    ----------
    name : str
    clients : list of ndarray of shape (n_i, d)
        Rows are samples.
    status : {"official", "rebuilt", "surrogate", "synthetic"}
    note : str
        What a reader of a result must know about the data.
    """

    name: str
    clients: list[np.ndarray]
    status: str = "synthetic"
    note: str = ""
    _last: tuple[np.ndarray, float] = field(default=(np.empty(0), np.nan), repr=False)

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
        return sum(len(client) for client in self.clients)

    @property
    def n_features(self) -> int:
        """Columns of every client's matrix."""
        return self.clients[0].shape[1]

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


def build(name: str, spec: Mapping[str, Any], *, raw: str, seed: int, surrogate: bool) -> Problem:
    """Build a problem from its specification.

    Parameters
    ----------
    name : str
    spec : mapping
        Either ``generator`` and its ``params``, or ``dataset``, ``options``, ``first`` (number of
        leading samples), ``scale`` and ``partition``.
    raw : str
        Folder of the raw data files.
    seed : int
        Master seed; the problem's own stream hangs on its name, not on who uses it.
    surrogate : bool
        Take the data set's offline stand-in; a generator's matrices count as stand-ins, too.

    Raises
    ------
    ConfigError, DataError, InputError
        When the specification is wrong or the data cannot be had.
    """
    rng = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(name_key(name),)))
    if "generator" in spec:
        clients = check_clients(generators.generate(spec["generator"], rng, spec.get("params", {})))
        if surrogate:  # sizes are not the paper's, so that a result must not pass for its own
            return Problem(name, clients, "surrogate", "drawn at the sizes of this configuration")
        return Problem(name, clients)
    return _from_dataset(name, spec, rng, raw=raw, surrogate=surrogate)


def _from_dataset(
    name: str, spec: Mapping[str, Any], rng: np.random.Generator, *, raw: str, surrogate: bool
) -> Problem:
    from fedcore import datasets
    from fedcore.datasets import partition

    data = datasets.load(spec["dataset"], raw, surrogate=surrogate, options=spec.get("options"))
    first = spec.get("first", len(data.x))
    if first > len(data.x):
        raise ConfigError(
            f"problem {name}: asks for the first {first} samples, {data.name} has {len(data.x)}"
        )
    scale = spec.get("scale", "none")
    if scale not in SCALES:
        raise ConfigError(f"problem {name}: unknown scale '{scale}': {nearest(scale, SCALES)}")
    x = SCALES[scale](data.x[:first])
    labels = None if data.y is None else data.y[:first]
    parts = partition.split(spec["partition"], first, labels, rng)
    return Problem(name, check_clients([x[p] for p in parts]), data.status, data.note)


def save(problem: Problem, path: str | os.PathLike[str]) -> None:
    """Write `problem` to one HDF5 file, whole or not at all."""
    with atomic.replace(path) as temporary, h5py.File(temporary, "w") as file:
        file.attrs["schema"] = SCHEMA
        for key in ("name", "status", "note", "checksum"):
            file.attrs[key] = getattr(problem, key)
        for i, client in enumerate(problem.clients):
            dataset = file.create_dataset(f"clients/{i:05d}", data=client)
            dataset.attrs["description"] = f"client {i}: samples x features"
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
        with h5py.File(path, "r") as file:
            if file.attrs["schema"] != SCHEMA:
                raise DataError(
                    f"{path}: schema {file.attrs['schema']}, expected {SCHEMA}; delete it"
                )
            problem = Problem(
                file.attrs["name"],
                [client[()] for client in file["clients"].values()],
                file.attrs["status"],
                file.attrs["note"],
            )
            if problem.checksum != file.attrs["checksum"]:
                raise DataError(f"{path} is damaged (checksum differs); delete and remake it")
            # Fill the cached property, so that the answer is computed once per problem.
            problem.reference = Reference(*(file[f"reference/{k}"][()] for k in Reference._fields))
            return problem
    except FileNotFoundError as error:
        raise DataError(f"{path} does not exist; make the problem first") from error
    except (OSError, KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise DataError(
            f"{path} is not a whole problem file ({error}); delete it and make it again"
        ) from error


def name_key(name: str) -> int:
    """Stable 32-bit key of a name, for seed sequences."""
    return zlib.crc32(name.encode())
