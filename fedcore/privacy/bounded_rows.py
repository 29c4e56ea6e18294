"""Ensure what all sensitivities assume: rows of bounded norm, and sums in double precision.

A sum of n float32 terms has a relative rounding error of up to n·6e−8. If one row is removed, the
error changes. With more than about 10⁵ rows, this change can exceed the row's own contribution. A
noisy sum then depends on the row more strongly than the run's count of privacy loss assumes
(Casacuberta et al., *Widespread underestimation of sensitivity in differentially private libraries
and how to fix it*, CCS 2022). In double precision the relative error of the sum is at most about
n·1e−16.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from fedcore import words
from fedcore.errors import InputError
from fedcore.sparse import SparseRows

CLIP = (
    "as `fedcore pca` does by public --bounds, or clip them to the bound by clip=True, on the "
    "command line --set clip=true"
)
# Relative rounding error of a normalised row's norm. A row that is longer than the bound by this
# slack changes a product by the factor 1 + 2·slack, and its ε is larger by that factor.
SLACK = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}
LONGEST_ROW = 2.0**200  # a sum of its fourth powers over all rows is still finite
TINY = float(np.finfo(np.float64).tiny)
BLOCK = 65_536  # rows that `row_blocks` gives at a time
NUMBERS = 1 << 20  # numbers that are converted at a time for a product: 8 MB, about a CPU's cache


def row_norms(data: np.ndarray | SparseRows) -> np.ndarray:
    """Return the rows' Euclidean norms in double precision, or infinity for norms above 1e154."""
    if isinstance(data, SparseRows):
        return data.row_norms()
    with np.errstate(over="ignore"):
        return np.sqrt(np.einsum("ij,ij->i", data, data, dtype=np.float64))


def clip_rows(data: Any, bound: float = 1.0) -> Any:
    """Scale rows of norm above `bound` to norm `bound`; if no row is longer, return `data` itself.

    Parameters
    ----------
    data : ndarray or SparseRows of shape (n, d)
    """
    norms = row_norms(data)
    if norms.max() <= bound:
        return data
    if isinstance(data, SparseRows):
        largest = np.where(norms > bound, data.largest_of_rows(), 1.0)  # as below
        rows = data.astype(np.float64).scaled_rows(1.0 / largest)
        factors = np.where(norms > bound, bound / np.maximum(row_norms(rows), TINY), 1.0)
        return rows.scaled_rows(factors).astype(data.dtype)
    clipped, longer = data.copy(), norms > bound
    rows = data[longer].astype(np.float64)
    rows /= np.abs(rows).max(axis=1, keepdims=True)  # the largest rows' squares overflow
    clipped[longer] = rows * (bound / row_norms(rows))[:, None]
    return clipped


def in_double(data: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield pairs ``(slice, rows)``, where `rows` are the rows of this slice in double precision.

    Data in float64 are yielded as one block, without a copy. Other blocks share their memory: use
    a block before you take the next one.

    Parameters
    ----------
    data : ndarray of shape (n, d)
    """
    if data.dtype == np.float64:
        yield slice(None), data
        return
    n, d = data.shape
    room = np.empty((max(1, min(n, NUMBERS // max(1, d))), d))
    for first in range(0, n, len(room)):
        some = slice(first, min(first + len(room), n))
        rows = room[: some.stop - first]
        rows[...] = data[some]
        yield some, rows


def row_blocks(data: np.ndarray) -> list[np.ndarray]:
    """Return views of at most `BLOCK` rows, or all of `data` if they are in double precision."""
    if data.dtype == np.float64:
        return [data]
    return [data[first : first + BLOCK] for first in range(0, len(data), BLOCK)]


def product(data: np.ndarray, X: np.ndarray) -> np.ndarray:
    """Return ``data @ X``, computed in double precision, shape (n, k)."""
    return np.concatenate([block @ X for _, block in in_double(data)])


def transposed_product(data: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return ``data.T @ Y``, summed in double precision, shape (d, k)."""
    return sum(block.T @ Y[rows] for rows, block in in_double(data))


def without_endless_rows(data: np.ndarray) -> np.ndarray:
    """Return a copy in double precision, in which rows of norm above `LONGEST_ROW` are zero.

    Private methods that accept rows of any norm need this copy. Products with rows of norm above
    `LONGEST_ROW` could overflow, and a NaN in the output would reveal such a row.

    Parameters
    ----------
    data : ndarray of shape (n, d)
    """
    rows = np.array(data, dtype=np.float64)
    rows[~(row_norms(rows) <= LONGEST_ROW)] = 0.0
    return rows


def require_rows(data: np.ndarray, client: int, bound: float = 1.0) -> None:
    """Raise an error unless all rows of a client have norm at most `bound`, up to rounding."""
    norms, who = row_norms(data), words.client(client)
    slack = SLACK.get(data.dtype, 0.0)
    row = words.row(who, int(norms.argmax()))
    require_norm(float(norms.max()), bound, f"{who}: row {row}{words.EXACT}", slack=slack)


def require_norm(
    norm: float, bound: float, what: str, *, slack: float = 1e-6, advice: str = CLIP
) -> None:
    """Raise an error unless `norm` is at most `bound`, up to a relative error of `slack`."""
    if norm > bound * (1.0 + slack):
        raise InputError(
            f"{what} has norm {norm:.6g}, above the bound {bound:g} of the privacy guarantee: "
            f"scale the rows{advice and ', '}{advice}"
        )
