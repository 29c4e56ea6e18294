"""Check that data files exist and have the right checksums."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from fedcore.datasets.bounded import Bounded, Source, TooMuch
from fedcore.errors import DataError
from fedcore.files import atomic

_CHUNK = 1 << 20


def exists(path: Path) -> bool:
    """Return whether a path exists, or raise a DataError if its folder cannot be searched."""
    try:
        return path.exists()
    except OSError as error:
        raise DataError(
            f"{path} cannot be looked for: {error.strerror}; make its folder readable"
        ) from error


def expected(file: Mapping[str, Any]) -> tuple[str, str]:
    """Return algorithm and value of a file's registered checksum, sha256 if known, else md5."""
    algorithm = "sha256" if "sha256" in file else "md5"
    return algorithm, file[algorithm]


@contextmanager
def open_ordinary(path: Path) -> Iterator[IO[bytes]]:
    """Open a regular file; refuse a pipe or device, because reading one may never end."""

    def open_at_once(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))  # Windows has no such pipes

    with open(path, "rb", opener=open_at_once) as source:
        if not stat.S_ISREG(os.fstat(source.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is no ordinary file")
        yield source


def sums_of(path: Path, file: Mapping[str, Any]) -> dict[str, str]:
    """Return a file's sha256, and its checksum by the algorithm that its registry entry names."""
    try:
        with open_ordinary(path) as source:
            return _sums(source, file)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error


def verify(path: Path, file: Mapping[str, Any]) -> str:
    """Check a file against its registered checksum, and return its sha256 in hex."""
    sums = sums_of(path, file)
    if difference := _difference(sums, file):
        raise DataError(
            f"{path} has {difference}: move it away and fetch again, or put the right file in its "
            "place"
        )
    return sums["sha256"]


def save(source: Source, path: Path, file: Mapping[str, Any], bar: Any = None) -> str:
    """Write a file completely or not at all, and return its sha256 in hex.

    Parameters
    ----------
    source : object with ``read(size) -> bytes``
        Stream with the content. A stream with more bytes than the registry states is an error.
    path : pathlib.Path
    file : mapping
        Registry entry of the file.
    bar : tqdm, optional
    """
    size = file.get("bytes")
    with atomic.replace(path) as temporary:
        try:
            with open(temporary, "wb") as sink:
                sums = _sums(Bounded(source, size) if size else source, file, sink, bar)
        except TooMuch as error:
            raise DataError(f"it has more than the {size} bytes of the registry") from error
        if difference := _difference(sums, file):
            raise DataError(f"it has {difference}")
    return sums["sha256"]


def _sums(
    source: Source, file: Mapping[str, Any], sink: IO[bytes] | None = None, bar: Any = None
) -> dict[str, str]:
    """Read `source` to its end, copy it to `sink`, and return its checksums by algorithm."""
    names = {"sha256", expected(file)[0]}
    # Machines under FIPS refuse md5 for security.
    sums = {name: hashlib.new(name, usedforsecurity=False) for name in names}
    while chunk := source.read(_CHUNK):
        for total in sums.values():
            total.update(chunk)
        if sink is not None:
            sink.write(chunk)
        if bar is not None:
            bar.update(len(chunk))
    return {name: total.hexdigest() for name, total in sums.items()}


def _difference(sums: Mapping[str, str], file: Mapping[str, Any]) -> str:
    """Return a text that describes a wrong checksum, or an empty text if the checksum is right."""
    algorithm, wanted = expected(file)
    if sums[algorithm] == wanted:
        return ""
    return f"{algorithm} {sums[algorithm]} where the registry expects {wanted}"
