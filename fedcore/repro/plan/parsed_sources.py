"""What fingerprints read of fedcore's own modules, kept in a file for later starts of Snakemake.

Reading two hundred modules is a third of such a start. What has been read of a module counts again
while nothing else has changed that it depends on: the module's bytes, the code that reads it, the
version of Python, and of the package the names of all modules and the bytes of every
``__init__.py``.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fedcore.experiments import fingerprint, sources
from fedcore.files import atomic

OWN = __name__.split(".")[0]
READERS = ["fedcore.experiments.fingerprint", "fedcore.experiments.sources", __name__]


class CodeCache:
    """Values by module or function, with the digest of what they depend on.

    Without a path, nothing is kept.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._new = path, False
        self._around = b"" if path is None else _around()
        self._found: dict[str, tuple[str, Any]] = {} if path is None else _read(path)

    def get(self, code: str, source: bytes, make: Callable[[], Any]) -> Any:
        """Return what is kept of `code`, a module or function of this source; else make it."""
        if self._path is None or not code.startswith(f"{OWN}."):
            return make()
        key = hashlib.sha256(self._around + source).hexdigest()
        kept, value = self._found.get(code, ("", None))
        if kept != key:
            value, self._new = make(), True
            self._found[code] = key, value
        return value

    def save(self) -> None:
        """Write the file, if there is anything new; a full disk or a missing folder is passed."""
        if self._path is None or not self._new:
            return
        text = json.dumps(self._found, sort_keys=True)
        with contextlib.suppress(OSError), atomic.replace(self._path) as made:
            made.write_text(f"{_digest(text)}\n{text}", encoding="utf-8")


def keep_in(path: str | os.PathLike[str]) -> CodeCache:
    """Take from a file what an earlier process has read of fedcore's code, if it is unchanged."""
    kept = CodeCache(Path(path))
    fingerprint.read_by(kept.get)
    return kept


def _read(path: Path) -> dict[str, tuple[str, Any]]:
    """Return the content of a file, if it is whole."""
    try:
        digest, _, text = path.read_text(encoding="utf-8").partition("\n")
    except (OSError, UnicodeDecodeError):
        return {}
    found: dict[str, tuple[str, Any]] = json.loads(text) if digest == _digest(text) else {}
    return found


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _around() -> bytes:
    """Return the digest of what the values of all modules depend on."""
    digest = hashlib.sha256(sys.version.encode())
    for module in READERS:
        source = sources.find(module)
        assert source is not None
        digest.update(source.read_bytes())
    package = sources.find(OWN)
    assert package is not None
    for folder, below, files in os.walk(package.parent):
        below[:] = sorted(set(below) - {"__pycache__"})
        digest.update(f"{Path(folder).relative_to(package.parent)} {sorted(files)}\n".encode())
        if "__init__.py" in files:
            digest.update(Path(folder, "__init__.py").read_bytes())
    return digest.digest()
