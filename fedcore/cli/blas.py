"""The process of a command: threads of the linear algebra, and an accelerator."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys

import click

VARIABLES = tuple(
    f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR")
)


def settle_device() -> None:
    """Settle PyTorch, in a process of fedcore's own, if the environment names an accelerator."""
    if os.environ.get("FEDCORE_DEVICE", "") in ("", "cpu", "together"):
        return
    with contextlib.suppress(ModuleNotFoundError):  # without PyTorch there are no networks
        importlib.import_module("fedcore.deep.device").settle()


def limit(threads: int | None) -> None:
    """Set the number of BLAS threads before NumPy is imported, and say so once.

    Without a number, an environment variable of the user's decides, and else it is one: on two
    cores with other work, 51.7 s of `fedcore run ssi w8a` became 6.8 s. PyTorch has as many
    threads, and an accelerator computes as a core does.
    """
    asked = threads is not None or any(os.environ.get(name) for name in VARIABLES)
    if "numpy" in sys.modules:  # in a program of somebody's own: too late, and theirs to choose
        return
    if threads is not None or not asked:
        os.environ |= dict.fromkeys(VARIABLES, str(threads or 1))
    if not asked and (os.cpu_count() or 1) > 1:
        click.echo("one BLAS thread (--blas-threads N takes more)", err=True)
    settle_device()
