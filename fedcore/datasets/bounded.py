"""Read at most a given number of bytes from a server, a file or an archive."""

from __future__ import annotations

import gzip
import io
import math
import zipfile
import zlib
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Protocol, cast

import numpy as np
from numpy.lib import format as npy

from fedcore.errors import DataError

# Bytes: several times the decompressed size of CIFAR's archives, the largest files read this way.
MOST = 2**30
WIDEST = 2**25  # features, of which a run has several numbers each
DENSEST = 100  # bytes of arrays for each byte of their file, where there are more than MOST
_CHUNK = 2**20
ERRORS = (OSError, EOFError, zlib.error)  # raised by a file that cannot be read


class Source(Protocol):
    """What `Bounded` reads from."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, none at the end."""
        ...


class TooMuch(OSError):
    """There is more to read than the limit."""


class Bounded(io.RawIOBase):
    """Readable stream that raises `TooMuch` as soon as its source gives more than `limit` bytes."""

    def __init__(self, source: Source, limit: int) -> None:
        self._source, self._limit, self._left = source, limit, limit

    def read(self, size: int | None = -1, /) -> bytes:
        """Return at most `size` bytes, or all that are left; none at the end."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_CHUNK), b""))
        chunk = self._source.read(min(size, self._left + 1))
        self._left -= len(chunk)
        if self._left < 0:
            raise TooMuch(f"it holds more than the {self._limit} bytes that are allowed")
        return chunk


def content(path: Path) -> bytes:
    """Return a file's content, decompressed if it begins like a gzip file."""
    try:
        with opened(path) as stream:
            return Bounded(stream, MOST).read()
    except ERRORS as error:
        raise unreadable(path, error) from error


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading, through a decompressor if it begins like a gzip file."""
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path)) if zipped else open(path, "rb")


def unreadable(path: Path, error: Exception) -> DataError:
    """Return the error that says that a raw file is damaged, and what to do."""
    reason = " ".join(str(error).split())
    says = f"{path} cannot be read ({reason}): move it away and fetch again"
    return DataError(says, file=path)


def heads(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Return shape and type of every array of an NPZ file by its name; that of an NPY file is x.

    Nothing but the arrays' heads is read. Call it before `numpy.load`.
    """
    found = {}
    with ExitStack() as files:
        archive = files.enter_context(zipfile.ZipFile(path)) if zipfile.is_zipfile(path) else None
        for name in archive.namelist() if archive else ["x"]:
            file = files.enter_context(archive.open(name) if archive else open(path, "rb"))
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = read(file)
            claimed = math.prod(shape) * dtype.itemsize
            has = archive.getinfo(name).file_size if archive else path.stat().st_size
            if claimed > has and not dtype.hasobject:
                says = f"{path} says that it holds {claimed} bytes and has {has}"
                raise DataError(f"{says}: write it anew")
            found[name.removesuffix(".npy")] = shape, dtype
    require_size(path, sum(math.prod(shape) * dtype.itemsize for shape, dtype in found.values()))
    return found


def require_size(path: Path | str, total: int) -> None:
    """Refuse a table that is far larger than its file; call it before anything of it is made."""
    size = Path(path).stat().st_size
    if total > max(MOST, DENSEST * size):
        says = f"{path} holds {total} bytes in {size}: save it uncompressed (numpy.savez)"
        raise DataError(f"{says}, or sparse (scipy.sparse.save_npz)")


def require_shape(path: Path | str, rows: int, columns: int) -> None:
    """Refuse too many rows or columns for a sparse table, before anything so large is made."""
    if columns > WIDEST:
        says = f"{path} says that it has {columns} features, and {WIDEST} can be read"
        raise DataError(f"{says}: number those that occur anew, from 1 on")
    require_size(path, 8 * rows)
