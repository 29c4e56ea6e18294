"""Arrays of a large sealed file by a memory map: one at a time, and checked when first read.

The map is read-only and backed by the file. The operating system keeps as much of it in memory as
there is room for, and it does not count as memory of the process that a limit (``ulimit -d``) caps.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, overload

import h5py
import numpy as np

from fedcore.files.hdf5 import Pieces


class Mapped(Sequence[np.ndarray]):
    """Datasets of a file as read-only arrays.

    Parameters
    ----------
    pieces : Pieces
        Of the open file.
    datasets : sequence of h5py.Dataset
        Stored without chunks, as `fedcore.files.hdf5.create` stores them.
    told : callable
        Gives a context that turns a broken seal into an error of one sentence.

    Notes
    -----
    Do not change the file in place while it is mapped; fedcore replaces files, which leaves a map
    as it was. `require_unwritten` notices new bytes under arrays that are in use. Where the file
    is cut off there, SIGBUS ends the process as soon as it computes with them: no code of Python
    can run then; the command line prints the signal's name.
    """

    def __init__(
        self,
        pieces: Pieces,
        datasets: Sequence[h5py.Dataset],
        told: Callable[[], AbstractContextManager[Any]],
    ) -> None:
        self._pieces, self._told = pieces, told
        self._map = memoryview(mmap.mmap(pieces.raw.fileno(), 0, access=mmap.ACCESS_READ))
        self._places = [(d.id.get_offset(), d.shape, d.dtype) for d in datasets]
        # Few numbers may lie among the structures of the file, without a place of their own.
        self._found = [d[()] if d.id.get_offset() is None else None for d in datasets]

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, i: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, i: slice) -> list[np.ndarray]: ...
    def __getitem__(self, i: int | slice) -> Any:
        """Return array `i`; the first call reads all of it, and checks its bytes."""
        if isinstance(i, slice):
            return [self[j] for j in range(*i.indices(len(self)))]
        found = self._found[i]
        if found is None:
            found = self._found[i] = self._array(*self._places[i])
        return found

    def require_unwritten(self) -> None:
        """Check all arrays again if the file has been written to since it was opened."""
        with self._told():
            if self._pieces.written():
                for offset, shape, dtype in self._places:
                    if offset is not None:
                        self._checked(offset, shape, dtype)

    def _checked(self, offset: int, shape: tuple[int, ...], dtype: np.dtype) -> memoryview:
        stop = offset + int(np.prod(shape)) * dtype.itemsize
        self._pieces.require_range(self._map, offset, stop)
        return self._map[offset:stop]

    def _array(self, offset: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        with self._told():
            found = np.frombuffer(self._checked(offset, shape, dtype), dtype).reshape(shape)
        # BLAS would copy such an array at every product.
        return found if found.flags.aligned else found.copy()


class MappedStack(Mapped):
    """The parts of one dataset along its first axis, each checked when it is first read.

    Parameters are those of `Mapped`, with one dataset.
    """

    def __init__(
        self, pieces: Pieces, dataset: h5py.Dataset, told: Callable[[], AbstractContextManager[Any]]
    ) -> None:
        super().__init__(pieces, [dataset], told)
        (self._whole,), (self._stack,) = self._places, self._found
        offset, (number, *shape), dtype = self._whole
        size = int(np.prod(shape)) * dtype.itemsize
        starts = [None if offset is None else offset + i * size for i in range(number)]
        self._places = [(start, tuple(shape), dtype) for start in starts]
        self._found = [None] * number if self._stack is None else list(self._stack)

    @property
    def stack(self) -> np.ndarray:
        """Return the dataset as one array; the first call reads all of it, and checks its bytes."""
        if self._stack is None:
            self._stack = self._array(*self._whole)
            self._found = list(self._stack)
        return self._stack
