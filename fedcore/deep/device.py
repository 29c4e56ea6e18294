"""The device on which networks are trained: a CPU core or an accelerator.

The environment variable ``FEDCORE_DEVICE`` names the device, because the device is a property of
the machine. The value is ``cpu`` (the default), ``together``, or PyTorch's name of an accelerator
(``cuda``, ``cuda:1``, ``mps``, …). With ``cpu``, clients train one after the other. On an
accelerator, the clients of a round train together: PyTorch computes each training step for many
clients at once. With ``together``, a CPU core does the same; this value is for tests, and is slower
than ``cpu``. Results from two devices differ by rounding errors. The history file of an
experiment names the device, unless it is ``cpu``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

import torch

from fedcore.errors import FedcoreError, InputError

VARIABLE = "FEDCORE_DEVICE"
# What PyTorch says for want of memory: on CUDA and MPS, in a library of CUDA, and on a core.
MEMORY_ERRORS = ("out of memory", "ALLOC_FAILED", "can't allocate memory")


class Device(NamedTuple):
    """A device of PyTorch, and whether the clients of a round train together on it."""

    where: torch.device
    together: bool


CPU = Device(torch.device("cpu"), together=False)


def read_device() -> Device:
    """Return the device that the environment of this process names.

    Call this function wherever the device is needed. Do not store the result in an object, because
    a client in another process may have another device.

    Raises
    ------
    FedcoreError
        If PyTorch does not know the device or cannot reach it here, or if the device's memory is
        full.
    """
    return _named(os.getenv(VARIABLE) or "cpu")


def configure_torch() -> None:
    """Set PyTorch's options for this process, so that accelerators are as precise as a core.

    Accelerators then compute in full single precision, and not with mantissas of 10 bits. Further
    options concern cuDNN and cuBLAS: with them, PyTorch promises equal bytes for equal seeds. No
    test on an accelerator has confirmed this promise yet. The command line and the jobs of the
    workflow call this function. `fedcore.run` does not call this function, because the process
    belongs to the user. In a program of your own, call this function before anything is computed on
    the accelerator.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # noqa: TID251
    backends = torch.backends  # noqa: TID251
    backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = False
    backends.cudnn.deterministic, backends.cudnn.benchmark = True, False


@contextmanager
def room(where: torch.device | str, what: str, remedy: str = "a smaller batch") -> Iterator[None]:
    """Turn an out-of-memory error inside the ``with`` block into an error with a remedy.

    Parameters
    ----------
    where : torch.device or str
    what : str
        Words for the error message that say what needs the memory.
    remedy : str
        Words for the error message that say what would need less memory. The message then adds
        remedies that always help.

    Raises
    ------
    InputError
    """
    try:
        yield
    except RuntimeError as error:  # MPS, cuBLAS and cores have no class of their own for it
        if not any(words in str(error) for words in MEMORY_ERRORS):
            raise
        said = ". ".join(str(error).splitlines()[0].split(". ")[:3]).rstrip(".")
        raise InputError(
            f"{where} has too little memory for {what}: take {remedy}, let no other job use it "
            f"meanwhile, or take FEDCORE_DEVICE=cpu (PyTorch: {said})"
        ) from error


@cache
def _named(name: str) -> Device:
    if name in ("cpu", "together"):
        return Device(CPU.where, name == "together")
    try:
        with room(name, "one more process", "another device"):
            where = torch.empty(0, device=name).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise FedcoreError(
            f"{VARIABLE} = {name!r}: PyTorch {torch.__version__} has no such device here "
            f"({reason}); take cpu, together, or one that it has, such as cuda or mps"
        ) from error
    return CPU if where.type == "cpu" else Device(where, together=True)
