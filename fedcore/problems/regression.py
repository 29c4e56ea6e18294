"""Linear regression with a shared representation, ``y = ⟨w_i, Bᵀ x⟩ + noise``.

The model is from Collins, Hassani, Mokhtari & Shakkottai, *Exploiting shared representations for
personalized federated learning* (ICML 2021), Section 4. Every function takes the arrays of one
client, or the stacked arrays of several clients of equal size.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Truth(NamedTuple):
    """Model that generated the labels, and samples on which no client trains.

    The fields ``new_…`` describe clients that join after training: their true heads w_i, and the
    labelled samples to which these clients fit their heads.
    """

    representation: np.ndarray  # B*, (d, k), orthonormal columns
    heads: np.ndarray  # W*, (n_clients, k)
    noise: np.ndarray  # standard deviation of the labels' noise, 0-d
    test_features: np.ndarray  # (n_clients, m_test, d)
    test_noise: np.ndarray  # (n_clients, m_test), noise on the test labels
    new_heads: np.ndarray  # (n_new, k)
    new_features: np.ndarray  # (n_new, m_new, d)
    new_labels: np.ndarray  # (n_new, m_new)

    @property
    def models(self) -> np.ndarray:
        """True coefficients ``W* B*ᵀ`` of all clients, shape (n_clients, d)."""
        return self.heads @ self.representation.T

    @property
    def head_singular_values(self) -> np.ndarray:
        """Singular values of the scaled heads ``W*/√n``, descending, shape (k,).

        If all clients take part in every round, the first value is σ̄_max,* of Collins et al. (ICML
        2021), and the last is σ̄_min,*.
        """
        return np.linalg.svd(self.heads, compute_uv=False) / np.sqrt(len(self.heads))


def least_squares(A: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the minimum-norm solution w of ``min ‖A w − y‖``, for one A or a stack of them.

    Parameters
    ----------
    A : ndarray of shape (…, m, k)
    y : ndarray of shape (…, m)

    Returns
    -------
    ndarray of shape (…, k)
        NaN if `A` is not finite.
    """
    m, k = A.shape[-2:]
    if m >= k:
        Q, R = np.linalg.qr(A)
        diagonal = np.abs(np.diagonal(R, axis1=-2, axis2=-1))
        tolerance = m * np.finfo(A.dtype).eps
        if (diagonal.min(axis=-1) > tolerance * diagonal.max(axis=-1)).all():
            return np.linalg.solve(R, np.swapaxes(Q, -1, -2) @ y[..., None])[..., 0]
    if not np.isfinite(A).all():  # the SVD would not converge
        return np.full((*A.shape[:-2], k), np.nan, A.dtype)
    return (np.linalg.pinv(A) @ y[..., None])[..., 0]


def predict(X: np.ndarray, models: np.ndarray) -> np.ndarray:
    """Return ``X θ``, shape (…, m), for samples X (…, m, d) and coefficients θ (…, d)."""
    return (X @ models[..., None])[..., 0]


def model_gradient(X: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Return the gradient ``Xᵀ r / m``, shape (…, d), of ``‖X θ − y‖² / 2m``, with r = X θ − y."""
    return (residual[..., None, :] @ X)[..., 0, :] / X.shape[-2]
