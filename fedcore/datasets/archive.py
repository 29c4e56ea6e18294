"""Read members of zip archives by name, with a limit on the size of each member."""

from __future__ import annotations

import contextlib
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from fedcore.datasets import bounded
from fedcore.errors import DataError


class Archive:
    """An open zip archive, which the function `opened` yields.

    Attributes
    ----------
    path : pathlib.Path
    names : list of str
        Names of all members, with their folders, in the order of the archive.
    """

    def __init__(self, path: Path, file: zipfile.ZipFile) -> None:
        self.path, self._file = path, file
        self.names = file.namelist()
        self._full = {name.rpartition("/")[2]: name for name in reversed(self.names)}

    def full_name(self, name: str) -> str:
        """Return the member `name`'s name with its folder; raise a DataError if there is none."""
        if name not in self._full:
            raise DataError(f"{self.path} has no member {name}")
        return self._full[name]

    @contextlib.contextmanager
    def stream(self, name: str, most: int) -> Iterator[IO[bytes]]:
        """Open a member by its full name; raise a DataError if it has more than `most` bytes.

        The stream yields at most the number of bytes that the archive states for the member.
        """
        if self._file.getinfo(name).file_size > most:
            says = f"{name} holds more than the {most} bytes that are allowed"
            raise DataError(f"{self.path}: {says}")
        with self._file.open(name) as file:
            yield file

    def content(self, name: str, most: int = bounded.MOST_BYTES) -> bytes:
        """Return the bytes of the member with the full name `name`."""
        with self.stream(name, most) as file:
            return file.read()


@contextlib.contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """Open a zip archive; if the archive is damaged, raise a `DataError` with its path."""
    try:
        with zipfile.ZipFile(path) as file:
            yield Archive(path, file)
    except (
        *bounded.ERRORS, zipfile.BadZipFile, NotImplementedError, RuntimeError, zlib.error,
    ) as error:  # fmt: skip
        raise bounded.unreadable(path, error) from error
