"""Data that differ in one record from their neighbours: what a privacy audit tells apart.

One client of rows on a sphere or on the axes, and the canary as the last row: e₁, for a neighbour
e₂ in its place, zeros, or no row at all. Replacing e₁ by e₂ moves a Gram matrix as much as rows of
unit norm can. All other rows depend on the size alone.
"""

from __future__ import annotations

import math
from typing import Annotated, NamedTuple

import numpy as np

from fedcore.errors import InputError
from fedcore.validation import NonNegative, Positive, checked, whole

# Where to find the neighbour under a relation of `fedcore.privacy.events.NEIGHBOURS`.
NEIGHBOUR = {
    "replace_one": "replaced",
    "add_or_remove_one": "removed",
    "zero_out_one": "zeroed",
    "change_entry": "zeroed",
}


class Pair(NamedTuple):
    """Gram matrices of two neighbours, G₁ with the canary and G₀ without, d × d.

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
    """Other rows, and the canary.

    Parameters
    ----------
    rng : numpy.random.Generator
        Not used: neighbours share their other rows, whatever their names.
    samples, n_features : int
        Rows, the canary among them, and columns.
    length : float
        Norm of the other rows.
    axes : bool
        Whether they are the axes in turn, and not random on the sphere: of use where a method
        estimates from them how far rows spread.
    lean : float
        Of rows that are replaced, e₁ − lean·e₂ and e₂ − lean·e₁, to unit norm. Of use where a row a
        enters as a⟨a, w⟩ with w near e₁ + e₂: the two gradients become opposite.
    held : float
        Second entry of the canary's row on all neighbours. Of use where a neighbour has one entry
        changed: the larger `held`, the more a singular vector turns for a gap as large.
    replaced, removed, zeroed : bool
        Whether the canary is e₂, gone (a row less), or its first entry 0, and not e₁.

    Returns
    -------
    list of one ndarray of shape (samples, n_features), or with `removed` (samples − 1, n_features)

    Raises
    ------
    InputError
        For sizes below 2, more than one neighbour at once, or `held` or `lean` with another one
        than theirs.
    """
    one = replaced + removed + zeroed <= 1 and not (held and lean)
    if not one or (held and (replaced or removed)) or (lean and (removed or zeroed)):
        raise InputError(
            "the canary has one neighbour at a time: give one of replaced, removed and zeroed, "
            "lean with the first alone, and held with the last alone"
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


def pair(data: np.ndarray, neighbours: str) -> Pair:
    """Return the Gram matrices of `data` and of its neighbour, the same for either of the two.

    Parameters
    ----------
    data : ndarray of shape (n, d)
        What `generate` made, with or without the canary.
    neighbours : str
        A key of `NEIGHBOUR`.
    """
    if neighbours not in NEIGHBOUR:
        raise InputError(f"there is no canary for neighbours by {neighbours!r}")
    row, instead = np.eye(data.shape[1])[0], np.zeros(data.shape[1])
    if neighbours == "replace_one":
        instead[:2] = np.sort(data[-1, :2])
        row[:2] = instead[1::-1]
    if neighbours == "change_entry":
        row[1] = instead[1] = data[-1, 1]
    gone = neighbours == "add_or_remove_one" and not np.array_equal(data[-1], row)
    others = data if gone else data[:-1]
    with_row, without = np.outer(row, row), np.outer(instead, instead)
    return Pair(others.T @ others + 0.5 * (with_row + without), with_row - without)
