"""Checksums that reveal damage when a table, a figure or the workflow's plan is read.

The hidden file ``.<name>.sha256`` contains the checksum of ``<name>``, in the format of
``sha256sum``. A file without a checksum, such as a table of another program, is accepted.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from fedcore.errors import DataError

ENDING = ".sha256"


def file_sha256(path: str | os.PathLike[str]) -> str:
    """Return the sha256 of a file in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def place(path: str | os.PathLike[str]) -> Path:
    """Return the path of the file that contains the checksum of `path`."""
    return Path(path).with_name(f".{Path(path).name}{ENDING}")


def write(path: str | os.PathLike[str], value: str) -> None:
    """Write the checksum `value` of a file into a hidden file beside it."""
    place(path).write_text(f"{value}  {Path(path).name}\n", encoding="utf-8")


def differs(path: str | os.PathLike[str]) -> bool:
    """Return whether a file contradicts its checksum; False if file or checksum is missing."""
    try:
        known = place(path).read_bytes()
        return known != f"{file_sha256(path)}  {Path(path).name}\n".encode()
    except OSError:  # no file or no checksum, or not readable: the file's reader says so
        return False


def require(path: str | os.PathLike[str], noun: str) -> None:
    """Raise an error if a file contradicts its recorded checksum."""
    if differs(path):
        raise DataError(
            f"{noun} {path} is damaged or was edited: it does not have the checksum in "
            f"{place(path).name}; delete it, and run again"
        )
