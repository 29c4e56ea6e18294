"""Pairs of data sets for privacy audits; the data sets of a pair differ only in the last row.

A single client holds all rows, which lie on a sphere or on the coordinate axes. In one data set of
a pair, the last row is the canary e₁, the row that an audit tries to detect. In the other data set,
the last row is e₂, has a zero in place of the 1, or is missing. Replacing one unit row by another
cannot change the Gram matrix more than replacing e₁ by e₂. All other rows are the same in both data
sets.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from fedcore.errors import InputError
from fedcore.validation import NonNegative, Positive, checked, whole

# Relation of `fedcore.privacy.events.NEIGHBOURS` -> parameter that makes the neighbour.
NEIGHBOUR = {
    "replace_one": "replaced",
    "add_or_remove_one": "removed",
    "zero_out_one": "zeroed",
    "change_entry": "zeroed",
}


class NeighbourPair(NamedTuple):
    """Mean and difference of two Gram matrices (d, d): G₁ with the canary, and G₀ without it.

    Attributes
    ----------
    between : ndarray
        Mean ½(G₁ + G₀).
    change : ndarray
        Difference G₁ − G₀.
    """

    between: np.ndarray
    change: np.ndarray


@checked
def generate(
    rng: np.random.Generator,
    *,
    samples: Annotated[int, whole(2)] = 20,
    n_features: Annotated[int, whole(2)] = 2,
    length: Positive = 1.0,
    axes: bool = False,
    lean: NonNegative = 0.0,
    held: NonNegative = 0.0,
    replaced: bool = False,
    removed: bool = False,
    zeroed: bool = False,
) -> list[np.ndarray]:
    """Return the single client's rows; by default, the last row is the canary.

    Parameters
    ----------
    rng : numpy.random.Generator
        Not used, because neighbouring data sets must share all rows but the last.
    samples, n_features : int
        Number of rows, the canary included, and number of columns.
    length : float
        Norm of every row except the canary.
    axes : bool
        If true, all rows except the canary lie on the coordinate axes in turn. If false, these rows
        are random points on the sphere. Use rows on the axes to audit methods that estimate the
        spread of the rows.
    lean : float
        The last row is e₁ − lean·e₂ or, with `replaced`, e₂ − lean·e₁, scaled to unit norm. Use a
        positive `lean` to audit methods whose gradient at the vector w is a⟨a, w⟩ for a row a. The
        canary and its replacement have nearly opposite gradients if w is near e₁ + e₂ and `lean` is
        near 1.
    held : float
        Second entry of the last row; `zeroed` does not change this entry. Use a positive `held` to
        audit methods whose privacy guarantee is for data sets that differ in one entry. The larger
        `held` is, the more a zeroed first entry rotates a singular vector, if the gap between the
        singular values is fixed.
    replaced, removed, zeroed : bool
        If one of these is true, the result is the neighbouring data set; at most one is true. With
        `replaced`, e₂ replaces the canary; with `removed`, the canary is missing; with `zeroed`,
        its first entry is 0.

    Returns
    -------
    list of one ndarray of shape (samples, n_features), or with `removed` (samples − 1, n_features)

    Raises
    ------
    InputError
        If a size is below 2, or more than one of `replaced`, `removed` and `zeroed` is true. If
        `lean` is combined with `removed`, `zeroed` or `held`. If `held` is combined with `replaced`
        or `removed`.
    """
    one = replaced + removed + zeroed <= 1 and not (held and lean)
    if not one or (held and (replaced or removed)) or (lean and (removed or zeroed)):
        raise InputError(
            "the canary has one neighbour at a time: give at most one of replaced, removed and "
            "zeroed, lean without removed, zeroed and held, and held without replaced and removed"
        )
    if axes:
        others = np.eye(n_features)[np.arange(samples - 1) % n_features]
    else:
        drawn = np.random.default_rng((samples, n_features))
        others = drawn.standard_normal((samples - 1, n_features))
    others *= length / np.linalg.norm(others, axis=1, keepdims=True)
    canary = np.zeros((1, n_features))
    canary[0, :2] = float(not zeroed), held - lean
    canary /= math.hypot(1.0, lean)
    if replaced:
        canary[0, :2] = canary[0, 1::-1]
    return [others if removed else np.vstack([others, canary])]


def pair(data: np.ndarray, neighbours: str) -> NeighbourPair:
    """Return the mean and difference of the Gram matrices of `data` and its neighbour.

    The result is the same whether `data` contains the canary or is the neighbour without it.

    Parameters
    ----------
    data : ndarray of shape (n, d)
        A result of `generate`, with or without the canary.
    neighbours : str
        Name of the way in which neighbouring data sets differ, a key of `NEIGHBOUR`.

    Raises
    ------
    InputError
        If `neighbours` is not a key of `NEIGHBOUR`.
    """
    if neighbours not in NEIGHBOUR:
        known = ", ".join(NEIGHBOUR)
        raise InputError(f"there is no canary for neighbours = {neighbours!r}; use one of {known}")
    row, instead = np.eye(data.shape[1])[0], np.zeros(data.shape[1])
    if neighbours == "replace_one":
        instead[:2] = np.sort(data[-1, :2])
        row[:2] = instead[1::-1]
    if neighbours == "change_entry":
        row[1] = instead[1] = data[-1, 1]
    gone = neighbours == "add_or_remove_one" and not np.array_equal(data[-1], row)
    others = data if gone else data[:-1]
    with_row, without = np.outer(row, row), np.outer(instead, instead)
    return NeighbourPair(others.T @ others + 0.5 * (with_row + without), with_row - without)
