"""Second moments ``AᵀA/√d`` of spiked rows A, as a matrix of their own.

For footnote 2 of Nguyen, Ene & Nguyen (*Adaptive power iteration method for differentially private
PCA*): dN26, whose neighbours differ in one entry by at most 1, on AᵀA. A row a of norm at most 1
changes ``AᵀA v`` by no more than 1. Of a unit vector v the largest entry m is at least 1/√d. Hence
one row changes ``(AᵀA/√d) v`` by at most m, as one entry does, and the guarantee for entries of
this matrix is one for rows of A.
"""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np

from fedcore.generators import spiked_rows
from fedcore.linalg import gram_matrix
from fedcore.validation import Count, Share, checked, whole


@checked
def generate(
    rng: np.random.Generator,
    *,
    n_samples: Count = 10_000,
    n_features: Annotated[int, whole(2)] = 20,
    gap: Share = 0.75,
) -> list[np.ndarray]:
    """Draw the rows and return their second moments.

    Parameters
    ----------
    rng : numpy.random.Generator
    n_samples, n_features, gap : int, int, float
        As in `fedcore.generators.spiked_rows`.

    Returns
    -------
    list of one ndarray of shape (n_features, n_features)
    """
    rows = spiked_rows.generate(rng, n_samples=n_samples, n_features=n_features, gap=gap)
    return [gram_matrix(rows) / math.sqrt(n_features)]
