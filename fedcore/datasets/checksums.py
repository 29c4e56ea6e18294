"""Checksums of data files, and the record that spares hashing them again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from fedcore.datasets.bounded import Source
from fedcore.errors import DataError
from fedcore.files import atomic

RECORD = "fetched.json"
_CHUNK = 1 << 20


def exists(path: Path) -> bool:
    """Whether there is a file or folder; DataError when its folder may not be searched."""
    try:
        return path.exists()
    except OSError as error:
        raise DataError(
            f"{path} cannot be looked for: {error.strerror}; make its folder readable"
        ) from error


def expected(file: Mapping[str, Any]) -> tuple[str, str]:
    """Return the algorithm and the value that a registry file is checked by (sha256 before md5)."""
    algorithm = "sha256" if "sha256" in file else "md5"
    return algorithm, file[algorithm]


def stream(source: Source, sink: IO[bytes] | None = None, bar: Any = None) -> dict[str, str]:
    """Read `source` to its end, copy it to `sink`, and return its sha256 and md5 in hex."""
    sums = {"sha256": hashlib.sha256(), "md5": hashlib.md5(usedforsecurity=False)}
    while chunk := source.read(_CHUNK):
        for total in sums.values():
            total.update(chunk)
        if sink is not None:
            sink.write(chunk)
        if bar is not None:
            bar.update(len(chunk))
    return {algorithm: total.hexdigest() for algorithm, total in sums.items()}


def pairs(items: Iterable[tuple[str, str]]) -> str:
    """Return the sha256 over the sorted (file name, sha256) pairs."""
    total = hashlib.sha256()
    for name, value in sorted(items):
        total.update(f"{name} {value}\n".encode())
    return total.hexdigest()


def mismatch(path: Path, file: Mapping[str, Any], found: Mapping[str, str]) -> str | None:
    """Return a sentence when `found` is not what the registry expects, None when it is."""
    algorithm, wanted = expected(file)
    if found[algorithm] == wanted:
        return None
    return (
        f"{path} has {algorithm} {found[algorithm]} where the registry expects {wanted}: "
        "move it away and fetch again, or put the right file in its place"
    )


def read_record(folder: Path) -> dict[str, dict[str, Any]]:
    """Return what `verify` knows of the files in `folder`; empty when there is no usable record."""
    try:
        content = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write_record(folder: Path, files: Mapping[str, Mapping[str, Any]]) -> None:
    """Write ``fetched.json``, keeping what it already says of other files."""
    with atomic.replace(folder / RECORD) as temporary:
        text = json.dumps({**read_record(folder), **files}, indent=1, sort_keys=True)
        temporary.write_text(text + "\n", encoding="utf-8")


def state(path: Path, sums: Mapping[str, str]) -> dict[str, Any]:
    """Return the record of one checked file."""
    stat = path.stat()
    return {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns, **sums}


def verify(path: Path, file: Mapping[str, Any], *, trust: bool = False) -> dict[str, Any]:
    """Check one file and return its record.

    Parameters
    ----------
    path : pathlib.Path
        The file.
    file : mapping
        Its registry entry.
    trust : bool
        Take the checksums from the folder's ``fetched.json`` where it holds them together with the
        file's present size and modification time. A damage that leaves both as they were is then
        not noticed, so that whoever reads the file has it hashed.

    Returns
    -------
    dict
        ``size``, ``mtime_ns``, ``sha256`` and ``md5``.

    Raises
    ------
    DataError
        When the file cannot be read or its checksum is not the registry's.
    """
    known = read_record(path.parent).get(path.name)
    try:
        stat = path.stat()
        stamp = {"size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
        if not (
            trust
            and isinstance(known, dict)
            and stamp.items() <= known.items()
            and {"sha256", "md5"} <= known.keys()
        ):
            with open(path, "rb") as handle:
                known = stamp | stream(handle)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}") from error
    problem = mismatch(path, file, known)
    if problem:
        raise DataError(problem)
    return known
