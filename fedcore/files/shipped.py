"""Files outside of the package in a checkout, and inside of the package in a wheel."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fedcore.errors import ConfigError


def find(in_wheel: str, in_checkout: str) -> Path:
    """Return the path of a file of this installation."""
    spec = find_spec(__name__.partition(".")[0])
    assert spec is not None and spec.origin is not None
    package = Path(spec.origin).resolve().parent
    candidates = (package / in_wheel, package.parent / in_checkout)
    for path in candidates:
        if path.is_file():
            return path
    raise ConfigError(f"no file at {' or '.join(map(str, candidates))}")
