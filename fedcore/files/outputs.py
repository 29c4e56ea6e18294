"""Refuse to overwrite an input, or a file that fedcore did not write.

The package recognises its own files of recorded runs and of clients' samples by checksum and
content. It recognises its own figures and tables by the checksum file in the same folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from fedcore.errors import InputError
from fedcore.files import checksums, hdf5


def require(
    path: str | os.PathLike[str],
    kind: str,
    *,
    inputs: Iterable[str | os.PathLike[str]] = (),
    force: bool = False,
) -> None:
    """Raise an error if an output would overwrite an input or a file that fedcore did not write.

    Call `require` before any computation.

    Parameters
    ----------
    path : path-like
        Path of the output. A symbolic link is refused, unless `force` is true.
    kind : {"history", "problem", "figure"}
        Kind of output. An undamaged earlier output of the same kind may be replaced.
    inputs : iterable of path-like
        Input files and folders of input files. An input file is never replaced, even if `path` is
        another name of the same file.
    force : bool
        Whether a link, a write-protected file, or a file that fedcore has not written may be
        replaced.
    """
    final = Path(path)
    for source in inputs:
        if _is_or_holds(source, final):
            raise InputError(f"{path} is not written, as it is also an input: name another output")
    if not os.path.lexists(final):
        _require_writable(final)
    elif final.exists() and not final.is_file():
        raise InputError(f"{path} is not written, as it is no regular file: name another output")
    elif not force and (why := _reason(final, kind)):
        raise InputError(
            f"{path} is not replaced, as it is {why}: name another output, or force it"
        )


def _is_or_holds(source: str | os.PathLike[str], final: Path) -> bool:
    try:
        if os.path.isdir(source):
            inside = Path(os.path.realpath(final)).is_relative_to(os.path.realpath(source))
            return inside and os.path.lexists(final)
        return os.path.samefile(source, final)
    except OSError:  # one is not there
        return False


def _require_writable(final: Path) -> None:
    folder = next(place for place in final.absolute().parents if os.path.lexists(place))
    if not folder.is_dir():
        raise InputError(f"{final} is not written, as {folder} is no folder: name another output")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{final} is not written: make its folder {folder} writable")


def _reason(final: Path, kind: str) -> str:
    """Return why a file or link may not be replaced, or an empty text if it may be replaced."""
    if final.is_symlink():
        return f"a link to {os.readlink(final)}"
    try:
        if kind in hdf5.MARKS:
            own = _sealed(final, kind)
        else:
            own = checksums.place(final).is_file() and not checksums.differs(final)
    except OSError:
        own = False
    if not own:
        return f"no {kind} that fedcore has written and that is still whole"
    return "" if final.stat().st_mode & 0o222 else "protected from writing"


def _sealed(final: Path, kind: str) -> bool:
    try:  # what somebody has added to it is theirs
        with hdf5.read(final) as file:
            return hdf5.holds(file, kind)
    except hdf5.BrokenSeal:
        return False
