"""Data that several tests of private runs share."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture
def rows() -> np.ndarray:
    """Rows of unit norm, shape (60, 5), that spread most along the first two axes."""
    rows = np.random.default_rng(8).standard_normal((60, 5)) * [3, 2, 1, 1, 1]
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
