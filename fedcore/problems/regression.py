"""Linear regression with a shared representation, ``y = ⟨w_i, Bᵀ x⟩ + noise``.

Collins, Hassani, Mokhtari & Shakkottai, *Exploiting shared representations for personalized
federated learning* (ICML 2021), Section 4. Every function takes the arrays of one client, or those
of several clients of equal size, stacked along a leading axis.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Truth(NamedTuple):
    """The model behind the labels, and samples that no client trains on.

    New clients have their own heads, and samples to fit heads on.
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
        """``W* B*ᵀ``, the true coefficients of every client, shape (n_clients, d)."""
        return self.heads @ self.representation.T

    @property
    def head_singular_values(self) -> np.ndarray:
        """Singular values of ``W*/√n``, descending, of shape (k,).

        If all clients take part, the first is σ̄_max,* and the last σ̄_min,*.
        """
        return np.linalg.svd(self.heads, compute_uv=False) / np.sqrt(len(self.heads))


def least_squares(A: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Minimum-norm solution of ``min ‖A w − y‖``, for one problem or a stack.

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
    """``X θ``, shape (…, m), for samples of shape (…, m, d) and coefficients of shape (…, d)."""
    return (X @ models[..., None])[..., 0]


def model_gradient(X: np.ndarray, residual: np.ndarray) -> np.ndarray:
    """Gradient ``Xᵀ r / m`` of ``‖X θ − y‖² / 2m`` in θ, shape (…, d)."""
    return (residual[..., None, :] @ X)[..., 0, :] / X.shape[-2]
