"""Limit the number of bytes that are read from a server, a file or an archive."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import IO, Protocol, cast

from fedcore.errors import DataError

# Bytes: several times the decompressed size of CIFAR's archives, the largest files read this way.
MOST_BYTES = 2**30
_CHUNK = 2**20
ERRORS = (OSError, EOFError, zlib.error)  # raised by a file that cannot be read


class Source(Protocol):
    """Stream from which `Bounded` reads."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, or no bytes at the end of the stream."""
        ...


class TooMuch(OSError):
    """Raised if a stream has more bytes than the limit."""


class Bounded(io.RawIOBase):
    """Readable stream that raises `TooMuch` if its source has more than `limit` bytes."""

    def __init__(self, source: Source, limit: int) -> None:
        self._source, self._limit, self._left = source, limit, limit

    def read(self, size: int | None = -1, /) -> bytes:
        """Return at most `size` bytes, or all that remain if `size` is None or negative."""
        if size is None or size < 0:
            return b"".join(iter(lambda: self.read(_CHUNK), b""))
        chunk = self._source.read(min(size, self._left + 1))
        self._left -= len(chunk)
        if self._left < 0:
            raise TooMuch(f"it holds more than the {self._limit} bytes that are allowed")
        return chunk


def content(path: Path) -> bytes:
    """Return the content of a file, decompressed if it is a gzip file."""
    try:
        with opened(path) as stream:
            return Bounded(stream, MOST_BYTES).read()
    except ERRORS as error:
        raise unreadable(path, error) from error


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading, and decompress it if it is a gzip file."""
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return cast(IO[bytes], gzip.open(path)) if zipped else open(path, "rb")


def unreadable(path: Path, error: Exception) -> DataError:
    """Make an error that says why a data file cannot be read, and what to do about it."""
    reason = " ".join(str(error).split())
    return DataError(f"{path} cannot be read ({reason}): move it away and fetch again")
