"""Convert, copy and add up the messages between server and clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import Any

import numpy as np

from fedcore.errors import InputError, ReplyError
from fedcore.rowspace import Block


def narrow(message: Any) -> Any:
    """Return `message` with all its floating-point numbers converted to float32."""
    if isinstance(message, np.ndarray) and message.dtype.kind == "f":
        return message.astype(np.float32, copy=False)
    if isinstance(message, Block):
        return message.astype(np.float32, copy=False)
    if isinstance(message, float | np.floating):
        return np.float32(message)
    return _rebuilt(message, narrow)


def copied(message: Any) -> Any:
    """Return a copy of `message` that shares no array, list or mapping with it."""
    if isinstance(message, np.ndarray):
        return message.copy(order="K")
    return _rebuilt(message, copied)


def read_only(message: Any) -> Any:
    """Return `message` with read-only arrays; an array is copied unless it owns read-only data."""
    if isinstance(message, np.ndarray):
        if type(message) is np.ndarray and message.flags.owndata and not message.flags.writeable:
            return message
        copy = message.copy(order="K")
        copy.flags.writeable = False
        return copy
    return _rebuilt(message, read_only)


def opened(message: Any) -> Any:
    """Return `message` with new lists and mappings around the same arrays."""
    if message is None or type(message) is np.ndarray:  # most, once for every call of a step
        return message
    return _rebuilt(message, opened)


def _rebuilt(message: Any, change: Callable[[Any], Any]) -> Any:
    """Return `message` with `change` applied to each element of its lists, tuples and mappings."""
    if isinstance(message, Mapping):
        return {key: change(value) for key, value in message.items()}
    if isinstance(message, list | tuple):
        parts = [change(part) for part in message]
        return type(message)(*parts) if hasattr(message, "_fields") else type(message)(parts)
    return message


def added(replies: Sequence[Any], positions: Sequence[int]) -> Any:
    """Return the sum of the replies of the clients at `positions`; integers are added in 64 bits.

    Raises
    ------
    InputError
        If no client takes part.
    ReplyError
        If replies differ in shape, even if NumPy could broadcast them, or if a reply has masked
        entries or is not an array of real numbers.
    """
    if not positions:
        raise InputError("a sum or mean needs at least one client; none takes part")
    if isinstance(replies, np.ndarray):  # from a stacked step
        return _addend(replies, positions[0]).sum(axis=0)
    first, *others = (_addend(reply, i) for i, reply in zip(positions, replies, strict=True))
    for i, other in zip(positions[1:], others, strict=True):
        if other.shape != first.shape:
            raise ReplyError(
                f"client {positions[0]} replied with shape {first.shape} and client {i} with "
                f"{other.shape}: replies to sum and mean must have one shape"
            )
    return reduce(np.add, others, first) if others else first.copy()[()]


def _addend(reply: Any, client: int) -> np.ndarray:
    """Return `reply` as an array, with integers and booleans widened to 64 bits."""
    if type(reply) is np.ndarray and reply.dtype.kind == "f":  # most replies, one per client
        return reply
    if np.ma.is_masked(reply):
        raise ReplyError(
            f"client {client} replied with masked entries: fill them with .filled(value), because "
            "a sum would add the values under the mask"
        )
    try:
        array = np.asarray(reply)
    except ValueError:  # parts of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        what = f"{array.dtype} numbers" if array.dtype.kind == "c" else f"a {type(reply).__name__}"
        raise ReplyError(
            f"client {client} replied with {what}: sum and mean take one array of real numbers "
            "from each client; gather takes anything"
        )
    wide = {"b": np.int64, "i": np.int64, "u": np.uint64}.get(array.dtype.kind, array.dtype)
    return array.astype(wide, copy=False)
