"""Provenance that every history (record of runs) contains: commit, versions and device."""

from __future__ import annotations

import importlib
import os
import platform
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from fedcore import __version__

PACKAGES = ("numpy", "scipy", "h5py")


@cache
def own_commit() -> str:
    """Return the commit of fedcore's own checkout; git runs only once per process."""
    return commit(Path(__file__).parents[2])


def commit(checkout: Path) -> str:
    """Return the git commit of a checkout, or "unknown" without git or without ``.git``.

    If tracked files differ from the commit, the result ends in "-dirty".
    """
    command = ["git", "-C", str(checkout), "describe", "--always", "--dirty", "--exclude=*"]
    if not (checkout / ".git").exists():  # it may lie in some other project's checkout
        return "unknown"
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python, fedcore, `PACKAGES` and further packages."""
    return {
        "python": platform.python_version(),
        "fedcore": __version__,
        # The metadata that `importlib.metadata` reads take 8 ms for each package.
        **{name: str(importlib.import_module(name).__version__) for name in (*PACKAGES, *packages)},
    }


def device(packages: Iterable[str]) -> dict[str, str]:
    """Return the device of a run as ``{"device": name}``, or {} for the CPU or without PyTorch.

    This function reads the environment variable FEDCORE_DEVICE itself, because the module
    `fedcore.deep.device` cannot be imported without PyTorch.
    """
    name = os.getenv("FEDCORE_DEVICE") or "cpu"
    return {"device": name} if "torch" in packages and name != "cpu" else {}
