"""Gaussian rows (Nguyen, Ene & Nguyen, Theorem 1.2), or rows with exactly the theorem's spectrum.

The paper is *Adaptive power iteration method for differentially private PCA*. Rows are drawn from
N(0, Σ̄²) with tr Σ̄² = 1, and divided by L = √log(n/β) with β = 0.05. The top eigenvector of Σ̄² is
v = (1, …, 1)/√d. The next m eigenvalues are ``(1 − κ) σ̄₁²``, where κ is the relative gap, and all
others are zero. The top eigenvalue is

    σ̄₁² = 1 / (1 + m (1 − κ)).

For a given κ, the choice of m determines the top eigenvalue. Therefore κ, the top eigenvalue and d
can be varied one at a time. The constant factor of the theorem's L is 1 here.

The relative gap of a random sample is not close to κ if κ is below √(d/n). The rows are computed
from a matrix of normal entries. With ``exact``, the columns of this matrix are orthonormalised, and
the gap of the rows is κ up to rounding. Exact rows are not divided by L, but scaled so that the
longest row has norm 1. With ``kind = sign``, the entries of the matrix are ±1 instead of normal,
which makes the coherence (largest entry of the top left singular vector) nearly minimal.

With ``moments``, the client's matrix is ``AᵀA/√d``, where A contains the exact rows. The algorithm
`dn26` gets these second moments (footnote 2 of Nguyen et al.). In this case, neighbouring data sets
are matrices ``AᵀA/√d`` that differ in one entry by at most 1. If an entry of ``AᵀA/√d`` changes by
1, the product with a unit vector v changes by at most the largest entry of v. One row of A has no
larger effect: a row of norm at most 1 changes ``AᵀA v/√d`` by at most 1/√d, and the largest entry
of v is at least 1/√d.

With ``canary``, the last row is the canary e₁, the row that an audit tries to detect. With
``removed``, the canary is missing. The canary is not divided by L. Its norm 1 is the largest that
the theorem's proof allows.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from fedcore.errors import InputError
from fedcore.linalg import gram_matrix, orth
from fedcore.problems.one_direction import top_share
from fedcore.validation import Count, Share, checked, one_of, require_valid, whole

FAILURE = 0.05  # β


@checked
def generate(
    rng: np.random.Generator,
    *,
    n_samples: Annotated[int, whole(2)] = 10_000,
    n_features: Annotated[int, whole(2)] = 20,
    gap: Share = 0.75,
    minor: Count | None = None,
    kind: Annotated[str, one_of(("normal", "sign"))] = "normal",
    exact: bool = False,
    moments: bool = False,
    canary: bool = False,
    removed: bool = False,
) -> list[np.ndarray]:
    """Draw the matrix of a single client: its rows, or with `moments` their second moments.

    Parameters
    ----------
    rng : numpy.random.Generator
        Not used with `canary`, because neighbouring data sets must share all other rows.
    n_samples, n_features : int
        Number n of rows, the canary included, and number d of features.
    gap : float
        Relative gap κ.
    minor : int, optional
        Number m of eigenvalues ``(1 − κ) σ̄₁²`` (default: d − 1).
    kind : str
        Distribution of the random entries from which the rows are computed.
    exact : bool
        If true, the rows have the prescribed spectrum exactly. If false, only their distribution
        has this spectrum.
    moments : bool
        Whether to return the second moments ``AᵀA/√d`` instead of the rows A (only with `exact`).
    canary, removed : bool
        With `canary`, the last row is the canary. With `removed`, the data set is the neighbouring
        one without the canary. `canary` excludes `exact`, and `removed` requires `canary`.

    Returns
    -------
    list of one ndarray of shape (n_samples, n_features)
        With `removed`, the array has one row fewer. With `moments`, the shape is (n_features,
        n_features).

    Raises
    ------
    InputError
        If `minor` is not below `n_features`, or `exact` is given with fewer than ``minor + 1``
        samples. If `moments` is given without `exact`, `removed` without `canary`, or `canary` with
        `exact`.
    """
    minor = n_features - 1 if minor is None else minor
    if minor >= n_features:
        raise InputError(
            f"minor must be at most {n_features - 1} for n_features = {n_features}, got {minor}"
        )
    if (moments and not exact) or (canary and exact) or (removed and not canary):
        raise InputError("moments needs exact, removed needs canary, and canary excludes exact")
    require_valid(whole(minor + 1 if exact else 1), n_samples=n_samples)
    stream = np.random.default_rng((n_samples, n_features)) if canary else rng
    size = (n_samples - canary, minor + 1)
    normal = kind == "normal"
    coordinates = stream.standard_normal(size) if normal else stream.choice((-1.0, 1.0), size)
    top = top_share(minor, gap)  # σ̄₁², as the trace is 1
    deviations = np.full(minor + 1, math.sqrt((1.0 - gap) * top))
    deviations[0] = math.sqrt(top)
    spread = deviations[:, None] * directions(n_features)[:, : minor + 1].T
    if not exact:
        rows = coordinates @ spread / math.sqrt(math.log(n_samples / FAILURE))
        return [np.vstack([rows, np.eye(n_features)[:1]]) if canary and not removed else rows]
    rows = orth(coordinates) @ spread
    rows /= np.linalg.norm(rows, axis=1).max()
    return [gram_matrix([rows]) / math.sqrt(n_features) if moments else rows]


def directions(n_features: int) -> np.ndarray:
    """Return a reflection matrix, shape (d, d), whose first column is (1, …, 1)/√d."""
    normal = np.full(n_features, -1.0 / math.sqrt(n_features))
    normal[0] += 1.0
    return np.eye(n_features) - (2.0 / (normal @ normal)) * np.outer(normal, normal)
