"""HDF5 files that carry a seal: the sha256 of their own bytes, checked before HDF5 reads them.

HDF5 notices few damages by itself, and a damaged structure can bring the process down. The seal
stands in the file's user block, the 512 bytes before its content that HDF5 leaves to applications;
any HDF5 tool opens a sealed file as usual.

Large arrays may be left out of the seal and have checksums of their own, so that whoever needs
one of them does not read the others.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import h5py
import numpy as np

from fedcore.errors import FedcoreError
from fedcore.files import atomic

Content = TypeVar("Content")

BLOCK = 512
LABEL = b"fedcore sha256 of the bytes from 512 on: "
APART = b", without the arrays listed from byte "
LARGE = 1 << 20  # bytes from which an array has a checksum of its own
PIECE = 1 << 20
_SHOWN = 200  # characters of somebody else's error


class BrokenSeal(OSError):
    """The file was written by `create` and is damaged."""


class Foreign(BrokenSeal):
    """The file was not written by `create`, as far as one can tell; it may be a user's own."""


@contextlib.contextmanager
def create(path: str | os.PathLike[str], *, apart: bool = False) -> Iterator[h5py.File]:
    """Open a new file for writing; when the block ends it is sealed, flushed and renamed.

    Parameters
    ----------
    path : path-like
    apart : bool
        Give every large array a checksum of its own, which `array` checks when it is read; all
        else is sealed. The checksums stand behind the end of what HDF5 knows of.

    Yields
    ------
    h5py.File
    """
    with atomic.replace(path) as temporary:
        with h5py.File(temporary, "w", userblock_size=BLOCK) as file:
            yield file
            spans = _large(file) if apart else []
        if not spans:
            seal = LABEL + _digest(temporary)
        else:
            start = temporary.stat().st_size
            table = [[at, size, _digest(temporary, at, at + size).decode()] for at, size in spans]
            with open(temporary, "ab") as raw:
                raw.write(json.dumps(table).encode())
            seal = LABEL + _outside(temporary, spans) + APART + str(start).encode()
        with open(temporary, "r+b") as raw:
            raw.write(seal)


@contextlib.contextmanager
def read(path: str | os.PathLike[str]) -> Iterator[h5py.File]:
    """Check the seal and open the file for reading; large arrays may have to be read by `array`.

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
    table = _table(path)
    found = _outside(path, [(at, size) for at, size, _ in table]) if table else _digest(path)
    if seal.partition(APART)[0] != LABEL + found:
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


def array(dataset: h5py.Dataset) -> np.ndarray:
    """Read an array of a file that `read` has opened, and check it if it has its own checksum.

    Raises
    ------
    BrokenSeal
    """
    values = dataset[()]
    sums = {at: value for at, _, value in _table(dataset.file.filename)}
    wanted = sums.get(dataset.id.get_offset())
    if wanted and hashlib.sha256(np.ascontiguousarray(values).data).hexdigest() != wanted:
        raise BrokenSeal(
            f"the checksum of its array {dataset.name} differs from the one at its end"
        )
    return values


def _large(file: h5py.File) -> list[tuple[int, int]]:
    """Offset and size in bytes of every large array that lies in one piece, in their order."""
    file.flush()
    found: list[tuple[int, int]] = []

    def note(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset) and item.chunks is None:
            if item.id.get_storage_size() >= LARGE:
                found.append((item.id.get_offset(), item.id.get_storage_size()))

    file.visititems(note)
    return sorted(found)


def _table(path: str | os.PathLike[str]) -> list[tuple[int, int, str]]:
    """Offset, size and sha256 of the arrays that are not under the seal; empty without any."""
    with open(path, "rb") as raw:
        _, apart, start = raw.read(BLOCK).rstrip(b"\0").partition(APART)
        if not apart:
            return []
        try:
            raw.seek(int(start))
            table = [(int(at), int(size), str(value)) for at, size, value in json.loads(raw.read())]
        except (ValueError, TypeError, OverflowError, RecursionError, OSError):
            raise BrokenSeal("its checksum differs from the one in its head") from None
    ends = [BLOCK]
    for at, size, _ in table:
        if at < ends[-1] or size < 0:
            raise BrokenSeal("its checksum differs from the one in its head")
        ends.append(at + size)
    return table


def _outside(path: str | os.PathLike[str], spans: Sequence[tuple[int, int]]) -> bytes:
    """Digest of all that lies outside of `spans`."""
    starts = [BLOCK, *(at + size for at, size in spans)]
    ends = [*(at for at, _ in spans), Path(path).stat().st_size]
    digests = [_digest(path, *piece) for piece in zip(starts, ends, strict=True)]
    return hashlib.sha256(b"".join(digests)).hexdigest().encode()


def _digest(path: str | os.PathLike[str], start: int = BLOCK, end: int | None = None) -> bytes:
    """Digest of a file from one byte to another, by default from the head's end to its own."""
    with open(Path(path), "rb") as raw:
        raw.seek(start)
        if end is None:
            return hashlib.file_digest(raw, "sha256").hexdigest().encode()
        digest, left = hashlib.sha256(), end - start
        while left > 0 and (piece := raw.read(min(left, PIECE))):
            digest.update(piece)
            left -= len(piece)
        return digest.hexdigest().encode()
