"""HDF5 files that carry a seal: the sha256 of their own bytes, checked before HDF5 reads them.

HDF5 notices few damages by itself, and a damaged structure can bring the process down. The seal
stands in the file's user block, the 512 bytes before its content that HDF5 leaves to applications;
any HDF5 tool opens a sealed file as usual.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import h5py

from fedcore import atomic
from fedcore.errors import FedcoreError

Content = TypeVar("Content")

BLOCK = 512
LABEL = b"fedcore sha256 of the bytes from 512 on: "
_SHOWN = 200  # characters of somebody else's error


class BrokenSeal(OSError):
    """The file was written by `create` and is damaged."""


class Foreign(BrokenSeal):
    """The file was not written by `create`, as far as one can tell; it may be a user's own."""


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
        One clause that says what is wrong with the file; `Foreign` if fedcore did not write it.
    """
    try:
        with open(path, "rb") as raw:
            seal = raw.read(BLOCK).rstrip(b"\0")
    except IsADirectoryError as error:
        raise Foreign("it is a folder") from error
    if not seal.startswith(LABEL):
        raise Foreign("it is cut off or was not written by fedcore")
    if seal != LABEL + _digest(path):
        raise BrokenSeal("its checksum differs from the one in its head")
    with h5py.File(path, "r") as file:
        _refuse_foreign(file, os.stat(path).st_size)
        yield file


def load(
    path: str | os.PathLike[str],
    decode: Callable[[h5py.File], Content],
    *,
    kind: str,
    first: str,
    again: str,
    failure: type[FedcoreError],
) -> Content:
    """Return what `decode` makes of a sealed file, or end in one sentence.

    Only of a file that fedcore wrote, and that is damaged, the sentence says to delete it.

    Parameters
    ----------
    path : path-like
    decode : callable
        ``file -> content``. Whatever it raises, the file does not hold what it should.
    kind : str
        What the file should be: "history", "problem".
    first, again : str
        What to do when it is missing: "run its cell", and when it is damaged: "run again".
    failure : type of FedcoreError

    Raises
    ------
    failure
        When the file is missing, cut off, damaged, somebody else's, or of another content; one that
        `decode` raises itself passes.
    """
    try:
        with read(path) as file:
            return decode(file)
    except failure:
        raise
    except FileNotFoundError as error:
        raise failure(f"{path} does not exist; {first} first") from error
    except Foreign as error:
        raise failure(f"{path} is not a whole {kind} file of fedcore ({error})") from error
    except BrokenSeal as error:
        raise failure(
            f"{path} is not a whole {kind} file ({error}); delete it and {again}"
        ) from error
    except PermissionError as error:
        raise failure(f"{path} cannot be read: {error.strerror}") from error
    except Exception as error:  # the seal is good, so that whoever wrote this meant something else
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:_SHOWN]
        raise failure(f"{path} is not a whole {kind} file of fedcore ({reason})") from error


def _refuse_foreign(file: h5py.File, size: int) -> None:
    """Refuse what `create` never writes: links, data kept elsewhere, more data than the file.

    HDF5 follows links and external storage to other files, whose bytes would pass for data.
    """
    todo: list[h5py.Group] = [file]
    seen = {h5py.h5o.get_info(file.id).addr}
    while todo:
        group = todo.pop()
        for name in group:
            place = f"{group.name.rstrip('/')}/{name}"
            if not isinstance(group.get(name, getlink=True), h5py.HardLink):
                raise Foreign(f"{place} is a link")
            item = group[name]
            address = h5py.h5o.get_info(item.id).addr
            if address in seen:
                raise Foreign(f"{place} is a second name of something")
            seen.add(address)
            if isinstance(item, h5py.Group):
                todo.append(item)
            elif not _is_plain(item, size):
                raise Foreign(f"{place} is not stored as plain numbers in the file")


def _is_plain(item: h5py.HLObject, size: int) -> bool:
    """Whether an object is a dataset of numbers that all lie in the file."""
    if not isinstance(item, h5py.Dataset) or item.shape is None or item.dtype.kind not in "biufc":
        return False
    layout = item.id.get_create_plist().get_layout()
    wanted = math.prod(item.shape) * item.dtype.itemsize
    return (
        layout in (h5py.h5d.CONTIGUOUS, h5py.h5d.COMPACT)
        and item.external is None
        and item.id.get_storage_size() == wanted <= size
    )


def _digest(path: str | os.PathLike[str]) -> bytes:
    with open(Path(path), "rb") as raw:
        raw.seek(BLOCK)
        return hashlib.file_digest(raw, "sha256").hexdigest().encode()
