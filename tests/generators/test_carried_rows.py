"""Rows of the paper `dppower` with a chosen ‖U‖_∞."""

from __future__ import annotations

import numpy as np
import pytest

from fedcore.generators import generate


def draw(**params) -> np.ndarray:
    (rows,) = generate("carried_rows", np.random.default_rng(0), params)
    return rows


@pytest.mark.parametrize("m", [1, 5, 100, 2000])
def test_coherence_spectrum_and_direction_are_those_of_the_model(m):
    n, d = 2000, 6
    rows = draw(n_samples=n, n_features=d, gap=0.4, carriers=m / n, top=30.0)
    U, sigma, Vt = np.linalg.svd(rows, full_matrices=False)
    np.testing.assert_allclose(sigma, 30.0 * np.sqrt([1.0] + [0.6] * 5), rtol=1e-12)
    np.testing.assert_allclose(abs(Vt[0]), d**-0.5, rtol=1e-10)
    np.testing.assert_allclose(abs(U[:m, 0]), m**-0.5, rtol=1e-10)
    assert abs(U[m:, 0]).max(initial=0.0) < 1e-12
    # The minor directions are degenerate, and a row's part in all of them is at most 1.3 √(5/n).
    assert np.linalg.norm(U[:, 1:], axis=1).max() < 1.3 * np.sqrt((d - 1) / n)
