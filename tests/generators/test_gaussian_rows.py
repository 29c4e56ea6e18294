"""Gaussian rows, their canary and their second moments, against their closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from fedcore.generators import canary, gaussian_rows, generate
from fedcore.problems.one_direction import top_share


def draw(**params) -> np.ndarray:
    (rows,) = generate("gaussian_rows", np.random.default_rng(0), params)
    return rows


def test_the_distribution_has_the_stated_spectrum_and_direction():
    n, d, m, gap = 200_000, 8, 3, 0.5
    rows = draw(n_samples=n, n_features=d, gap=gap, minor=m)
    values, vectors = np.linalg.eigh(rows.T @ rows / n * np.log(n / 0.05))
    top = 1 / (1 + m * (1 - gap))
    assert top_share(m, gap) == top
    # Second moments to a few standard errors, √2 top/√n = 0.0013.
    np.testing.assert_allclose(values[::-1], [top, *[top / 2] * m, 0, 0, 0, 0], atol=0.006)
    assert abs(vectors[:, -1].sum()) / np.sqrt(d) > 0.999
    assert np.linalg.norm(rows, axis=1).max() < 1.0


@pytest.mark.parametrize("kind", ["normal", "sign"])
def test_exact_rows_have_the_gap_to_rounding_and_norms_up_to_one(kind):
    rows = draw(n_samples=500, n_features=6, gap=0.01, kind=kind, exact=True)
    values = np.linalg.eigvalsh(rows.T @ rows)
    np.testing.assert_allclose(values[:-1] / values[-1], 0.99, rtol=1e-12)
    assert np.linalg.norm(rows, axis=1).max() == pytest.approx(1.0, rel=1e-12)
    U = rows @ np.full(6, 6**-0.5) / np.sqrt(values[-1])
    assert (np.abs(U).max() * np.sqrt(500) < 1.5) == (kind == "sign")


def test_directions_are_orthogonal_and_the_first_is_flat():
    Q = gaussian_rows.directions(7)
    np.testing.assert_allclose(Q.T @ Q, np.eye(7), atol=1e-14)
    np.testing.assert_allclose(Q[:, 0], 7**-0.5, rtol=1e-14)


def test_the_neighbours_differ_in_the_canary_and_the_audit_reads_them():
    size = {"n_samples": 50, "n_features": 2, "canary": True}
    present, absent = draw(**size), draw(**size, removed=True)
    np.testing.assert_array_equal(present[:-1], absent)
    np.testing.assert_array_equal(present[-1], [1.0, 0.0])
    pairs = [canary.pair(rows, "add_or_remove_one") for rows in (present, absent)]
    for one, other in zip(*pairs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_second_moments_are_those_of_the_rows_and_one_row_counts_as_one_entry():
    size = {"n_samples": 40, "n_features": 5, "gap": 0.5, "exact": True}
    rows, moments = draw(**size), draw(**size, moments=True)
    np.testing.assert_allclose(moments * np.sqrt(5), rows.T @ rows, rtol=0, atol=1e-12)
    rng = np.random.default_rng(1)
    for v in rng.standard_normal((20, 5)):
        v /= np.linalg.norm(v)
        changes = np.linalg.norm(rows, axis=1) * np.abs(rows @ v) / np.sqrt(5)
        assert changes.max() <= np.abs(v).max()
