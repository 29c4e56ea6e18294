"""Neighbouring data sets of Gaussian rows over L, for an audit of Theorem 1.2 of `dppower`.

The rows of `fedcore.generators.gaussian_rows`, and at their end the canary e₁ of
`fedcore.generators.canary`, or with `removed` nothing. Before the factor 1/L the canary has norm L,
the longest that the theorem's proof allows. All other rows depend on the size alone.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from fedcore.generators import gaussian_rows
from fedcore.validation import Share, checked, whole


@checked
def generate(
    rng: np.random.Generator,
    *,
    samples: Annotated[int, whole(2)] = 1000,
    n_features: Annotated[int, whole(2)] = 2,
    gap: Share = 0.75,
    removed: bool = False,
) -> list[np.ndarray]:
    """Draw the other rows and append the canary.

    Parameters
    ----------
    rng : numpy.random.Generator
        Not used: the other rows must not depend on the name of the problem.
    samples, n_features : int
        Rows including the canary, and columns.
    gap : float
        κ̄.
    removed : bool
        Whether the canary is missing.

    Returns
    -------
    list of one ndarray of shape (samples, n_features), or with `removed` (samples − 1, n_features)
    """
    drawn = np.random.default_rng((samples, n_features))
    (others,) = gaussian_rows.generate(drawn, n_samples=samples - 1, n_features=n_features, gap=gap)
    return [others if removed else np.vstack([others, np.eye(n_features)[:1]])]
