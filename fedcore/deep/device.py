"""The device on which networks are trained: a CPU core or an accelerator.

The environment variable ``FEDCORE_DEVICE`` names the device, because the device is a property of
the machine. The value is ``cpu`` (the default), ``together``, or PyTorch's name of an accelerator
(``cuda``, ``cuda:1``, ``mps``, …). With ``cpu``, clients train one after the other. On an
accelerator, the clients of a round train together: PyTorch computes each training step for many
clients at once. With ``together``, a CPU core also computes each step for many clients at once;
this value is for tests, and is slower than ``cpu``. Results from two devices differ by rounding
errors. The history file, which stores the results of an experiment, names the device, unless the
device is ``cpu``.
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
# Parts of PyTorch's messages about full memory: on CUDA and MPS, in CUDA's libraries, on a CPU.
MEMORY_ERRORS = ("out of memory", "ALLOC_FAILED", "can't allocate memory")


class Device(NamedTuple):
    """A PyTorch device, and whether the clients of a round train at the same time on the device."""

    where: torch.device
    together: bool


CPU = Device(torch.device("cpu"), together=False)


def read_device() -> Device:
    """Return the device that the environment variable ``FEDCORE_DEVICE`` names.

    Call this function wherever the device is needed. Do not store the result in an object, because
    a client in another process may have another device.

    Raises
    ------
    FedcoreError
        If PyTorch does not know the device or cannot reach it on this machine, or if the device's
        memory is full.
    """
    return find_device(os.getenv(VARIABLE) or "cpu")


def configure_torch() -> None:
    """Set PyTorch's options for this process, so that accelerators are as precise as a CPU.

    Accelerators then compute in full single precision, and not in TF32, whose mantissas have 10
    bits. With the options for cuDNN and cuBLAS, PyTorch promises bit-identical results for equal
    seeds. No test on an accelerator has confirmed this promise yet. The command line and the jobs
    of the workflow call this function. `fedcore.run` leaves the options to the user. In a program
    of your own, call this function before anything is computed on the accelerator.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # noqa: TID251
    backends = torch.backends  # noqa: TID251
    backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = False
    backends.cudnn.deterministic, backends.cudnn.benchmark = True, False


@contextmanager
def room(where: torch.device | str, what: str, remedy: str = "a smaller batch") -> Iterator[None]:
    """Turn an out-of-memory error inside the ``with`` block into an error that names remedies.

    Parameters
    ----------
    where : torch.device or str
        Device that the error message names.
    what : str
        What needs the memory, in words for the error message.
    remedy : str
        What would need less memory, in words for the error message. The message also names
        remedies that always help.

    Raises
    ------
    InputError
        If the block runs out of memory.
    """
    try:
        yield
    except RuntimeError as error:  # MPS, cuBLAS and cores have no class of their own for it
        if not any(words in str(error) for words in MEMORY_ERRORS):
            raise
        said = ". ".join(str(error).splitlines()[0].split(". ")[:3]).rstrip(".")
        raise InputError(
            f"{where} has too little memory for {what}: take {remedy}, let no other job use the "
            f"device meanwhile, or set FEDCORE_DEVICE=cpu (PyTorch: {said})"
        ) from error


@cache
def find_device(name: str) -> Device:
    """Return the device that PyTorch calls `name`, after a check that it can be reached."""
    if name in ("cpu", "together"):
        return Device(CPU.where, name == "together")
    try:
        with room(name, "one more process", "another device"):
            where = torch.empty(0, device=name).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise FedcoreError(
            f"{VARIABLE} = {name!r}: PyTorch {torch.__version__} has no such device here "
            f"({reason}); take cpu, together, or a device that PyTorch has, such as cuda or mps"
        ) from error
    return CPU if where.type == "cpu" else Device(where, together=True)
