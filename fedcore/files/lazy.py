"""Sequence of matrices, each of which is made or read only when it is accessed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np


class LazyMatrices(Sequence[np.ndarray]):
    """Matrices that a function makes anew at each access.

    Parameters
    ----------
    make : callable
        ``make(i)`` returns matrix `i`, with the same entries at every call.
    number : int
        Number of matrices.
    """

    def __init__(self, make: Callable[[int], np.ndarray], number: int) -> None:
        self._make, self._number = make, number

    def __len__(self) -> int:
        return self._number

    @overload
    def __getitem__(self, i: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, i: slice) -> list[np.ndarray]: ...
    def __getitem__(self, i: int | slice) -> Any:
        if isinstance(i, slice):
            return [self._make(j) for j in range(*i.indices(self._number))]
        if not -self._number <= i < self._number:
            raise IndexError(i)
        return self._make(i % self._number)
