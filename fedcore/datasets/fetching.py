"""Copy or download the files of a data set into ``data/raw``."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedcore.datasets.download import DownloadError, download
from fedcore.datasets.presence import mirror_folder, missing, to_provide, whole
from fedcore.datasets.registry import find
from fedcore.datasets.verification import exists, expected, open_ordinary, save, sums_of, verify
from fedcore.errors import DataError
from fedcore.files import atomic

RECORD = "fetched.json"


def fetch(
    name: str,
    raw_dir: str | os.PathLike[str],
    *,
    mirror: str | os.PathLike[str] | None = None,
    progress: bool = True,
    registry: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Put the files of a data set into ``raw_dir/name``, and check their checksums.

    The checksums are in the registry, a file with the URLs and checksums of all data sets. An
    existing file is kept. A missing file is copied from the folder `mirror` or downloaded. The file
    ``fetched.json`` in ``raw_dir/name`` lists all files with their sha256.

    Parameters
    ----------
    name : str
    raw_dir : path-like
        Folder ``data/raw``.
    mirror : path-like, optional
        Folder to copy files from, with one subfolder per data set (default: the environment
        variable ``FEDCORE_MIRROR``).
    progress : bool
        Whether to show a progress bar if standard error is a terminal.
    registry : path-like, optional
        File with URLs and checksums of all data sets (default: fedcore's own).
    """
    entry, _ = find(name, registry)
    raw, there = Path(raw_dir) / name, mirror_folder(name, mirror)
    if entry is None:  # its package provides the files, or a person does
        _record(raw, {})
        return []
    problem = missing(name, raw_dir, mirror=mirror, registry=registry)
    if problem:
        raise DataError(problem)
    form = whole(entry, raw) or whole(entry, raw, there) or entry
    _require_checksums(form, raw, there)
    try:
        return _collect(form, raw, there, progress)
    except DownloadError as error:
        raise DataError(f"{error}; {to_provide(name, entry, raw, there)}") from error


def _require_checksums(form: Mapping[str, Any], *folders: Path | None) -> None:
    """Raise an error if a checksum in the registry is all zeros; say which checksum to write."""
    for file in form["files"]:
        algorithm, wanted = expected(file)
        if not wanted.strip("0"):
            places = [folder / file["name"] for folder in folders if folder is not None]
            own = [f"{sums_of(p, file)[algorithm]} of {p}" for p in places if exists(p)]
            raise DataError(
                f"the registry has zeros as {algorithm} of '{file['name']}': replace the zeros by "
                + (own or [f"the {algorithm} that its publisher states"])[0]
            )


def _collect(form: Mapping[str, Any], raw: Path, mirror: Path | None, progress: bool) -> list[Path]:
    """Put every file of a data set into `raw`, and return the paths.

    If the function fails, it removes the empty folders that it created.
    """
    made = [folder for folder in (raw, *raw.parents) if not exists(folder)]
    try:
        raw.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"the folder {raw} cannot be made: {error.strerror}") from error
    try:
        sums = {f["name"]: _bring(f, raw, mirror, progress) for f in form["files"]}
    except BaseException:
        with contextlib.suppress(OSError):  # at a folder that is not empty
            for folder in made:
                folder.rmdir()
        raise
    _record(raw, sums)
    return [raw / name for name in sums]


def _bring(file: Mapping[str, Any], raw: Path, mirror: Path | None, progress: bool) -> str:
    """Check a file if it exists, or else copy or download it; return the file's sha256."""
    path = raw / file["name"]
    if exists(path):
        return verify(path, file)
    if mirror is None or not exists(mirror / file["name"]):
        return download(path, file, progress)
    origin = mirror / file["name"]
    try:
        with open_ordinary(origin) as source:
            return save(source, path, file)
    except OSError as error:
        raise DataError(f"{origin} cannot be copied to {path}: {error.strerror}") from error
    except DataError as error:
        raise DataError(f"{origin} is not the file of the registry: {error}; replace it") from error


def _record(raw: Path, sums: Mapping[str, str]) -> None:
    """Write ``fetched.json`` only if its text changes, because Snakemake compares file times."""
    path, text = raw / RECORD, f"{json.dumps(sums, indent=1, sort_keys=True)}\n".encode()
    try:
        if not path.is_file() or path.read_bytes() != text:
            with atomic.replace(path) as temporary:
                temporary.write_bytes(text)
    except OSError as error:
        raise DataError(
            f"the files in {raw} are right, but their record {path} cannot be written: "
            f"{error.strerror}; make the folder writable"
        ) from error
