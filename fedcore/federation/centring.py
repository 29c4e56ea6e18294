"""Subtract the mean of all clients' samples without losing digits, and divide features by scales.

Sums are computed in double precision, one block of rows at a time. If a feature's mean at a client
is above `NEAR` = 2¹⁰ times its standard deviation, the client sums the differences of its samples
from its first sample. The rounding error of the sum is then relative to the spread of the data, not
to their distance from the origin.

The mean is rounded in each client's sum, in the sum over clients and in the division, each time by
up to 2⁻⁵³ of its size. After the subtraction, the mean of the data is therefore not exactly zero,
and the square of this remaining mean enters the covariance. Suppose that a feature's mean is at
most `FAR` = 2²⁰ times its standard deviation. After k roundings, the square of the remaining mean
is then at most k² 2⁻⁶⁶ of the feature's variance. Each client counts the features whose mean is
above `FAR` times their standard deviation. If all counts are zero, no feature of the pooled samples
has a mean above `FAR` times its standard deviation. If some count is positive, a second pass
computes and subtracts the remaining mean.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fedcore.errors import InputError
from fedcore.problems.clients import Clients
from fedcore.sparse import SparseRows

ROWS = 4096  # rows per block, so that copies in double precision stay small
NEAR, FAR = 2.0**10, 2.0**20  # standard deviations
BUFFER = 1 << 16  # numbers in a block of several clients' rows; such a block fits in the cache


class Centred(Clients):
    """Dense client matrices minus one mean; the first access to a matrix copies and centres all.

    Parameters
    ----------
    clients : Clients
        Clients before the mean is subtracted.
    mean : ndarray of shape (d,)
    """

    def __init__(self, clients: Clients, mean: np.ndarray) -> None:
        self._given, self._mean = clients, mean
        super().__init__(
            lambda: [centred(data, mean) for data in clients], clients.shapes, clients.dtypes,
            labels=clients.labels,
        )  # fmt: skip

    def blocks(self) -> Iterator[np.ndarray]:
        """Yield the rows minus the mean, in order, in blocks; a block overwrites the one before."""
        d, dtype = self.n_features, np.result_type(*self.dtypes)
        out, filled = np.empty((max(BUFFER // d, d), d), dtype), 0
        means = np.tile(self._mean, (len(out), 1))  # subtracted faster than one row is from all
        for data in blocks(self._given):
            start = 0
            while start < len(data):
                rows = data[start : start + len(out) - filled]
                less = out[filled : filled + len(rows)]
                mean = means[: len(rows)]
                np.subtract(rows, mean, less, dtype=np.float64, casting="same_kind")
                start, filled = start + len(rows), filled + len(rows)
                if filled == len(out):
                    yield out
                    filled = 0
        if filled:
            yield out[:filled]


def blocks(clients: Clients) -> Iterator[np.ndarray]:
    """Yield the rows of dense clients in order and in blocks, without copying all rows at once."""
    yield from clients.blocks() if isinstance(clients, Centred) else clients


def sum_and_count(data: np.ndarray | SparseRows) -> np.ndarray:
    """Return the sum of the rows followed by their number, as one array in double precision.

    If at least one of the n entries of a column is zero, the column's standard deviation is at
    least its mean divided by √n. A sparse column in which some row stores no entry (a zero) is
    therefore summed directly. A sparse column in which every row stores an entry is summed like a
    dense column, by differences from the first row.

    Parameters
    ----------
    data : ndarray or SparseRows of shape (n, d)
        Samples of one client, as rows.

    Returns
    -------
    ndarray of shape (d + 1,)
        The array is not finite if the sum overflows.
    """
    if isinstance(data, SparseRows):
        at, block = data.whole_columns()
        found = np.append(data.sum(), len(data))
        found[at] = sum_and_count(block)[:-1]
        return found
    first = data[0].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):  # `mean_of` checks the total
        return np.append(len(data) * first + _sum(data, first), len(data))


def _sum(data: np.ndarray, less: np.ndarray | None = None) -> np.ndarray:
    """Return the sum of all rows, each minus `less` if `less` is given, in double precision."""
    found: Any = 0.0
    for start in range(0, len(data), ROWS):
        rows = data[start : start + ROWS]
        if less is not None:
            rows = np.subtract(rows, less, dtype=np.float64)
        found = found + np.ones(len(rows)) @ rows.astype(np.float64, copy=False)
    return found


def sum_count_and_far(data: np.ndarray | SparseRows) -> np.ndarray:
    """Return the result of `sum_and_count`, followed by the number of features far from the origin.

    A feature is far from the origin if its mean is above `FAR` times its standard deviation. To
    save time, only the squared deviations of the first `ROWS` rows are added up, which gives a
    lower bound on the standard deviation.
    """
    if isinstance(data, SparseRows):
        at, block = data.whole_columns()
        found = np.concatenate([data.sum(), [len(data), 0]])
        own = sum_count_and_far(block)
        found[at], found[-1] = own[:-2], own[-1]
        return found
    n, first = len(data), data[:ROWS]
    with np.errstate(over="ignore", invalid="ignore"):
        total = _sum(data)
        mean = total if n == len(first) else _sum(first)
        spread = squares_of_features(first) - mean * mean / len(first)
        if (total * total <= n * NEAR**2 * spread).all():
            return np.concatenate([total, [n, 0]])
        found = sum_and_count(data)
        mean = found[:-1] / n
        squares = squares_of_features(np.subtract(first, mean, dtype=np.float64))
        return np.append(found, np.sum(np.abs(mean) > FAR * np.sqrt(squares / n)))


def mean_of(total: np.ndarray) -> np.ndarray:
    """Return the mean of all samples, shape (d,), from the sum of all clients' `sum_and_count`.

    Raises
    ------
    InputError
        If the sums have overflowed.
    """
    mean = total[:-1] / total[-1]
    if not np.isfinite(mean).all():
        feature = int(np.argmin(np.isfinite(mean)))
        raise InputError(
            f"the sum of feature {feature} is not finite: divide the data by a large number"
        )
    return mean


def centred(data: Any, mean: np.ndarray) -> Any:
    """Return the rows minus the mean as a new matrix in the precision of the data.

    Each entry is rounded once.

    Parameters
    ----------
    data : ndarray or SparseRows of shape (n, d)
        Samples of one client. Sparse rows keep their stored entries; the mean is subtracted in
        products with these rows.
    mean : ndarray of shape (d,)
    """
    if isinstance(data, SparseRows):
        return data.centred(mean)
    out = np.empty_like(data, order="C")
    for start in range(0, len(data), ROWS):
        rows = slice(start, start + ROWS)
        out[rows] = np.subtract(data[rows], mean, dtype=np.float64)
    return out


def squares_of_features(data: np.ndarray | SparseRows) -> np.ndarray:
    """Return the sum of the squares of each column, in double precision, shape (d,)."""
    if isinstance(data, SparseRows):
        return data.squares_of_columns()
    return np.einsum("ij,ij->j", data, data, dtype=np.float64)


def scaled(data: Any, scales: np.ndarray) -> Any:
    """Return columns divided by `scales`, in the precision of the data; sparse rows stay sparse."""
    if isinstance(data, SparseRows):
        return data.over(scales)
    return (data / scales).astype(data.dtype, copy=False)
