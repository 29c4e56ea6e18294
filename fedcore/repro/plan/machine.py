"""Describe the CPU, the BLAS, the system and the SIMD instructions of this process."""

from __future__ import annotations

import platform
import re
from pathlib import Path

import numpy as np
import threadpoolctl


def describe_machine() -> dict[str, str]:
    """Return the names of this machine's CPU, BLAS and operating system."""
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
    """Return the CPU, the BLAS with its kernel, the system and the SIMD instructions."""
    import scipy.linalg  # it loads the BLAS that jobs use; 0.2 s

    scipy.linalg.get_blas_funcs("gemm")
    found = np.show_config(mode="dicts")["SIMD Extensions"]
    return describe_machine() | {"SIMD": " ".join(found["baseline"] + found.get("found", []))}
