"""Probabilistic PCA, the Gaussian model whose log-likelihood `FederatedPCA.score` returns.

The model comes from Tipping & Bishop, *Probabilistic principal component analysis* (JRSS-B 1999),
and `sklearn.decomposition.PCA` uses the same model. Samples minus their mean, divided by the
features' scales, are Gaussian with covariance ``W diag(λ) Wᵀ + σ² (I − W Wᵀ)``. The columns of W
are the components, λ contains their variances, and σ² is the variance along every other direction.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from fedcore.errors import InputError
from fedcore.privacy.bounded_rows import row_norms
from fedcore.sparse import SparseRows

ENTRIES = 1 << 17  # numbers in a block of sparse samples that is made dense


class Model(NamedTuple):
    """Gaussian model with covariance ``D (W diag(λ) Wᵀ + σ² (I − W Wᵀ)) D``.

    Attributes
    ----------
    components : ndarray of shape (r, d)
        Principal components Wᵀ, with orthonormal rows.
    variances : ndarray of shape (r,)
        Variances λ along the components.
    noise : float
        Variance σ² of each direction orthogonal to the components.
    scale : ndarray of shape (d,)
        The diagonal of D: the scales of the features, in data units.
    """

    components: np.ndarray
    variances: np.ndarray
    noise: float
    scale: np.ndarray

    def covariance(self) -> np.ndarray:
        """Return the covariance, in data units squared, shape (d, d)."""
        inside = self._sum(np.maximum(self.variances - self.noise, 0.0), self.noise)
        return inside * np.multiply.outer(self.scale, self.scale)

    def precision(self) -> np.ndarray:
        """Return the inverse of the covariance, shape (d, d).

        Raises
        ------
        InputError
            If the model has directions without variance.
        """
        variances, rest = self._regular()
        return self._sum(1.0 / variances - rest, rest) / np.multiply.outer(self.scale, self.scale)

    def log_likelihood(self, rows: Any) -> np.ndarray:
        """Return the log-density of every sample, shape (n,).

        Parameters
        ----------
        rows : ndarray or sparse rows of shape (n, d)
            Samples minus the mean, divided by the features' scales.

        Raises
        ------
        InputError
            If the model has directions without variance.
        """
        variances, rest = self._regular()
        r, d = self.components.shape
        parts: Any = [rows]
        if isinstance(rows, SparseRows):
            rows = rows.astype(np.float64)
            parts = rows.blocks(max(1, ENTRIES // d))
        squares = np.square(np.concatenate([*map(row_norms, parts)]))
        scores = rows @ self.components.T.astype(rows.dtype)
        inside = np.square(scores, dtype=np.float64)
        outside = np.maximum(squares - inside.sum(axis=1), 0.0)
        logs = np.log(variances).sum() - (d - r) * np.log(rest) + 2 * np.log(self.scale).sum()
        return -0.5 * (d * np.log(2 * np.pi) + logs + inside @ (1.0 / variances) + rest * outside)

    def _regular(self) -> tuple[np.ndarray, float]:
        """Return the variances along the components, and 1/σ², which is arbitrary if r = d."""
        r, d = self.components.shape
        variances = np.maximum(self.variances, self.noise)
        least = 16 * np.finfo(np.float64).eps * variances.max()  # below this it is rounding
        if not variances.min() > least or (r < d and not self.noise > least):
            raise InputError(
                "the model has directions without any variance, so samples have no density: "
                "fit fewer components, or more samples"
            )
        return variances, 1.0 / (self.noise if r < d else variances.max())

    def _sum(self, along: np.ndarray, everywhere: float) -> np.ndarray:
        found = (self.components.T * along) @ self.components
        found.flat[:: len(found) + 1] += everywhere
        return found
