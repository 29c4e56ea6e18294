"""Pairs of neighbouring data sets, which differ in one record, for privacy audits.

One client holds rows on a sphere or on the axes. Its last row is the canary e₁; a neighbour has e₂
or zeros instead, or lacks the row. Replacing e₁ by e₂ changes a Gram matrix as much as replacing
one row of unit norm by another can. All other rows depend on the size of the data alone.
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
    """Gram matrices of two neighbours, G₁ with the canary and G₀ without, shape (d, d).

    Attributes
    ----------
    between : ndarray
        ½(G₁ + G₀).
    change : ndarray
        G₁ − G₀.
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
    """Draw the other rows and append the canary.

    Parameters
    ----------
    rng : numpy.random.Generator
        Not used: the other rows must not depend on the name of the problem.
    samples, n_features : int
        Rows including the canary, and columns.
    length : float
        Norm of the other rows.
    axes : bool
        Whether the other rows cycle through the axes, for audits of methods that estimate the
        spread of the rows; otherwise these rows are random on the sphere.
    lean : float
        The canary becomes e₁ − lean·e₂, and with `replaced` e₂ − lean·e₁, scaled to unit norm. This
        serves audits of methods in which a row a enters as a⟨a, w⟩: if w is near e₁ + e₂, the
        gradients of the two rows are opposite.
    held : float
        Second entry of the canary's row, with and without `zeroed`. It serves audits with
        neighbours that differ in one entry: the larger `held`, the more a singular vector rotates
        at an equal gap.
    replaced, removed, zeroed : bool
        Whether e₂ replaces the canary, the canary is removed, or its first entry is 0.

    Returns
    -------
    list of one ndarray of shape (samples, n_features), or with `removed` (samples − 1, n_features)

    Raises
    ------
    InputError
        For sizes below 2, more than one neighbour at once, `lean` with `removed` or `zeroed`,
        `held` with `replaced` or `removed`, or `lean` and `held` together.
    """
    one = replaced + removed + zeroed <= 1 and not (held and lean)
    if not one or (held and (replaced or removed)) or (lean and (removed or zeroed)):
        raise InputError(
            "the canary has one neighbour at a time: give one of replaced, removed and zeroed, "
            "lean only with replaced, and held only with zeroed"
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
    """Return the Gram matrices of `data` and its neighbour; both data sets give the same pair.

    Parameters
    ----------
    data : ndarray of shape (n, d)
        A result of `generate`, with or without the canary.
    neighbours : str
        A key of `NEIGHBOUR`.

    Raises
    ------
    InputError
        For any other relation.
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
