"""Parts of a history's provenance that every way to make one writes."""

from __future__ import annotations

import importlib
import os
import platform
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

PACKAGES = ("fedcore", "numpy", "scipy", "h5py")


@cache
def own_commit() -> str:
    """Return the commit of fedcore's checkout, as `commit`; asked once in a process."""
    return commit(Path(__file__).parents[2])


def commit(checkout: Path) -> str:
    """Return the commit of a checkout, marked if files differ from it; "unknown" without one."""
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--exclude=*"]
    if not (checkout / ".git").exists():  # it may lie in some other project's checkout
        return "unknown"
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python, `PACKAGES` and further packages.

    fedcore is not imported by a statement: every cell would depend on all that it exports.
    """
    return {
        "python": platform.python_version(),
        # The metadata that `importlib.metadata` reads take 8 ms for each package.
        **{name: str(importlib.import_module(name).__version__) for name in (*PACKAGES, *packages)},
    }


def device(packages: Iterable[str]) -> dict[str, str]:
    """Return where networks were trained, unless client by client on a core.

    See `fedcore.deep.device`, which cannot be asked without PyTorch.
    """
    name = os.getenv("FEDCORE_DEVICE") or "cpu"
    return {"device": name} if "torch" in packages and name != "cpu" else {}
