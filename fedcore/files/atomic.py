"""Files that appear under their final name whole or not at all.

The temporary file beside ``<stem><suffix>`` is ``.<stem>.<16 random hex digits>.tmp<suffix>``. A
killed process leaves it behind; `LEFT_OVER` matches its name.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from fedcore.files import checksums

LEFT_OVER = re.compile(r"\..+\.[0-9a-f]{16}\.tmp(\..+)?")


def remove_left_overs(folder: Path, pattern: str = "**/.*") -> None:
    """Remove files that killed writers have left in a folder; a writer still at work then fails."""
    for found in folder.glob(pattern):
        if LEFT_OVER.fullmatch(found.name) and found.is_file():
            found.unlink(missing_ok=True)


def remove_left_overs_of(path: str | os.PathLike[str]) -> None:
    """Remove temporary files that killed writers of one file have left."""
    final = Path(path)
    stem, suffix = glob.escape(final.stem), glob.escape(final.suffix)
    remove_left_overs(final.parent, f".{stem}.*.tmp{suffix}")


@contextlib.contextmanager
def replace(path: str | os.PathLike[str], *, summed: bool = False) -> Iterator[Path]:
    """Yield a temporary path in the same folder; on success flush the file and rename it to `path`.

    The temporary file is removed when the block raises. The random name of the temporary file keeps
    writers of the same output apart, also on other hosts and in containers, where process ids
    repeat.

    Parameters
    ----------
    path : path-like
        Final name. Its folder is made when it does not exist.
    summed : bool
        Whether to write the file's checksum into the same folder, see `fedcore.files.checksums`.
    """
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.with_name(f".{final.stem}.{secrets.token_hex(8)}.tmp{final.suffix}")
    try:
        yield temporary
        with open(temporary, "rb") as handle:
            os.fsync(handle.fileno())
        value = checksums.file_sha256(temporary) if summed else ""
        os.replace(temporary, final)
        if summed:  # a process killed in between leaves a whole file with an old checksum or none
            checksums.write(final, value)
    finally:
        temporary.unlink(missing_ok=True)
