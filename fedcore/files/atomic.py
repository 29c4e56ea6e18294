"""Write files that appear under their final name completely or not at all.

While a file ``<stem><suffix>`` is being written, its name is ``.<stem>.<16 random hex
digits>.tmp<suffix>``. A killed process leaves its temporary file behind. `LEFT_OVER` matches the
names of temporary files.
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
    """Remove temporary files that killed processes have left in a folder.

    If another process is still writing a file in the folder, that process fails.
    """
    for found in folder.glob(pattern):
        if LEFT_OVER.fullmatch(found.name) and found.is_file():
            found.unlink(missing_ok=True)


def remove_left_overs_of(path: str | os.PathLike[str]) -> None:
    """Remove temporary files that killed processes have left while writing `path`."""
    final = Path(path)
    stem, suffix = glob.escape(final.stem), glob.escape(final.suffix)
    remove_left_overs(final.parent, f".{stem}.*.tmp{suffix}")


@contextlib.contextmanager
def replace(path: str | os.PathLike[str], *, summed: bool = False) -> Iterator[Path]:
    """Yield a temporary path beside `path`, and rename the file to `path` on success.

    The temporary file is flushed to disk before it is renamed. If the ``with`` block raises an
    error, the temporary file is removed.

    Parameters
    ----------
    path : path-like
        Final path of the file. A missing folder is created.
    summed : bool
        Whether to write the file's checksum into the same folder (see `fedcore.files.checksums`).
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
