"""Find the missing files of a data set, and say which files a person must provide."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedcore.datasets.registry import find, forms
from fedcore.datasets.verification import exists, expected


def mirror_folder(name: str, mirror: str | os.PathLike[str] | None) -> Path | None:
    """Return a data set's folder in the mirror (a folder to copy from); None without a mirror."""
    root = os.fspath(mirror) if mirror is not None else os.getenv("FEDCORE_MIRROR", "")
    return Path(root) / name if root else None


def lacking(form: Mapping[str, Any], *folders: Path | None) -> list[dict[str, Any]]:
    """Return the registry entries of the files that are in none of `folders`."""
    there = [folder for folder in folders if folder is not None]
    return [file for file in form["files"] if not any(exists(f / file["name"]) for f in there)]


def whole(entry: Mapping[str, Any], *folders: Path | None) -> Mapping[str, Any] | None:
    """Return the entry of the first file format with every file in one of `folders`, or None."""
    return next((form for form in forms(entry) if not lacking(form, *folders)), None)


def missing(
    name: str,
    raw_dir: str | os.PathLike[str],
    *,
    mirror: str | os.PathLike[str] | None = None,
    registry: str | os.PathLike[str] | None = None,
    answers: Callable[[str], bool] | None = None,
    surrogate: bool = False,
) -> str | None:
    """Return a message about files that a person must provide before `fetch` can succeed.

    Parameters
    ----------
    name : str
    raw_dir : path-like
        Folder ``data/raw``, whose subfolder `name` is searched for the files.
    mirror, registry : path-like, optional
        The mirror is a folder to copy files from (default: the environment variable
        ``FEDCORE_MIRROR``). The registry is the file with the URLs and checksums of all data sets.
    answers : callable, optional
        Function, such as `download.answers`, that returns whether the server of a URL responds. By
        default, every URL counts as reachable, and the network is not used.
    surrogate : bool, default=False
        Whether to check only that the data set has a surrogate, which needs no files.

    Returns
    -------
    str or None
        Message that names the files, their checksums, their source and the target folder. The value
        is None if every file is in its folder, in the mirror, or at a URL that responds.
    """
    entry, _ = find(name, registry)
    if entry is None:
        return None
    if surrogate:
        found = "surrogate" in entry
        return None if found else f"data set '{name}' has no 'surrogate': run it on its own files"
    raw, there = Path(raw_dir) / name, mirror_folder(name, mirror)
    if there is not None and not whole(entry, raw) and not os.path.isdir(there.parent):
        return (
            f"the mirror {there.parent} is no folder: set 'mirror' (--mirror) or FEDCORE_MIRROR to "
            "a folder, or set neither"
        )
    absent = [] if whole(entry, raw, there) else lacking(entry, raw, there)
    known = [file.get("urls", ()) for file in absent]
    if all(any(answers is None or answers(url) for url in urls) for urls in known):
        return None
    silent = answers is not None and all(known)
    return to_provide(name, entry, raw, there) + ("; no answer from there now" if silent else "")


def to_provide(name: str, entry: Mapping[str, Any], raw: Path, mirror: Path | None) -> str:
    """Return a message that says which files of a data set are missing, and how to provide them."""
    absent, *instead = (lacking(form, raw, mirror) for form in forms(entry))
    files = " and ".join(f"'{file['name']}' ({' '.join(expected(file))})" for file in absent)
    others = "".join(", or else " + " and ".join(f"'{f['name']}'" for f in one) for one in instead)
    urls = [url for file in absent for url in file.get("urls", ())[:1]]
    how = entry.get("manual") or (
        f"get it from {' and '.join(urls)}" if urls else "no address is known"
    )
    where = f"{raw} or in the folder {name} of a mirror (--mirror or FEDCORE_MIRROR)"
    return f"data set '{name}' needs {files}{others} in {where}: {how}"
