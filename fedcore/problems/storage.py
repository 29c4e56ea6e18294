"""Write and read problem files: HDF5 files with client data, the exact answer and a checksum."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from functools import partial

import h5py
import numpy as np

from fedcore.errors import DataError
from fedcore.files import hdf5, outputs
from fedcore.files.mapping import Mapped
from fedcore.problems.clients import Clients, Matrices, Reduction
from fedcore.problems.problem import Problem, Reference
from fedcore.problems.regression import Truth
from fedcore.sparse import refuse
from fedcore.words import counted

SCHEMA = 1


def save(
    problem: Problem | Sequence[Problem], path: str | os.PathLike[str], *, recipe: str = ""
) -> None:
    """Write a problem (client data), or several random draws of it, to an HDF5 file atomically.

    The file stores `recipe`, a digest of the settings and the code that made the problem
    (`fedcore.experiments.build.recipe`).

    Raises
    ------
    InputError
        If the file exists and was not written by fedcore (see `fedcore.files.outputs`).
    """
    outputs.require(path, "problem")
    with hdf5.create(path, apart=True) as file:
        file.attrs["schema"] = SCHEMA
        if recipe:
            file.attrs["recipe"] = recipe
        if isinstance(problem, Problem):
            _write(file, problem)
        else:
            for i, draw in enumerate(problem):
                _write(file.create_group(f"draws/{i:05d}"), draw)


def load(path: str | os.PathLike[str]) -> Problem:
    """Read the problem in a file; if the file holds several random draws, read the first.

    Raises
    ------
    DataError
        If the file is missing, truncated, damaged, or has another schema version.
    """
    return load_draws(path)[0]


def load_draws(path: str | os.PathLike[str], *, recipe: str = "") -> list[Problem]:
    """Read all random draws in a problem file; raise DataError if the file has another `recipe`."""

    def decode(file: hdf5.Opened) -> list[Problem]:
        if "clients" not in file and "draws" not in file:
            raise ValueError("it holds no clients")
        if (schema := int(file.attrs["schema"])) != SCHEMA:
            raise DataError(
                f"{path} has schema {schema}, but this version reads {SCHEMA}: make the "
                "problem again"
            )
        if recipe and file.attrs.get("recipe") != recipe:
            raise DataError(
                f"{path} is not what is planned (it was made with other settings or by other "
                "code): delete it, and run again"
            )
        groups = file.get("draws", {"": file}).values()
        return [_read(path, group, file) for group in groups]

    return hdf5.load(path, decode, failure=DataError, **_WORDS)


_WORDS = {"kind": "problem", "first": "make the problem", "again": "run what makes it again"}


def _write(group: h5py.Group, problem: Problem) -> None:
    for key in ("name", "status", "note", "checksum"):
        group.attrs[key] = getattr(problem, key)
    group.attrs["setting"] = json.dumps(problem.setting)
    clients = problem.clients
    _put_samples(group, clients)
    if clients.gram is not None:
        _put(group, "gram", clients.gram, "sum of the clients' Gram matrices")
    if clients.reduction is not None:
        rows = np.array(clients.reduction.samples)
        _put(group, "samples", rows, "rows of the matrices that the clients' factors stand for")
        group["samples"].attrs["largest_row"] = clients.reduction.largest_row
    if problem.truth is not None:
        for key, array in problem.truth._asdict().items():
            _put(group, f"truth/{key}", array, f"model of the labels: {key}")
    elif problem.held_out is not None:
        _put_samples(group.create_group("held_out"), problem.held_out)
    else:
        for key, text in (("singular_values", ""), ("right_vectors", "as columns, ")):
            value = getattr(problem.reference, key)
            _put(group, f"reference/{key}", value, f"{text}of the stacked clients")


def _put_samples(group: h5py.Group, clients: Clients) -> None:
    """Write the clients' matrices and labels.

    Labelled clients of equal size share two HDF5 data sets, one for samples and one for labels.
    """
    if clients.labels is not None and clients.uniform and clients.gram is None:
        shape = (len(clients), *clients.shapes[0])
        stack = group.create_dataset("clients", shape, clients.dtypes[0])
        stack.attrs["description"] = "clients x samples x features"
        for i, client in enumerate(clients):
            stack[i] = client
        _put(group, "labels", clients.stacked_labels, "clients x samples")
        return
    if clients.sparse:
        refuse("a problem file")
    for i, client in enumerate(clients):
        _put(group, f"clients/{i:05d}", client, f"client {i}: samples x features")
    for i, labels in enumerate([] if clients.labels is None else clients.labels):
        _put(group, f"labels/{i:05d}", labels, f"client {i}: a label per sample")


def _put(group: h5py.Group, name: str, data: np.ndarray, description: str) -> None:
    group.create_dataset(name, data=data).attrs["description"] = description


def _read(path: str | os.PathLike[str], group: h5py.Group, file: hdf5.Opened) -> Problem:
    clients = _clients(path, group, file)
    if "samples" in group:
        rows, largest = hdf5.value(group["samples"]), group["samples"].attrs["largest_row"]
        clients.reduction = Reduction(tuple(map(int, rows)), float(largest))
    truth = None
    if "truth" in group:
        truth = Truth(*(hdf5.value(group[f"truth/{k}"]) for k in Truth._fields))
    held_out = None
    if "held_out" in group:
        held_out = _clients(path, group["held_out"], file)
    name, status, note = (group.attrs[key] for key in ("name", "status", "note"))
    problem = Problem(name, clients, status, note, truth, held_out)
    problem.setting = json.loads(group.attrs["setting"])
    # Fill the cached properties from the file.
    problem.checksum = group.attrs["checksum"]
    if truth is None and held_out is None:
        parts = (hdf5.value(group[f"reference/{k}"]) for k in Reference._fields)
        problem.reference = Reference(*parts)
    _require_fit(problem)
    return problem


def _require_fit(problem: Problem) -> None:
    """Raise an error if the shapes of clients, Gram matrix and exact answer do not fit together.

    The clients' matrices are not read.
    """
    clients = problem.clients
    d = clients.shapes[0][-1]
    for i, (shape, dtype) in enumerate(zip(clients.shapes, clients.dtypes, strict=True)):
        if len(shape) != 2 or shape[1] != d or dtype.kind not in "biuf":
            raise ValueError(f"client {i} is no real matrix with {counted(d, 'column')}")
    if clients.gram is not None and clients.gram.shape != (d, d):
        raise ValueError(f"the Gram matrix does not fit {counted(d, 'column')}")
    if problem.truth is None and problem.held_out is None:
        values, vectors = problem.reference
        if values.ndim != 1 or vectors.shape != (d, len(values)):
            raise ValueError(f"the reference does not fit {counted(d, 'column')}")


def _values(found: h5py.Dataset | h5py.Group) -> Matrices:
    """Return the clients' arrays, stored in one HDF5 data set or in one data set per client."""
    if isinstance(found, h5py.Dataset):
        return hdf5.value(found)
    return [hdf5.value(item) for item in found.values()]


def _clients(path: str | os.PathLike[str], group: h5py.Group, file: hdf5.Opened) -> Clients:
    """Return the clients in an HDF5 group, with their labels.

    If the file is large or has a Gram matrix, the file is memory-mapped, and the matrices are read
    at their first use.
    """
    gram = hdf5.value(group["gram"]) if "gram" in group else None
    labels = _values(group["labels"]) if "labels" in group else None
    found = group["clients"]
    if not file.large and gram is None:
        return Clients(_values(found), labels=labels)

    told = partial(hdf5.translate_errors, path, failure=DataError, **_WORDS)
    if isinstance(found, h5py.Dataset):
        shapes, dtypes = [found.shape[1:]] * len(found), [found.dtype] * len(found)
        whole = partial(Mapped(file, [found], told).__getitem__, 0)
        return Clients(whole, shapes, dtypes, gram, labels)
    single = list(found.values())
    shapes, dtypes = [client.shape for client in single], [client.dtype for client in single]
    return Clients(Mapped(file, single, told), shapes, dtypes, gram, labels)
