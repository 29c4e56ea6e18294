"""Files that appear under their final name whole or not at all.

The temporary file beside ``<stem><suffix>`` is ``.<stem>.<16 random digits>.tmp<suffix>``. A
process that is killed leaves it behind; `LEFT_OVER` is the pattern that finds it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

LEFT_OVER = ".*.tmp*"


@contextlib.contextmanager
def replace(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a temporary path beside `path`; on success flush it to disk and rename it to `path`.

    The temporary file is removed when the block raises. Its name is random, which keeps apart all
    who write one output, on other hosts and in other containers, too, where process ids repeat.

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
    temporary = final.with_name(f".{final.stem}.{secrets.token_hex(8)}.tmp{final.suffix}")
    try:
        yield temporary
        with open(temporary, "rb") as handle:
            os.fsync(handle.fileno())
        os.replace(temporary, final)
    finally:
        temporary.unlink(missing_ok=True)
