"""The clients' matrices, in memory, or in a file that is read when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import overload

import numpy as np


@dataclass(frozen=True)
class Reduction:
    """What is known of rows Sᵢ that were seen once, and of which only a factor Rᵢ is kept.

    ``RᵢᵀRᵢ = SᵢᵀSᵢ``: whatever depends on the Gram matrices alone is the same for Rᵢ as for Sᵢ.

    Attributes
    ----------
    samples : tuple of int
        Rows of every Sᵢ.
    largest_row : float
        Largest Euclidean norm of a row of any Sᵢ.
    """

    samples: tuple[int, ...]
    largest_row: float


class Clients(Sequence[np.ndarray]):
    """Client matrices, and what is known of them without reading them.

    Parameters
    ----------
    matrices : sequence of ndarray of shape (n_i, d), or callable
        The matrices, or what returns them: it is called at most once, when a matrix is asked for.
    shapes : sequence of (int, int), optional
        Of the matrices; needed when they are to be read later, and so is `dtypes`.
    dtypes : sequence of numpy.dtype, optional
    gram : ndarray of shape (d, d), optional
        ``Σ SᵢᵀSᵢ``. Methods that need sums of products alone then never ask for a matrix.

    Attributes
    ----------
    shapes : list of (int, int)
    dtypes : list of numpy.dtype
    gram : ndarray or None
    kept, kept_of : SimpleNamespace, list of SimpleNamespace
        What steps have derived from all the data, and from that of each client, for the next run
        on them; it must not depend on anything but the data.
    reduction : Reduction or None
        Set when the matrices stand for larger ones.
    """

    def __init__(
        self,
        matrices: Sequence[np.ndarray] | Callable[[], Sequence[np.ndarray]],
        shapes: Sequence[tuple[int, int]] | None = None,
        dtypes: Sequence[np.dtype] | None = None,
        gram: np.ndarray | None = None,
    ) -> None:
        self._read = matrices if callable(matrices) else None
        self._matrices = [] if callable(matrices) else list(matrices)
        self.shapes = [m.shape for m in self._matrices] if shapes is None else list(shapes)
        self.dtypes = [m.dtype for m in self._matrices] if dtypes is None else list(dtypes)
        self.gram = gram
        self.kept = SimpleNamespace()
        self.kept_of = [SimpleNamespace() for _ in self.shapes]
        self.reduction: Reduction | None = None

    def __len__(self) -> int:
        return len(self.shapes)

    @overload
    def __getitem__(self, i: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, i: slice) -> list[np.ndarray]: ...
    def __getitem__(self, i: int | slice) -> np.ndarray | list[np.ndarray]:
        """Return matrix `i`; the first call reads all of them."""
        if self._read is not None:
            self._matrices, self._read = list(self._read()), None
        return self._matrices[i]

    @property
    def n_samples(self) -> int:
        """Samples of all clients."""
        if self.reduction is not None:
            return sum(self.reduction.samples)
        return sum(rows for rows, _ in self.shapes)

    @property
    def n_features(self) -> int:
        """Columns of every matrix."""
        return self.shapes[0][1]

    @property
    def single(self) -> bool:
        """Whether all matrices are float32."""
        return all(dtype == np.float32 for dtype in self.dtypes)

    @property
    def zero(self) -> bool:
        """Whether no entry differs from zero."""
        seen = self if self.gram is None else [self.gram]
        return not any(matrix.any() for matrix in seen)
