"""Gaussian rows of Theorem 1.2 of `dppower`, and rows of the same spectrum without sampling.

Nguyen, Ene & Nguyen, *Adaptive power iteration method for differentially private PCA*: rows drawn
from N(0, Σ̄²) with tr Σ̄² = 1 and divided by L = √log(n/β). Σ̄² has the top direction
v = (1, …, 1)/√d and m further directions, all with the eigenvalue ``(1 − κ) σ̄₁²``; all other
eigenvalues are zero:

    σ̄₁² = 1 / (1 + m (1 − κ)).

So the relative gap κ, the top eigenvalue (through m) and d can be varied one at a time. The
constant of L is 1.

``exact``: the columns of the standard normal matrix are orthonormalised first, so that the gap of
the rows themselves is κ up to rounding. For κ below √(d/n), the gap of a random sample is not close
to κ. In place of the factor 1/L, these exact rows are scaled so that the longest has norm 1.
``kind`` = ``sign`` takes ±1 in place of the normal entries: the rows' coherence is then about the
least possible.

``moments``: the client holds ``AᵀA/√d`` of the exact rows A, for dN26 on AᵀA (footnote 2), whose
neighbours differ in one entry by at most 1. A row of norm at most 1 changes ``AᵀA v`` by no more
than 1, and the largest entry m of a unit vector v is at least 1/√d. Hence one row changes
``(AᵀA/√d) v`` by at most m, as one entry does.

``canary``: the last row is the canary e₁ of `fedcore.generators.canary`, or with ``removed`` there
is no such row. Before the factor 1/L its norm is L, the longest that the theorem's proof allows.
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
    """Draw rows of one client.

    Parameters
    ----------
    rng : numpy.random.Generator
        Not used with `canary`: the other rows must not depend on the name of the problem.
    n_samples, n_features : int
        n, with the canary, and d.
    gap : float
        κ.
    minor : int, optional
        m; all d − 1 other directions by default.
    kind : str
        Distribution of the coordinates before they are scaled.
    exact : bool
        Whether the rows have exactly this spectrum, and not only their distribution.
    moments : bool
        Whether the second moments replace the rows; only with `exact`.
    canary, removed : bool
        Whether the last row is the canary, and whether it is missing; not with `exact`.

    Returns
    -------
    list of one ndarray of shape (n_samples, n_features)
        With `removed`, one row less; with `moments`, of shape (n_features, n_features).

    Raises
    ------
    InputError
        For more minor directions than there are, `exact` with fewer rows than directions, or
        options that exclude or need another.
    """
    minor = n_features - 1 if minor is None else minor
    if minor >= n_features:
        raise InputError(f"minor = {minor}: n_features = {n_features} leaves {n_features - 1}")
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
    """Return an orthogonal matrix with first column (1, …, 1)/√d, a reflection, shape (d, d)."""
    normal = np.full(n_features, -1.0 / math.sqrt(n_features))
    normal[0] += 1.0
    return np.eye(n_features) - (2.0 / (normal @ normal)) * np.outer(normal, normal)
