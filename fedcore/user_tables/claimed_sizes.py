"""Check the array sizes that a file states, before memory for the arrays is allocated."""

from __future__ import annotations

import math
import zipfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from fedcore.errors import DataError

MOST = 2**30  # bytes
WIDEST = 2**25  # features; a run has several numbers for each
DENSEST = 100  # bytes of arrays for each byte of their file, where there are more than MOST


def heads(path: Path) -> dict[str, tuple[tuple[int, ...], np.dtype]]:
    """Return the shape and data type of each array in an NPZ or NPY file, by the array's name.

    The array of an NPY file has the name x. Only the headers of the arrays are read. Call `heads`
    before `numpy.load`.
    """
    found = {}
    with ExitStack() as files:
        archive = files.enter_context(zipfile.ZipFile(path)) if zipfile.is_zipfile(path) else None
        for name in archive.namelist() if archive else ["x"]:
            file = files.enter_context(archive.open(name) if archive else open(path, "rb"))
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            shape, _, dtype = read(file)
            claimed = math.prod(shape) * dtype.itemsize
            has = archive.getinfo(name).file_size if archive else path.stat().st_size
            if claimed > has and not dtype.hasobject:
                says = f"{path} says that it holds {claimed} bytes, but has {has}"
                raise DataError(f"{says}: write it anew")
            found[name.removesuffix(".npy")] = shape, dtype
    require_size(path, sum(math.prod(shape) * dtype.itemsize for shape, dtype in found.values()))
    return found


def require_size(path: Path | str, total: int) -> None:
    """Raise `DataError` if a table of `total` bytes is far larger than its file at `path`."""
    size = Path(path).stat().st_size
    if total > max(MOST, DENSEST * size):
        says = f"{path} holds {total} bytes in a file of {size}: save it uncompressed (numpy.savez)"
        raise DataError(f"{says}, or as a sparse matrix (scipy.sparse.save_npz)")


def require_shape(path: Path | str, rows: int, columns: int) -> None:
    """Raise `DataError` if the file of a sparse table states too many rows or columns."""
    if columns > WIDEST:
        says = f"{path} says that it has {columns} features; at most {WIDEST} can be read"
        raise DataError(f"{says}: keep only the columns that have values")
    require_size(path, 8 * rows)
