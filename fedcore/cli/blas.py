"""Settings of a command's process: the number of BLAS threads, and the accelerator."""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator, Mapping

import click
import threadpoolctl

VARIABLES = tuple(
    f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL", "VECLIB_MAXIMUM", "NUMEXPR")
)


def configure_accelerator() -> None:
    """Configure PyTorch for this process, if FEDCORE_DEVICE names an accelerator."""
    if os.environ.get("FEDCORE_DEVICE", "") in ("", "cpu", "together"):
        return
    with contextlib.suppress(ModuleNotFoundError):  # without PyTorch there are no networks
        importlib.import_module("fedcore.deep.device").configure_torch()


def limit_threads(threads: int | None) -> None:
    """Set the number of BLAS threads until the command ends.

    If `threads` is None, an environment variable such as OMP_NUM_THREADS decides the number. If no
    such variable is set, the command uses one thread and prints a note. More threads would make
    products of small matrices much slower if the machine has other work. PyTorch gets as many
    threads as BLAS. The function also calls `configure_accelerator`.
    """
    asked = threads is not None or any(os.environ.get(name) for name in VARIABLES)
    if threads is not None or not asked:
        command = click.get_current_context()
        command.with_resource(threadpoolctl.threadpool_limits(threads or 1))
        command.with_resource(_environment(dict.fromkeys(VARIABLES, str(threads or 1))))
    if not asked and (os.cpu_count() or 1) > 1:
        click.echo("using one BLAS thread (--blas-threads N uses more)", err=True)
    configure_accelerator()


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for child processes and for libraries that are loaded later."""
    before = os.environ.copy()
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name)
        os.environ.update({name: before[name] for name in variables.keys() & before.keys()})
