"""Files beside the code: in a checkout where they stand, in a wheel inside of the package."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from fedcore.errors import ConfigError


def find(in_wheel: str, in_checkout: str) -> Path:
    """Return the file that there is.

    Parameters
    ----------
    in_wheel : str
        Its path below the package's folder; it comes first.
    in_checkout : str
        Its path below the folder that the package's folder is in.

    Raises
    ------
    ConfigError
        When there is neither.
    """
    spec = find_spec(__name__.partition(".")[0])
    assert spec is not None and spec.origin is not None
    package = Path(spec.origin).resolve().parent
    candidates = (package / in_wheel, package.parent / in_checkout)
    for path in candidates:
        if path.is_file():
            return path
    raise ConfigError(f"no file at {' or '.join(map(str, candidates))}")
