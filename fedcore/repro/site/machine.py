"""The machine of a run, as pages name it."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import numpy as np


def machine() -> dict[str, str]:
    """Return CPU and BLAS of this machine, and its system."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        named = re.search(r"^model name\s*: (.*)$", info.read_text(encoding="utf-8"), re.MULTILINE)
        cpu = " ".join(named[1].split()) if named else cpu
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    name = f"{blas['name']} {blas['version']}"
    try:
        import threadpoolctl
    except ImportError:
        kernels: set[str] = set()
    else:
        kernels = {str(found.get("architecture")) for found in threadpoolctl.threadpool_info()}
    kernels -= {"None"}
    name += f", kernel {', '.join(sorted(kernels))}" if kernels else ""
    return {"CPU": cpu, "BLAS": name, "system": f"{platform.system()} {platform.machine()}"}
