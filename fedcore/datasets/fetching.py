"""Put the files of a data set below ``data/raw``, from a mirror or by download."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedcore.datasets.download import DownloadError, download
from fedcore.datasets.presence import lacking, mirror_folder, missing, to_provide
from fedcore.datasets.registry import find
from fedcore.datasets.verification import exists, save, verify
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
    """Provide the files of a data set below ``raw_dir/name``, each checked against the registry.

    A variant whose files are all below `raw_dir` comes first, then one whose files are all there or
    in the mirror, then one that can be downloaded; among equals the registry's order decides.
    ``fetched.json``, beside the files, lists the checked files with their sha256.

    Parameters
    ----------
    name : str
        Name of the data set.
    raw_dir : path-like
        The folder ``data/raw``.
    mirror : path-like, optional
        Folder with one subfolder per data set; default: the environment's ``FEDCORE_MIRROR``.
    progress : bool
        Show a bar on standard error when that is a terminal.
    registry : path-like, optional
        Registry file.
    """
    entry, _ = find(name, registry)
    raw, there = Path(raw_dir) / name, mirror_folder(name, mirror)
    if entry is None:  # its package provides the files, or a person does
        _record(raw, {})
        return []
    for folders in ((raw,), (raw, there)):
        for source in entry["sources"]:
            if not lacking(source, *folders):
                return _collect(source, raw, there, progress)
    problem = missing(name, raw_dir, mirror=mirror, registry=registry)
    if problem:
        raise DataError(problem)
    failures = []
    for source in entry["sources"]:
        if all(item.get("urls") for item in lacking(source, raw, there)):
            try:
                return _collect(source, raw, there, progress)
            except DownloadError as error:
                failures.append(f"{error}")
    raise DataError(f"{'; '.join(failures)}; {to_provide(name, entry['sources'][0], raw, there)}")


def _collect(
    source: Mapping[str, Any], raw: Path, mirror: Path | None, progress: bool
) -> list[Path]:
    """Put every file and folder of one variant below `raw`.

    After a failure the empty folders that it made are removed.
    """
    made = [folder for folder in (raw, *raw.parents) if not exists(folder)]
    try:
        raw.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"the folder {raw} cannot be made: {error.strerror}") from error
    try:
        sums = {f["name"]: _bring(f, raw, mirror, progress) for f in source["files"]}
        for folder in source.get("folders", ()):
            if not exists(raw / folder) and mirror is not None:
                _link(raw / folder, (mirror / folder).resolve())
    except BaseException:
        with contextlib.suppress(OSError):  # at a folder that is not empty
            for folder in made:
                folder.rmdir()
        raise
    _record(raw, sums)
    return [raw / name for name in (*sums, *source.get("folders", ()))]


def _bring(file: Mapping[str, Any], raw: Path, mirror: Path | None, progress: bool) -> str:
    """Check a file that is there, else copy or download it; return its sha256."""
    path = raw / file["name"]
    if exists(path):
        return verify(path, file)
    if mirror is None or not exists(mirror / file["name"]):
        return download(path, file, progress)
    origin = mirror / file["name"]
    try:
        with open(origin, "rb") as source:
            return save(source, path, file)
    except OSError as error:
        raise DataError(f"{origin} cannot be copied to {path}: {error.strerror}") from error
    except DataError as error:
        raise DataError(f"{origin} is not the file of the registry: {error}; replace it") from error


def _link(path: Path, folder: Path) -> None:
    try:
        path.symlink_to(folder, target_is_directory=True)
    except OSError as error:
        raise DataError(f"{path} cannot be linked to {folder}: {error.strerror}") from error


def _record(raw: Path, sums: Mapping[str, str]) -> None:
    """Write the record of the checked files if it has changed; the workflow looks at its time."""
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
