"""error_estimate_ of private fits: how often the true angle exceeds it, and what it is made of."""

from __future__ import annotations

import itertools
import warnings
from types import SimpleNamespace

import numpy as np
import pytest

import fedcore
from fedcore.estimators import FederatedPCA
from fedcore.estimators.private import multipliers, sines
from fedcore.federation.transcript import Transcript

SHARE = 1 / 20  # of fits that may be further off than they say
pytestmark = pytest.mark.filterwarnings("ignore::fedcore.ConvergenceWarning")


def samples(rng, n, d):
    """Rows within [-1, 1], of three factors and noise."""
    noise = rng.standard_normal((n, d))
    x = rng.standard_normal((n, 3)) * [1.5, 1.0, 0.6] @ rng.standard_normal((3, d)) + 0.5 * noise
    return np.clip(x / x.std(axis=0).max() / 4, -1, 1)


def private(parts, r, epsilon, **options):
    options = {"params": {"simulate": True}, "bounds": (-1.0, 1.0)} | options
    return FederatedPCA(r, epsilon=epsilon, delta=1e-6, **options).fit(parts)


def sine(model, x):
    """Sine of the largest angle to the leading right singular vectors of the samples."""
    rows = (x - (x.mean(axis=0) if model.center else 0.0)) / model.scale_
    right_t = np.linalg.svd(rows, full_matrices=False)[2][: model.n_components_]
    return np.linalg.norm(model.components_ - model.components_ @ right_t.T @ right_t, 2)


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 50, 500])
def test_where_it_speaks_at_most_the_stated_share_is_further_off(tool, n):
    """Also of few samples, of which hardly a fit says something."""
    row = tool("error_estimate").private_row(n, 300)
    assert row["further off"] <= SHARE * row["spoke"], row
    assert row["spoke"] > (n > 5) * row["fits"] / 25


