"""The clients' matrices, in memory, or in a file that is read when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, overload

import numpy as np

Matrices = Sequence[np.ndarray] | np.ndarray


class Labelled(NamedTuple):
    """Samples and their labels, of one client or, with a leading axis, of several of equal size."""

    X: np.ndarray  # (m, d), or (clients, m, d)
    y: np.ndarray  # (m,), or (clients, m)


class Clients(Sequence[np.ndarray]):
    """Client matrices, and what is known of them without reading them.

    Parameters
    ----------
    matrices : sequence of ndarray of shape (n_i, d), or callable
        The matrices, or what returns them: it is called at most once, when a matrix is asked for.
        One array of shape (n_clients, m, d) for clients of equal size.
    shapes : sequence of (int, int), optional
        Of the matrices; needed when they are to be read later, and so is `dtypes`.
    dtypes : sequence of numpy.dtype, optional
    gram : ndarray of shape (d, d), optional
        ``Σ SᵢᵀSᵢ``. Methods that need sums of products alone then never ask for a matrix.
    labels : sequence of ndarray of shape (n_i,), optional
        One label per sample, for methods that learn from them.

    Attributes
    ----------
    shapes : list of (int, int)
    dtypes : list of numpy.dtype
    gram : ndarray or None
    labels : sequence of ndarray or None
    """

    def __init__(
        self,
        matrices: Matrices | Callable[[], Matrices],
        shapes: Sequence[tuple[int, int]] | None = None,
        dtypes: Sequence[np.dtype] | None = None,
        gram: np.ndarray | None = None,
        labels: Matrices | None = None,
    ) -> None:
        self._read = matrices if callable(matrices) else None
        self._stack: np.ndarray | None = matrices if isinstance(matrices, np.ndarray) else None
        self._matrices = [] if callable(matrices) else list(matrices)
        self.shapes = [m.shape for m in self._matrices] if shapes is None else list(shapes)
        self.dtypes = [m.dtype for m in self._matrices] if dtypes is None else list(dtypes)
        self.gram = gram
        self.labels = labels

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

    def labelled(self, i: int) -> Labelled:
        """Return the samples of client `i` with their labels."""
        assert self.labels is not None
        return Labelled(self[i], self.labels[i])

    @property
    def uniform(self) -> bool:
        """Whether all matrices have the same shape and precision."""
        return len(set(zip(self.shapes, self.dtypes, strict=True))) == 1

    @property
    def stack(self) -> np.ndarray:
        """Return the matrices of `uniform` clients as one array of shape (n_clients, m, d).

        It is made when first asked for, in as much memory as the matrices themselves, unless they
        came as one.
        """
        if self._stack is None:
            self._stack = np.stack(self[:])
        return self._stack

    @property
    def labelled_stack(self) -> Labelled:
        """Return `stack` with the labels, of shape (n_clients, m)."""
        assert self.labels is not None
        if not isinstance(self.labels, np.ndarray):
            self.labels = np.stack(self.labels)
        return Labelled(self.stack, self.labels)

    @property
    def n_samples(self) -> int:
        """Samples of all clients."""
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
