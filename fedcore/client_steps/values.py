"""Plain values as bytes: a JSON skeleton, and after it the arrays as they lie in memory.

The order of an array's axes in memory crosses, too: products of arrays in another order round
differently. Numbers keep type and precision, and read-only arrays stay so. Tuples with names, data
classes and plain objects cross as the name of their class and their parts. A message may name any
class: only processes of one owner exchange them.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from fedcore.errors import RefusedError

MAGIC = b"FED1"
KINDS = "biufc"  # of arrays that cross
Encode = Callable[[Any], Any]


class Writer:
    """Turns values into a skeleton and arrays.

    Parameters
    ----------
    special : callable, optional
        ``(value, writer) -> skeleton or None``, for values of further kinds.

    Attributes
    ----------
    arrays : list of ndarray
    bare : bool
        Whether arrays are refused at present.
    """

    def __init__(self, special: Callable[[Any, Writer], Any] | None = None) -> None:
        self.arrays: list[np.ndarray] = []
        self.bare = False
        self._special = special

    def skeleton(self, value: Any) -> Any:
        """Return the skeleton of a value, and keep its arrays.

        Raises
        ------
        RefusedError
            For a value of a kind that does not cross.
        """
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is list:
            return [self.skeleton(part) for part in value]
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value)
        if type(value) is tuple:
            return {"tuple": [self.skeleton(part) for part in value]}
        if type(value) in (dict, set, frozenset):
            parts = [[k, v] for k, v in value.items()] if type(value) is dict else list(value)
            return {type(value).__name__: [self.skeleton(part) for part in parts]}
        if type(value) is complex:
            return {"complex": [value.real, value.imag]}
        if isinstance(value, np.dtype):
            return {"dtype": value.str}
        found = None if self._special is None else self._special(value, self)
        return self._object(value) if found is None else found

    def _array(self, value: Any) -> Any:
        if value.dtype.kind not in KINDS or isinstance(value, np.ma.MaskedArray):
            what = "masked" if isinstance(value, np.ma.MaskedArray) else value.dtype
            raise RefusedError(f"an array of {what} entries cannot cross to another process")
        if self.bare and isinstance(value, np.ndarray):
            raise RefusedError(
                f"a client step holds an array of shape {value.shape} that was never sent: "
                "broadcast it, and read the message"
            )
        self.arrays.append(np.asarray(value))
        return {"array" if isinstance(value, np.ndarray) else "number": len(self.arrays) - 1}

    def _object(self, value: Any) -> Any:
        kind = type(value)
        if kind.__module__ in ("builtins", "__main__") or "<locals>" in kind.__qualname__:
            raise RefusedError(
                f"a {kind.__qualname__} cannot cross to another process: send numbers, arrays, "
                "strings, and lists, tuples and mappings of them"
            )
        if isinstance(value, tuple):
            parts: list[Any] = [["", part] for part in value]
        elif dataclasses.is_dataclass(value):
            parts = [[f.name, getattr(value, f.name)] for f in dataclasses.fields(value)]
            if self.bare:  # the receiver knows the parameters; steps do not read arrays in them
                parts = [[n, None if isinstance(v, np.ndarray) else v] for n, v in parts]
        elif hasattr(value, "__dict__"):
            parts = [list(pair) for pair in vars(value).items()]
        else:
            raise RefusedError(f"a {kind.__qualname__} cannot cross to another process")
        return {"object": [kind.__module__, kind.__qualname__, self.skeleton(parts)]}


def encode(value: Any, special: Callable[[Any, Writer], Any] | None = None) -> bytes:
    """Return a value as bytes.

    Parameters
    ----------
    value : object
        None, numbers, strings, arrays of numbers; lists, tuples, sets and mappings of these; and
        objects of installed classes that hold such values.
    special : callable, optional
        See `Writer`.

    Raises
    ------
    RefusedError
        For a value of any other kind.
    """
    writer = Writer(special)
    skeleton = writer.skeleton(value)
    heads, bodies = [], []
    for array in writer.arrays:
        axes = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
        body = np.ascontiguousarray(array.transpose(axes))
        heads.append([array.dtype.str, list(array.shape), axes, bool(array.flags.writeable)])
        bodies.append(body.tobytes())
    text = json.dumps([skeleton, heads], separators=(",", ":")).encode()
    return b"".join([MAGIC, struct.pack("<Q", len(text)), text, *bodies])


def decode(
    data: bytes,
    special: Callable[[str, Any, Callable[[Any], Any]], Any] | None = None,
) -> Any:
    """Return the value of `encode`.

    Parameters
    ----------
    data : bytes
    special : callable, optional
        ``(kind, content, value_of) -> value``, for skeletons of further kinds.

    Raises
    ------
    RefusedError
        For bytes that `encode` has not written, and for a class that is not installed.
    """
    start = len(MAGIC) + 8
    try:
        if data[: len(MAGIC)] != MAGIC:
            raise ValueError("they do not begin as they should")
        (length,) = struct.unpack("<Q", data[len(MAGIC) : start])
        skeleton, heads = json.loads(data[start : start + length])
        arrays, at = [], start + length
        for dtype, shape, axes, writeable in heads:
            array, at = _array_at(data, at, np.dtype(dtype), shape, axes)
            array.flags.writeable = writeable
            arrays.append(array)
        if at != len(data):
            raise ValueError("they go on after their end")
    except (ValueError, TypeError, struct.error) as error:
        raise RefusedError(f"these bytes are no message of fedcore ({error})") from error

    def value_of(part: Any) -> Any:
        if isinstance(part, list):
            return [value_of(inner) for inner in part]
        if not isinstance(part, dict):
            return part
        ((kind, content),) = part.items()
        if kind == "array":
            return arrays[content]
        if kind == "number":
            return arrays[content][()]
        if kind in _MADE:
            return _MADE[kind]([value_of(inner) for inner in content])
        if kind == "dtype":
            return np.dtype(content)
        if kind == "object":
            module, name, parts = content
            return _object_of(installed(module, name), value_of(parts))
        if special is None:
            raise RefusedError(f"nothing of the kind {kind!r} is expected here")
        return special(kind, content, value_of)

    return value_of(skeleton)


_MADE: dict[str, Callable[[list], Any]] = {
    "tuple": tuple,
    "dict": dict,
    "set": set,
    "frozenset": frozenset,
    "complex": lambda parts: complex(*parts),
}


def _array_at(
    data: bytes, at: int, dtype: np.dtype, shape: list[int], axes: list[int]
) -> tuple[np.ndarray, int]:
    """Return a copy of the array at a position, and the position after it."""
    if dtype.kind not in KINDS or sorted(axes) != list(range(len(shape))):
        raise ValueError("an array of unknown form")
    count = 1
    for size in shape:
        count *= size
    end = at + count * dtype.itemsize
    if end > len(data):
        raise ValueError("they end too early")
    flat = np.frombuffer(data, dtype, count, at).copy()
    laid = flat.reshape([shape[axis] for axis in axes])
    return laid.transpose(np.argsort(axes)) if axes else laid, end


def installed(module: str, name: str) -> Any:
    """Return what an imported or importable module has under a name.

    Raises
    ------
    RefusedError
        When the module is not installed, or has nothing of this name.
    """
    try:
        found: Any = sys.modules.get(module) or importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise RefusedError(
            f"{name} of {module} is not installed here: install the version of rank 0"
        ) from error
    return found


def _object_of(kind: Any, parts: list[list[Any]]) -> Any:
    """Return an object of a class with these parts, without a call of its code."""
    if not isinstance(kind, type):
        raise RefusedError("an object needs a class, and its name is of something else")
    if issubclass(kind, tuple):
        return tuple.__new__(kind, [part for _, part in parts])
    new = object.__new__(kind)
    for name, part in parts:
        object.__setattr__(new, name, part)
    return new
