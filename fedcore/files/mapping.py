"""Read an HDF5 file's arrays through a memory map; verify each array's checksum at its first use.

The memory map is read-only and backed by the file. The map does not count towards a limit on the
process's memory (``ulimit -d``). Whenever an array is read for the first time, the process frees
the memory of all other arrays; the system reads their bytes again at their next use. A first pass
over all arrays therefore needs only the memory of one array.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import h5py
import numpy as np

from fedcore.files import hdf5
from fedcore.files.lazy import LazyMatrices


class Mapped(LazyMatrices):
    """HDF5 data sets of a file as read-only arrays.

    Parameters
    ----------
    file : Opened
    datasets : sequence of h5py.Dataset
        HDF5 data sets that are stored without chunks.
    told : callable
        Function that returns a context manager, in which an array's checksum is verified. The
        context manager turns a wrong checksum into an error message for users.

    Notes
    -----
    Do not change the file in place while it is mapped, because arrays that were checked are not
    checked again. If the file is truncated within a mapped array, reading this array ends the
    process by SIGBUS. The package fedcore itself only replaces whole files, which does not affect
    an existing map.
    """

    def __init__(
        self,
        file: hdf5.Opened,
        datasets: Sequence[h5py.Dataset],
        told: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        super().__init__(self._checked, len(datasets))
        self._told = told
        self._map = mmap.mmap(file.raw.fileno(), 0, access=mmap.ACCESS_READ)
        self._places = [(d.name, d.id.get_offset(), d.shape, d.dtype) for d in datasets]
        self._sums = [d.attrs.get(hdf5.SUM) for d in datasets]
        # Few numbers may lie among the structures of the file, without a place of their own.
        self._found = [d[()] if d.id.get_offset() is None else None for d in datasets]

    def _checked(self, i: int) -> np.ndarray:
        """Return array `i`; the first call reads and checks all bytes of the array."""
        found = self._found[i]
        if found is None:
            name, start, shape, dtype = self._places[i]
            if hasattr(mmap, "MADV_DONTNEED"):  # Windows has none
                self._map.madvise(mmap.MADV_DONTNEED)
            content = memoryview(self._map)[start : start + int(np.prod(shape)) * dtype.itemsize]
            with self._told():
                hdf5.require_sum(name, content, self._sums[i])
            found = np.frombuffer(content, dtype).reshape(shape)
            # BLAS would copy an array that is not aligned at every product.
            found = self._found[i] = found if found.flags.aligned else found.copy()
        return found
