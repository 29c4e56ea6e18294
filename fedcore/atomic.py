"""Files that appear under their final name whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def replace(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success flush it to disk and rename it to `path`.

    The temporary file is removed when the block raises, and a name that holds the process id keeps
    two processes that write the same output apart.

    Parameters
    ----------
    path : path-like
        Final name. Its folder is made when it does not exist.

    Yields
    ------
    pathlib.Path
        Where to write. Nothing stands under `path` before the block has ended without an error.
    """
    final = Path(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    temporary = final.with_name(f".{final.stem}.{os.getpid()}.tmp{final.suffix}")
    try:
        yield temporary
        with open(temporary, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)
