"""The promise on rows that sensitivities rest on: none is longer than a bound."""

from __future__ import annotations

import numpy as np

from fedcore.errors import InputError

# Rows of unit norm come out of a division and a square root: some roundings per feature.
SLACK = 1e-6


def clip_rows(data: np.ndarray, bound: float = 1.0) -> np.ndarray:
    """Scale the rows of Euclidean norm above `bound` down to it; a copy only where one is.

    Parameters
    ----------
    data : ndarray of shape (n, d)
    """
    norms = np.linalg.norm(data, axis=1, keepdims=True)
    return data if norms.max() <= bound else data * (bound / np.maximum(norms, bound))


def require_rows(data: np.ndarray, client: int, bound: float = 1.0) -> None:
    """Require that no row of a client is longer than `bound`, up to rounding."""
    norms = np.linalg.norm(data, axis=1)
    require_norm(float(norms.max()), bound, f"client {client}: row {int(norms.argmax())}")


def require_norm(
    norm: float, bound: float, what: str, *, advice: str = "or ask for clipping"
) -> None:
    """Require that the norm of a row is at most `bound`, up to rounding."""
    if norm > bound * (1.0 + SLACK):
        raise InputError(
            f"{what} has norm {norm:.6g}, above the {bound:g} that the privacy guarantee rests on: "
            f"scale the rows{advice and ', '}{advice}"
        )
