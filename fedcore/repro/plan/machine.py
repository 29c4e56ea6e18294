"""The machine of this process: CPU, BLAS, system, and what decides rounding."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import numpy as np
import threadpoolctl


def describe_machine() -> dict[str, str]:
    """Return CPU and BLAS of this machine, and its system, as pages name them."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.is_file():
        named = re.search(r"^model name\s*: (.*)$", info.read_text(encoding="utf-8"), re.MULTILINE)
        cpu = " ".join(named[1].split()) if named else cpu
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    name = f"{blas['name']} {blas['version']}"
    kernels = {str(found.get("architecture")) for found in threadpoolctl.threadpool_info()}
    kernels -= {"None"}
    name += f", kernel {', '.join(sorted(kernels))}" if kernels else ""
    return {"CPU": cpu, "BLAS": name, "system": f"{platform.system()} {platform.machine()}"}


def describe_arithmetic() -> dict[str, str]:
    """Return CPU, BLAS with its kernel, system and SIMD instructions of this process."""
    import scipy.linalg  # it loads the BLAS that jobs use; 0.2 s

    scipy.linalg.get_blas_funcs("gemm")
    found = np.show_config(mode="dicts")["SIMD Extensions"]
    return describe_machine() | {"SIMD": " ".join(found["baseline"] + found.get("found", []))}
