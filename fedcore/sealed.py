"""HDF5 files that carry a seal: the sha256 of their own bytes, checked before HDF5 reads them.

HDF5 notices few damages by itself, and a damaged structure can bring the process down. The seal
stands in the file's user block, the 512 bytes before its content that HDF5 leaves to applications;
any HDF5 tool opens a sealed file as usual.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import h5py

from fedcore import atomic

BLOCK = 512
LABEL = b"fedcore sha256 of the bytes from 512 on: "


class BrokenSeal(OSError):
    """The file is cut off, damaged, or was not written by `create`."""


@contextlib.contextmanager
def create(path: str | os.PathLike[str]) -> Iterator[h5py.File]:
    """Open a new file for writing; when the block ends it is sealed, flushed and renamed.

    Yields
    ------
    h5py.File
    """
    with atomic.replace(path) as temporary:
        with h5py.File(temporary, "w", userblock_size=BLOCK) as file:
            yield file
        seal = LABEL + _digest(temporary)
        with open(temporary, "r+b") as raw:
            raw.write(seal)


@contextlib.contextmanager
def read(path: str | os.PathLike[str]) -> Iterator[h5py.File]:
    """Check the seal and open the file for reading.

    Yields
    ------
    h5py.File

    Raises
    ------
    FileNotFoundError
    BrokenSeal
        One clause that says what is wrong with the file.
    """
    with open(path, "rb") as raw:
        seal = raw.read(BLOCK).rstrip(b"\0")
    if not seal.startswith(LABEL):
        raise BrokenSeal("it is cut off or was not written by fedcore")
    if seal != LABEL + _digest(path):
        raise BrokenSeal("its checksum differs from the one in its head")
    with h5py.File(path, "r") as file:
        yield file


def _digest(path: str | os.PathLike[str]) -> bytes:
    with open(Path(path), "rb") as raw:
        raw.seek(BLOCK)
        return hashlib.file_digest(raw, "sha256").hexdigest().encode()
