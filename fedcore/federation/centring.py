"""The mean of all clients' samples and its subtraction, without loss of digits; and scales.

Sums add differences to the client's first sample, in double precision and in blocks of rows. Their
rounding error is then relative to the spread of the data, not to their distance from the origin.

Each client's sum, the sum over clients and the division round the mean, each by 2⁻⁵³ of its size.
What that leaves in the data is their mean after it was subtracted. The covariance feels it squared:
by k² 2⁻⁶⁶ of a feature's variance at most, with k roundings, if its mean is at most `FAR` = 2²⁰
times its standard deviation. A client counts its features that are farther from the origin than
that. If no client has any, then no feature of all clients together is farther; otherwise the rest
mean is exchanged and subtracted in a second pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcore.errors import InputError
from fedcore.sparse import SparseRows

ROWS = 4096  # rows per block, so that copies in double precision stay small
FAR = 2.0**20  # standard deviations


def sum_and_count(data: np.ndarray | SparseRows) -> np.ndarray:
    """Sum of the rows, followed by their number, as one message in double precision.

    Parameters
    ----------
    data : ndarray or SparseRows of shape (m, d)

    Returns
    -------
    ndarray of shape (d + 1,)
        Not finite when the sum overflows.
    """
    if isinstance(data, SparseRows) and not data.has_whole_columns():
        return np.append(data.sum(), len(data))
    if isinstance(data, SparseRows):
        first = next(data.blocks(1))[0]
        with np.errstate(over="ignore", invalid="ignore"):
            return np.append(len(data) * first + data.sum_less(first), len(data))
    first = data[0].astype(np.float64)
    rest = np.zeros_like(first)
    with np.errstate(over="ignore", invalid="ignore"):  # `mean_of` checks the total
        for start in range(0, len(data), ROWS):
            rest += np.subtract(data[start : start + ROWS], first, dtype=np.float64).sum(axis=0)
        return np.append(len(data) * first + rest, len(data))


def sum_count_and_far(data: np.ndarray | SparseRows) -> np.ndarray:
    """`sum_and_count`, followed by the number of features that are far from the origin.

    The spread is that of the first `ROWS` rows, as it was over all of them: not more than it is. A
    column with zeros has a spread above its mean over the root of the number of rows.
    """
    if isinstance(data, SparseRows) and not data.has_whole_columns():
        return np.concatenate([data.sum(), [len(data), 0]])
    found = sum_and_count(data)
    n, first = len(data), data[:ROWS]
    with np.errstate(over="ignore", invalid="ignore"):
        mean = found[:-1] / n
        if isinstance(first, SparseRows):
            squares = SparseRows(first.matrix, mean).squares_of_columns()
        else:
            rest = np.subtract(first, mean, dtype=np.float64)
            squares = np.einsum("ij,ij->j", rest, rest)
        return np.append(found, np.sum(np.abs(mean) > FAR * np.sqrt(squares / n)))


def mean_of(total: np.ndarray) -> np.ndarray:
    """Mean of all samples, shape (d,), from the sum of what `sum_and_count` returns.

    Raises
    ------
    InputError
        When the sums have overflowed.
    """
    mean = total[:-1] / total[-1]
    if not np.isfinite(mean).all():
        feature = int(np.argmin(np.isfinite(mean)))
        raise InputError(f"the sum of feature {feature} is not finite: divide the data by a scale")
    return mean


def centred(data: Any, mean: np.ndarray) -> Any:
    """Rows minus the mean: a new matrix in the precision of the data, each entry rounded once.

    Parameters
    ----------
    data : ndarray or SparseRows of shape (m, d)
        Sparse rows keep their stored entries, and their products subtract the mean.
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
    """Sum of the squares of every column, in double precision, shape (d,)."""
    if isinstance(data, SparseRows):
        return data.squares_of_columns()
    return np.einsum("ij,ij->j", data, data, dtype=np.float64)


def scaled(data: Any, scales: np.ndarray) -> Any:
    """Columns divided by `scales`, in the precision of the data; sparse rows stay sparse."""
    if isinstance(data, SparseRows):
        return data.over(scales)
    return (data / scales).astype(data.dtype, copy=False)
