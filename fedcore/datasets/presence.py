"""Which files of a data set exist, and what a person must provide before `fetch` succeeds."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from fedcore.datasets.registry import find, forms
from fedcore.datasets.verification import exists, expected


def mirror_folder(name: str, mirror: str | os.PathLike[str] | None) -> Path | None:
    """Return the folder of a data set in the mirror; None without a mirror."""
    root = os.fspath(mirror) if mirror is not None else os.getenv("FEDCORE_MIRROR", "")
    return Path(root) / name if root else None


def lacking(form: Mapping[str, Any], *folders: Path | None) -> list[dict[str, Any]]:
    """Return the files that are in none of `folders`."""
    there = [folder for folder in folders if folder is not None]
    return [file for file in form["files"] if not any(exists(f / file["name"]) for f in there)]


def whole(entry: Mapping[str, Any], *folders: Path | None) -> Mapping[str, Any] | None:
    """Return the first form of a data set that has all its files, or None."""
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
        Function, such as `download.answers`, that says whether the server of an address can be
        reached. By default every address counts as reachable, and the network is not used.
    surrogate : bool, default=False
        Ask for the data set's stand-in, for which nothing is fetched.

    Returns
    -------
    str or None
        One sentence with the files, their checksums, where to get them and the folder to put them
        in; None when each file is in its folder, in the mirror, or at an address that answers.
    """
    entry, _ = find(name, registry)
    if entry is None:
        return None
    if surrogate:
        found = "surrogate" in entry
        return None if found else f"data set '{name}' has no 'surrogate': run it on its own files"
    raw, there = Path(raw_dir) / name, mirror_folder(name, mirror)
    if there is not None and not whole(entry, raw) and not os.path.isdir(there.parent):
        return f"the mirror {there.parent} is no folder: set FEDCORE_MIRROR to one, or to nothing"
    absent = [] if whole(entry, raw, there) else lacking(entry, raw, there)
    known = [file.get("urls", ()) for file in absent]
    if all(any(answers is None or answers(url) for url in urls) for urls in known):
        return None
    silent = answers is not None and all(known)
    return to_provide(name, entry, raw, there) + ("; no answer from there now" if silent else "")


def to_provide(name: str, entry: Mapping[str, Any], raw: Path, mirror: Path | None) -> str:
    """Return what a person must do to provide the files that are lacking."""
    absent, *instead = (lacking(form, raw, mirror) for form in forms(entry))
    files = " and ".join(f"'{file['name']}' ({' '.join(expected(file))})" for file in absent)
    others = "".join(", or else " + " and ".join(f"'{f['name']}'" for f in one) for one in instead)
    urls = [url for file in absent for url in file.get("urls", ())[:1]]
    how = entry.get("manual") or (
        f"get it from {' and '.join(urls)}" if urls else "no address is known"
    )
    where = f"{raw} or in $FEDCORE_MIRROR/{name}"
    return f"data set '{name}' needs {files}{others} in {where}: {how}"
