"""The clients of one rank, read from a problem file without those of the others."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import h5py

from fedcore.errors import DataError
from fedcore.files import hdf5
from fedcore.files.mapping import Mapped
from fedcore.problems.clients import Clients, Matrices

_WORDS = {"kind": "problem", "first": "make the problem", "again": "make it again"}


def share(path: str | os.PathLike[str], draw: int, start: int, stop: int) -> Clients:
    """Read the clients from `start` to before `stop` of one draw of a problem.

    Of a large file only their bytes are read, and checked, each client's when it is first used. A
    file that `fedcore.files.hdf5` checks as a whole is read for that, and only they are kept.

    Raises
    ------
    DataError
        When the file is missing or damaged, or has no such clients.
    """
    told = partial(hdf5.translate_errors, path, failure=DataError, **_WORDS)

    def decode(file: hdf5.Opened) -> Clients:
        group = list(file["draws"].values())[draw] if "draws" in file else file
        labels = _part(group["labels"], start, stop) if "labels" in group else None
        stored = group["clients"]
        if file.pieces is None or isinstance(stored, h5py.Dataset):
            return Clients(_part(stored, start, stop), labels=labels)
        found = list(stored.values())[start:stop]
        shapes, dtypes = [c.shape for c in found], [c.dtype for c in found]
        return Clients(Mapped(file.pieces, found, told), shapes, dtypes, labels=labels)

    return hdf5.load(path, decode, failure=DataError, **_WORDS)


def _part(stored: Any, start: int, stop: int) -> Matrices:
    """Return some clients' arrays of a dataset with an axis of clients, or of a dataset each."""
    if isinstance(stored, h5py.Dataset):
        return stored[start:stop]
    return [item[()] for item in list(stored.values())[start:stop]]