@pytest.mark.parametrize("d", [2, 4, 8, 12])
def test_a_gap_that_noise_has_made_says_nothing(tool, d):
    """The noise of ε = 1 around moments of few to thousands of samples, without the clients."""
    symmetric = tool("error_estimate").symmetric
    rng, draws = np.random.default_rng(d), 20_000 // d
    z = multipliers(SimpleNamespace(epsilon=1.0, delta=1e-6, scale=False))
    for n, r in itertools.product((5, 20, 100, 500, 2000, 10_000), {1, d // 2}):
        exact = np.diag(np.repeat([0.3 * n / d, 0.0], [r, d - r]))
        noisy = exact + z["rounds"] * symmetric(rng, d, draws)
        Z = np.linalg.eigh(noisy)[1][:, :, : -r - 2 : -1]
        moments = Z.transpose(0, 2, 1) @ exact @ Z + z["last"] * symmetric(rng, r + 1, draws)
        squares = np.linalg.eigvalsh(moments[:, :r, :r])[:, ::-1]
        estimate = np.array([
            sines(np.append(own, last[r, r]), d, rounds=z["rounds"], last=z["last"], steps=0)[-1]
            for own, last in zip(squares, moments, strict=True)
        ])  # fmt: skip
        true = np.linalg.norm(Z[:, r:, :r], 2, axis=(1, 2))
        spoke, off = (estimate < 1).sum(), ((estimate < 1) & (true > estimate)).sum()
        assert off <= max(SHARE * spoke, 3e-4 * draws), (n, r, spoke, off)
    assert spoke > draws / 2


def test_a_table_of_a_ward_is_noise_and_one_of_a_region_is_not():
    rng = np.random.default_rng(3)
    few = samples(rng, 491, 8)
    axes = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    many = np.clip(rng.standard_normal((8000, 6)) * [0.6, 0.5, 0.15, 0.15, 0.15, 0.1] @ axes, -1, 1)
    for x, says in ((few, True), (many, False)):
        for seed in range(10):
            with warnings.catch_warnings(record=True) as told:
                warnings.simplefilter("always")
                model = private(np.array_split(x, 3), 2, 1.0, random_state=seed)
            assert (model.error_estimate_ > 0.9) == says and model.converged_ is None
            assert [w.category for w in told] == [fedcore.ConvergenceWarning] * says
            if not says:
                assert sine(model, x) < model.error_estimate_ < 0.4


def test_components_of_all_features_span_them_and_are_told_of_if_they_are_noise():
    x = samples(np.random.default_rng(3), 300, 4)
    with pytest.warns(fedcore.ConvergenceWarning):
        model = private([x], 4, 1.0)
    assert model.error_estimate_ == 0 and sine(model, x) < 1e-12


def recomputed(seen, model, noise=1.0):
    """Return the estimate from the last upload and the ledger alone, of `noise` times the noise."""
    r, d = model.components_.shape
    sent = np.zeros((r + 1, r + 1))
    sent[np.triu_indices(r + 1)] = seen.exchanges[-1].sent[:-1]
    values = np.linalg.eigvalsh(sent[:r, :r] + np.triu(sent[:r, :r], 1).T)[::-1]
    events = model.ledger_.privacy.accounts[0].events
    steps = {event.noise_multiplier: times for event, times in events.items()}
    count = max(steps.values())
    last = noise * max(z for z, times in steps.items() if times == 1)  # the smallest share of ε
    rounds = noise * (min(steps) if count == 1 else next(z for z in steps if steps[z] == count))
    gap = values[-1] - sent[r, r] - 4 * last
    turned = (np.sqrt(r) + np.sqrt(d - r) + 0.5) * rounds / gap
    if count > 1:
        turned += np.sqrt(d) * (max(sent[r, r], 0) / values[-1]) ** count
    return min(turned, 1.0) if gap > 0 else 1.0


PARTS = (0.9, 0.5, 0.2, 0.1), (0.9, 0.9, 0.1, 0.1), (0.5, 0.4, 0.3, 0.2)  # of the bounds


@pytest.mark.slow
def test_of_a_thousand_fits_at_most_the_stated_share_is_further_off_and_with_less_noise_more():
    """Eight columns at ε = 1, for the sizes of a ward to those of a large hospital."""
    rng, found = np.random.default_rng(7), []
    for n, spread, seed in itertools.product((500, 1000, 2000, 4000, 8000), PARTS, range(70)):
        axes = np.linalg.qr(rng.standard_normal((8, 8)))[0]
        x = np.clip(rng.uniform(-1, 1, (n, 8)) * np.repeat(spread, 2) @ axes, -1, 1)
        seen, r = Transcript(), int(rng.integers(1, 4))
        params = {"transcript": seen, "simulate": True}
        algorithm = ("analyze_gauss", "noisy_power")[seed % 7 == 0]
        model = private([x], r, 1.0, random_state=seed, params=params, algorithm=algorithm)
        found.append((sine(model, x), model.error_estimate_, recomputed(seen, model, 0.1)))
        assert model.error_estimate_ == pytest.approx(recomputed(seen, model))  # of what it told
    true, estimate, tenth = np.array(found).T
    told, of_tenth = estimate < 1, tenth < 1
    assert len(true) >= 1000 and told.sum() > 40
    assert (true > estimate)[told].mean() <= SHARE
    assert (true > tenth)[of_tenth].mean() > SHARE  # what a tenth of the noise would say
    assert np.median(estimate[told] / true[told]) < 5


def test_units_of_the_features_do_not_matter_to_a_scaled_fit():
    """Each feature's mean has noise in proportion to its own bounds."""
    x = samples(np.random.default_rng(5), 20_000, 4)
    units = np.array([1e-3, 1.0, 1e3, 1e6])
    bounds = {name: (-u, u) for name, u in zip("abcd", units, strict=True)}
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(x * units, columns=list("abcd"))
    model = private([frame], 2, 1.0, scale=True, bounds=bounds)
    plain = private([x], 2, 1.0, scale=True)
    np.testing.assert_allclose(model.mean_ / units, plain.mean_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.components_, plain.components_, atol=1e-9)
