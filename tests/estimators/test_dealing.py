"""How samples are dealt to clients decides nothing: not signs, not an order, not a number."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcore.estimators import FederatedPCA


def signs(*columns):
    """Return rows ± each combination, so that covariances are whole numbers."""
    return np.array(np.meshgrid(*[[-1.0, 1.0]] * len(columns))).reshape(len(columns), -1).T


def samples(kind, rng):
    """Return rows whose axes have entries or squares that agree, and where components may end."""
    if kind == "equal entries":  # (1, −1, 1, −1)/2 first
        axes = np.array([[1, -1, 1, -1], [1, 1, -1, -1], [1, 1, 1, 1], [1, -1, -1, 1]]) / 2
        return signs(*range(4)) * [8.0, 4.0, 2.0, 1.0] @ axes, [1, 2, 3, 4]
    if kind == "equal squares":
        return signs(*range(6)) * [4.0, 4.0, 4.0, 2.0, 1.0, 1.0], [3, 4, 6]
    if kind == "turned":
        axes = np.linalg.qr(rng.standard_normal((6, 6)))[0]
        return signs(*range(6)) * [4.0, 4.0, 2.0, 2.0, 2.0, 1.0] @ axes, [2, 5, 6]
    if kind == "shares":  # the first two hold half of the variance, but for rounding
        return signs(*range(4)) * 0.1 @ np.linalg.qr(rng.standard_normal((4, 4)))[0], [0.25, 0.5]
    twins = np.round(rng.standard_normal((40, 3)), 1)
    return np.column_stack([twins, -twins]), [1, 2, 3]


@pytest.mark.parametrize("kind", ["equal entries", "equal squares", "turned", "shares", "twins"])
@pytest.mark.parametrize("options", [{}, {"algorithm": "ssi"}, {"algorithm": "centralized_svd"}])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_the_same_samples_have_the_same_components(kind, options, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    x, ends = samples(kind, rng)
    x = (0.1 * x + data.draw(st.sampled_from([0.0, 0.3]))).astype(data.draw(
        st.sampled_from([np.float64, np.float32])
    ))  # fmt: skip
    r = data.draw(st.sampled_from(ends))
    expected = FederatedPCA(r, **options).fit([x])
    parts = np.split(x[rng.permutation(len(x))], np.sort(rng.integers(1, len(x), 3)))
    found = FederatedPCA(r, **options).fit([part for part in parts if len(part)])
    close = 1e-6 if x.dtype == np.float64 else 1e-3
    assert found.n_components_ == expected.n_components_
    np.testing.assert_allclose(
        found.components_, expected.components_, atol=close * np.sqrt(6), rtol=0
    )
    np.testing.assert_allclose(
        found.components_ @ found.components_.T, np.eye(found.n_components_), atol=close
    )


def test_axes_of_equal_squares_are_the_features_where_they_can_be():
    x = signs(*range(5)) * [2.0, 2.0, 1.0, 1.0, 1.0]
    np.testing.assert_allclose(FederatedPCA(5).fit([x]).components_, np.eye(5), atol=1e-7)
