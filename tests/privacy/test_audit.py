"""The audit: below the truth where the claim is true, above the claim where it is not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from fedcore.errors import InputError
from fedcore.generators import canary
from fedcore.privacy import audit, mechanisms
from fedcore.privacy.accounting import epsilon, gaussian_noise_multiplier
from fedcore.privacy.events import Gaussian
from fedcore.transcript import Exchange

SETTINGS = {"iterations": 3, "local_steps": 1, "epsilon": 0.5, "delta": 1e-4}


def test_the_claimed_epsilon_holds():
    for calibration in ("paper", "tight"):
        found = audit.audit("fedpower", 2, runs=400, calibration=calibration, **SETTINGS)
        assert found.epsilon <= 0.5


def test_a_noise_divided_by_ten_is_found_out(monkeypatch):
    """The ledger still says 0.5, as the noise that it charges is not what is added."""
    add = mechanisms._add
    monkeypatch.setattr(mechanisms, "_add", lambda value, noise: add(value, noise / 10))
    found = audit.audit("fedpower", 2, runs=400, calibration="tight", **SETTINGS)
    assert found.epsilon > 0.5


def test_a_noise_that_is_forgotten_is_found_out(monkeypatch):
    monkeypatch.setattr(mechanisms, "_add", lambda value, noise: value)
    found = audit.audit("fedpower", 2, runs=60, calibration="tight", **SETTINGS)
    assert found.epsilon > 1.0


@pytest.mark.parametrize("sigma", [0.4, 1.0, 3.0])
def test_the_bound_of_a_gaussian_mechanism_lies_below_its_epsilon_and_not_far(sigma):
    rng = np.random.default_rng(0)
    true, found = epsilon({Gaussian(sigma): 1}, 1e-3), []
    for _ in range(40):
        present, absent = rng.normal(1, sigma, 4000), rng.normal(0, sigma, 4000)
        found.append(audit.lower_bound(present, absent, delta=1e-3).epsilon)
    # Each bound fails with a probability of at most 5 %: more than 7 of 40 in one case of 1000.
    assert sum(bound > true for bound in found) <= 7
    assert np.median(found) > 0.3 * true


def test_the_direction_of_the_score_does_not_matter():
    rng = np.random.default_rng(1)
    present, absent = rng.normal(2, 1, 2000), rng.normal(0, 1, 2000)
    assert audit.lower_bound(absent, present, delta=1e-5).epsilon > 1.0
    # One-sided evidence: an event that only ever happens on the second data set.
    rare = np.where(np.arange(2000) % 5 < 1, -9.0, 0.0)
    assert audit.lower_bound(np.zeros(2000), rare, delta=1e-5).epsilon > 2.0


def test_equal_data_are_not_told_apart():
    rng = np.random.default_rng(2)
    bounds = [
        audit.lower_bound(*rng.standard_normal((2, 400)), delta=1e-5).epsilon for _ in range(60)
    ]
    assert sum(bound > 0.0 for bound in bounds) <= 8  # at most 5 % expected; 1 in 1000 for more
    assert min(bounds) == 0.0


def test_clopper_pearson_by_its_definition():
    """Limits at which the observed counts have a tail probability of 2.5 %."""
    hits, alarms = 80, 10
    (value,) = audit._bounds(np.array([hits]), 100, np.array([alarms]), 100, 0.01, 0.95)
    low = stats.binomtest(hits, 100).proportion_ci(0.95).low
    high = stats.binomtest(alarms, 100).proportion_ci(0.95).high
    assert value == pytest.approx(np.log((low - 0.01) / high), rel=1e-9)
    assert stats.binom.sf(hits - 1, 100, low) == pytest.approx(0.025, rel=1e-6)
    nothing, everything = np.array([0]), np.array([100])
    assert audit._bounds(nothing, 100, nothing, 100, 0.01, 0.95)[0] == -np.inf
    assert audit._bounds(everything, 100, everything, 100, 0.01, 0.95)[0] < 0.0


def test_the_canaries_differ_in_one_row_and_no_more():
    rng = np.random.default_rng(0)
    (present,) = canary.generate(rng, samples=9, n_features=4)
    (absent,) = canary.generate(rng, samples=9, n_features=4, replaced=True)
    np.testing.assert_array_equal(present[:-1], absent[:-1])
    np.testing.assert_array_equal(present[-1], [1, 0, 0, 0])
    np.testing.assert_array_equal(absent[-1], [0, 1, 0, 0])
    np.testing.assert_allclose(np.linalg.norm(present, axis=1), 1.0)


def test_the_score_of_replies_without_noise():
    rng = np.random.default_rng(0)
    (data,) = canary.generate(rng, samples=9, n_features=4)
    Z = np.linalg.qr(rng.standard_normal((4, 2)))[0]
    product = Exchange(1, 0, Z, data.T @ (data @ Z))
    assert audit.score(data, product) == pytest.approx(np.sum(Z[0] ** 2))
    with_basis = Exchange(1, 0, Z, (data.T @ (data @ Z), Z))
    assert audit.score(data, with_basis) == audit.score(data, product)
    assert audit.score(data, Exchange(1, 0, None, data.T @ data)) == pytest.approx(1.0)
    vote = Exchange(1, 0, [Z, Z], np.array([0.0, 1.0, 0.0, 0.0, 0.0]))
    assert audit.score(data, vote) == 0.0
    V = np.array([[0.6], *[[0.0]] * (data.shape[1] - 2), [0.8]])
    expected = 0.36 - V[1, 0] ** 2
    assert audit.score(data, Exchange(1, 0, None, V)) == pytest.approx(expected)
    with pytest.raises(InputError, match="the canary audit reads"):
        audit.score(data, Exchange(1, 0, Z, data))


def test_too_few_runs_are_refused():
    with pytest.raises(InputError, match="runs must"):
        audit.lower_bound([1.0, 2.0], [0.0, 1.0], delta=1e-5)


def test_the_variant_with_a_tenth_of_the_noise_is_one():
    """The ε of that variant in config/papers/fedpower.yaml."""
    from pathlib import Path

    from fedcore.experiments import read_yaml

    root = Path(__file__).parents[2]
    experiment = read_yaml(root / "config/papers/fedpower.yaml")["experiments"]["audit"]
    variant = experiment["runs"][0]["variants"]["tenth"]
    honest = gaussian_noise_multiplier(experiment["params"]["epsilon"], 1e-4)
    tenth = gaussian_noise_multiplier(variant["epsilon"], experiment["params"]["delta"])
    assert tenth == pytest.approx(honest / 10, rel=1e-6)


def test_the_score_of_a_triangle_is_that_of_its_matrix():
    rng = np.random.default_rng(0)
    (data,) = canary.generate(rng, samples=9, n_features=4)
    gram = data.T @ data + rng.standard_normal((4, 4))
    gram = (gram + gram.T) / 2
    triangle = Exchange(1, 0, None, gram[np.triu_indices(4)])
    assert audit.score(data, triangle) == pytest.approx(
        audit.score(data, Exchange(1, 0, None, gram))
    )


def test_a_canary_that_is_gone_is_a_row_of_zeros():
    (present,) = canary.generate(np.random.default_rng(0), samples=9, n_features=4)
    (absent,) = canary.generate(np.random.default_rng(0), samples=9, n_features=4, removed=True)
    np.testing.assert_array_equal(present[:-1], absent[:-1])
    np.testing.assert_array_equal(absent[-1], np.zeros(4))
    np.testing.assert_allclose(present.T @ present - absent.T @ absent, np.diag([1, 0, 0, 0]))
