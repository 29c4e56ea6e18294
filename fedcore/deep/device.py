"""Where networks are trained: on a core client by client, or on an accelerator all at once.

The device is a property of the machine, so the environment variable ``FEDCORE_DEVICE`` names it:
``cpu`` (the default), or an accelerator by PyTorch's name (``cuda``, ``cuda:1``, ``mps``, …). On an
accelerator the clients of a round advance together. The value ``together`` makes them advance
together on a core, for tests; this is slower than client by client. Results of two devices differ
by rounding; histories name the device.
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
    """Where tensors lie, and whether the clients of a round advance together."""

    where: torch.device
    together: bool


CPU = Device(torch.device("cpu"), together=False)


def read_device() -> Device:
    """Return the device that this process's environment asks for.

    Call this function wherever the device is needed, and keep the result in no object: a client in
    another process has a device of its own.

    Raises
    ------
    FedcoreError
        For a device that PyTorch does not know, cannot reach here, or whose memory is full.
    """
    return _named(os.getenv(VARIABLE) or "cpu")


def configure_torch() -> None:
    """Let PyTorch compute on accelerators as on a core, in all of this process.

    Single precision is then not cut to 10 bits. cuDNN and cuBLAS get the settings with which,
    according to PyTorch, the same seed gives the same bytes; this has not yet been confirmed on
    such a machine. The command line and the jobs of the workflow call this function. A run does
    not, because its process belongs to the user: in a program of your own, call it before anything
    is computed on the accelerator.
    """
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # noqa: TID251
    backends = torch.backends  # noqa: TID251
    backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = False
    backends.cudnn.deterministic, backends.cudnn.benchmark = True, False


@contextmanager
def room(where: torch.device | str, what: str, remedy: str = "a smaller batch") -> Iterator[None]:
    """Turn an out-of-memory error of a device inside the block into an error of one sentence.

    Parameters
    ----------
    where : torch.device or str
    what : str
        What needs the memory, for the error.
    remedy : str
        What would need less memory; the error adds remedies that always help.

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
