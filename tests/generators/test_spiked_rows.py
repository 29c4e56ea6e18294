"""Model of the rows of the paper `dppower`, against its closed forms."""

from __future__ import annotations

import numpy as np
import pytest

from fedcore.generators import generate
from fedcore.problems.one_direction import top_share


def draw(**params) -> np.ndarray:
    (rows,) = generate("spiked_rows", np.random.default_rng(0), params)
    return rows


@pytest.mark.parametrize(
    "kind", [{"kind": "gaussian"}, {"kind": "sign"}, {"kind": "sign", "carriers": 0.5}]
)
def test_norms_gap_and_direction_are_those_of_the_model(kind):
    n, d, gap = 200_000, 5, 0.5
    rows = draw(n_samples=n, n_features=d, gap=gap, norm=0.5, **kind)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 0.5, rtol=1e-12)
    values, vectors = np.linalg.eigh(rows.T @ rows / n)
    # Second moments of bounded rows to a few standard errors, 1/√n = 0.0022; a Gaussian c of
    # variance 1/3 is cut at ±1 in 8 % of the rows, which takes 0.05 of its variance.
    s = 1 / (1 + (d - 1) * (1 - gap))
    assert top_share(d - 1, gap) == s
    cut = 0.06 if kind["kind"] == "gaussian" else 0.01
    assert values[-1] * 4 == pytest.approx(s, abs=cut)
    np.testing.assert_allclose(values[:-1] * 4, (1 - s) / (d - 1), atol=cut)
    assert abs(vectors[:, -1].sum()) / np.sqrt(d) > 0.999


def test_coherence_goes_from_the_least_to_the_heaviest_rows():
    n, d = 50_000, 50
    s = top_share(d - 1, 0.75)
    for carriers, largest in ((1.0, s), (0.3, s / 0.3), (s, 1.0)):
        c = draw(n_samples=n, n_features=d, kind="sign", carriers=carriers).sum(axis=1) / np.sqrt(d)
        assert np.max(c**2) == pytest.approx(largest, rel=1e-9)
        assert np.mean(c**2) == pytest.approx(s, rel=0.05)


def test_clients_share_the_rows_and_single_precision_is_the_rounded_double():
    whole = draw(n_samples=101, n_features=4)
    parts = generate(
        "spiked_rows", np.random.default_rng(0), {"n_samples": 101, "n_features": 4, "n_clients": 3}
    )
    assert [len(part) for part in parts] == [34, 34, 33]
    np.testing.assert_array_equal(np.vstack(parts), whole)
    single = draw(n_samples=101, n_features=4, dtype="float32")
    assert single.dtype == np.float32
    np.testing.assert_array_equal(single, whole.astype(np.float32))
