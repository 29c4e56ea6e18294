"""Put the files of a data set below ``data/raw``: drop-in, then mirror, then download."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedcore.datasets import checksums
from fedcore.datasets.download import DownloadError, download, save
from fedcore.datasets.registry import find
from fedcore.errors import DataError


def _mirror_folder(name: str, mirror: str | os.PathLike[str] | None) -> Path | None:
    """Return the mirror's folder of a data set, None without a mirror."""
    root = os.fspath(mirror) if mirror is not None else os.environ.get("FEDCORE_MIRROR", "")
    return Path(root) / name if root else None


def _lacking(source: Mapping[str, Any], *folders: Path | None) -> list[dict[str, Any]]:
    """Return the files and folders of a variant that are in none of `folders`."""
    wanted = [*source["files"], *({"name": folder} for folder in source.get("folders", ()))]
    there = [folder for folder in folders if folder is not None]
    return [item for item in wanted if not any(checksums.exists(f / item["name"]) for f in there)]


def _sentence(
    name: str,
    source: Mapping[str, Any],
    lacking: list[dict[str, Any]],
    raw: Path,
    mirror: Path | None,
) -> str:
    """Return what a person must do to provide the files that are lacking."""
    sums = {
        f["name"]: " ".join(checksums.expected(f)) for f in lacking if "sha256" in f or "md5" in f
    }
    files = " and ".join(
        f"'{item['name']}' ({sums.get(item['name'], 'a folder')})" for item in lacking
    )
    urls = [url for item in lacking for url in item.get("urls", ())[:1]]
    how = source.get("manual") or (
        f"get it from {' and '.join(urls)}" if urls else "no address is known"
    )
    gone = mirror is not None and not checksums.exists(mirror.parent)
    return f"data set '{name}' needs {files} in {raw} or in $FEDCORE_MIRROR/{name}: {how}" + (
        f"; the mirror's folder {mirror.parent} does not exist" if mirror and gone else ""
    )


def missing(
    name: str,
    raw_dir: str | os.PathLike[str],
    *,
    mirror: str | os.PathLike[str] | None = None,
    registry: str | os.PathLike[str] | None = None,
    answers: Callable[[str], bool] | None = None,
) -> str | None:
    """Say what a person must provide before `fetch` can succeed.

    Parameters
    ----------
    name : str
        Name of the data set.
    raw_dir : path-like
        The folder ``data/raw``; files are looked for in its subfolder `name`.
    mirror, registry : path-like, optional
        Mirror folder (default: ``FEDCORE_MIRROR``) and registry file.
    answers : callable, optional
        Whether the server of an address can be reached, such as `download.answers`. Without it
        every address counts, and no network is touched.

    Returns
    -------
    str or None
        One sentence with the files, their checksums, where to get them and the folder to put them
        in; None when some variant is already there, in the mirror, or has addresses that answer.
    """
    entry, _ = find(name, registry)
    if entry is None:
        return None
    raw, there = Path(raw_dir) / name, _mirror_folder(name, mirror)
    for source in entry["sources"]:
        lacking = _lacking(source, raw, there)
        if all(
            any(answers is None or answers(u) for u in item.get("urls", ())) for item in lacking
        ):
            return None
    first = entry["sources"][0]
    lacking = _lacking(first, raw, there)
    silent = answers is not None and all(item.get("urls") for item in lacking)
    return _sentence(name, first, lacking, raw, there) + (
        "; no answer from there now" if silent else ""
    )


def _copy(origin: Path, path: Path, file: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a file from the mirror, checking it on the way."""
    try:
        with open(origin, "rb") as source:
            return save(source, path, file, None)
    except OSError as error:
        raise DataError(f"{origin} cannot be copied to {path}: {error.strerror}") from error
    except DataError as error:
        raise DataError(f"{origin} is not the file of the registry: {error}; replace it") from error


def _collect(
    source: Mapping[str, Any], raw: Path, mirror: Path | None, progress: bool
) -> list[Path]:
    """Bring every file and folder of one variant below `raw` and record the checksums.

    Folders that it made and that stayed empty are removed when it fails.
    """
    made = [folder for folder in (raw, *raw.parents) if not checksums.exists(folder)]
    try:
        raw.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"the folder {raw} cannot be made: {error.strerror}") from error
    try:
        return _bring(source, raw, mirror, progress)
    except BaseException:
        with contextlib.suppress(OSError):  # one that is not empty ends it
            for folder in made:
                folder.rmdir()
        raise


def _bring(source: Mapping[str, Any], raw: Path, mirror: Path | None, progress: bool) -> list[Path]:
    paths = []
    for file in source["files"]:
        path = raw / file["name"]
        origin = mirror / file["name"] if mirror is not None else None
        if checksums.exists(path):
            state = checksums.verify(path, file, trust=True)
        elif origin is not None and checksums.exists(origin):
            state = _copy(origin, path, file)
        else:
            state = download(path, file, progress)
        if checksums.read_record(raw).get(path.name) != state:
            _record(raw, path.name, state)
        paths.append(path)
    for folder in source.get("folders", ()):
        if not checksums.exists(raw / folder) and mirror is not None:
            _link(raw / folder, (mirror / folder).resolve())
        paths.append(raw / folder)
    return paths


def _link(path: Path, folder: Path) -> None:
    try:
        path.symlink_to(folder, target_is_directory=True)
    except OSError as error:
        raise DataError(f"{path} cannot be linked to {folder}: {error.strerror}") from error


def _record(raw: Path, name: str, state: Mapping[str, Any]) -> None:
    try:
        checksums.write_record(raw, {name: state})
    except OSError as error:
        raise DataError(
            f"{raw / name} is right, but {raw / checksums.RECORD}, which says so, cannot be "
            f"written: {error.strerror}; make the folder writable"
        ) from error


def fetch(
    name: str,
    raw_dir: str | os.PathLike[str],
    *,
    mirror: str | os.PathLike[str] | None = None,
    progress: bool = True,
    registry: str | os.PathLike[str] | None = None,
) -> list[Path]:
    """Provide the files of a data set below ``raw_dir/name``, each checked against the registry.

    A variant that is whole below `raw_dir` is taken first, then one that is whole together with the
    mirror, then the variants that can be downloaded; within each, in the registry's order.

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

    Returns
    -------
    list of pathlib.Path
        The files (and folders) of the variant; empty for an entry point's data set.

    Raises
    ------
    DataError
        When a file has the wrong checksum (a file that a person put there is never replaced) or
        cannot be had; the message says what to do.
    ConfigError
        When the name is unknown.
    """
    entry, _ = find(name, registry)
    if entry is None:  # its package provides the files, or a person does
        checksums.write_record(Path(raw_dir) / name, {})
        return []
    raw, there = Path(raw_dir) / name, _mirror_folder(name, mirror)
    for folders in ((raw,), (raw, there)):
        for source in entry["sources"]:
            if not _lacking(source, *folders):
                return _collect(source, raw, there, progress)
    problem = missing(name, raw_dir, mirror=mirror, registry=registry)
    if problem:
        raise DataError(problem)
    failures = []
    for source in entry["sources"]:
        if all(item.get("urls") for item in _lacking(source, raw, there)):
            try:
                return _collect(source, raw, there, progress)
            except DownloadError as error:
                failures.append(f"{error}")
    first = entry["sources"][0]
    raise DataError(
        f"{'; '.join(failures)}; {_sentence(name, first, _lacking(first, raw, there), raw, there)}"
    )
