"""Composition against dp-accounting, closed forms and a quadrature of our own."""

from __future__ import annotations

import math
from collections.abc import Callable

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as losses
from scipy import optimize, stats

import fedcore
from fedcore.errors import InputError
from fedcore.privacy import accounting
from fedcore.privacy.accounting import epsilon
from fedcore.privacy.calibration import calibrate, gaussian_noise_multiplier
from fedcore.privacy.events import Bounded, Gaussian, Laplace
from gaussian import gaussian_delta
from memory_peak import peak
from refused import refused


@pytest.mark.parametrize("sigma", [0.4, 1.0, 5.0, 60.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6])
def test_gaussian_steps_are_one_gaussian_with_the_summed_precision(sigma, delta):
    events = {Gaussian(sigma): 7, Gaussian(2 * sigma, sensitivity=3.0): 4}
    total = 1 / math.sqrt(7 / sigma**2 + 4 / (2 * sigma) ** 2)
    found = epsilon(events, delta)
    if found == 0.0:
        assert gaussian_delta(total, 0.0) <= delta
    else:
        assert gaussian_delta(total, found) == pytest.approx(delta, rel=1e-6)


def test_a_sensitivity_does_not_change_the_loss_of_a_noise_in_its_units():
    assert epsilon({Gaussian(3.0, 5.0): 2}, 1e-5) == epsilon({Gaussian(3.0): 2}, 1e-5)


@pytest.mark.parametrize(
    ("eps0", "count", "sigma"), [(0.1, 5, 4.0), (0.5, 12, 1.5), (0.02, 3, 20.0)]
)
def test_pure_and_gaussian_together(eps0, count, sigma):
    """Worst case by hand: randomised response (binomial) beside one Gaussian."""

    def delta_of(eps: float) -> float:
        k = np.arange(count + 1)
        shares = stats.binom.pmf(k, count, math.exp(eps0) / (1 + math.exp(eps0)))
        losses = eps0 * (2 * k - count)
        return float(
            sum(
                p * gaussian_delta(sigma, eps - loss)
                for p, loss in zip(shares, losses, strict=True)
            )
        )

    exact = optimize.brentq(lambda eps: delta_of(eps) - 1e-5, 0.0, 50.0, xtol=1e-12)
    found = epsilon({Gaussian(sigma): 1, Bounded(eps0): count}, 1e-5)
    assert found == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-15])
@pytest.mark.parametrize("size", [1e-3, 0.3, 5.0, 100.0])
def test_gaussian_releases_are_those_of_dp_accounting(size, delta):
    spent = dp_accounting.get_epsilon_gaussian(1.0 / size, delta)
    assert epsilon({Gaussian(1.0 / size): 1}, delta) == pytest.approx(spent, rel=1e-9, abs=1e-11)
    noise = dp_accounting.get_sigma_gaussian(size, delta)
    assert gaussian_noise_multiplier(size, delta) == pytest.approx(noise, rel=1e-9)


MIXED = [
    {Gaussian(20.0): 60, Bounded(0.01): 60},  # steps of the adaptive power method
    {Gaussian(8.0): 1, Bounded(0.02, 1e-9): 400},  # a mean of DP-PCA
    {Gaussian(2.0): 1, Bounded(0.25): 2, Bounded(0.0, 5e-7): 1},  # bounds of dN26
    {Bounded(0.5): 1, Bounded(0.1): 30},
]
WITH_LAPLACE = [
    {Laplace(4.0): 2, Gaussian(2.0): 1, Bounded(0.0, 5e-7): 1},  # releases of dN26
    {Laplace(4.0): 30},
    {Laplace(10.0): 100, Bounded(0.1): 20},
    {Laplace(1.0): 4, Laplace(2.0): 4},
]
MANY_KINDS = {Bounded(0.01 * size): 3 for size in range(1, 30)}  # 4^29 sums of losses


def by_google(events: dict, delta: float = 1e-6) -> float:
    """Upper bound: each loss is rounded up on a fine grid."""
    grid = {"value_discretization_interval": 1e-4 if Laplace in map(type, events) else 1e-5}
    total = losses.identity(**grid)
    for event, count in events.items():
        if isinstance(event, Gaussian):
            sigma = event.noise_multiplier / math.sqrt(count)
            total = total.compose(losses.from_gaussian_mechanism(sigma, **grid))
        elif isinstance(event, Laplace):
            one = losses.from_laplace_mechanism(event.noise_multiplier, **grid)
            total = total.compose(one.self_compose(count))
        else:
            parameters = common.DifferentialPrivacyParameters(event.epsilon, event.delta)
            one = losses.from_privacy_parameters(parameters, **grid)
            total = total.compose(one.self_compose(count))
    return total.get_epsilon_for_delta(delta)


@pytest.mark.parametrize("events", MIXED, ids=range(len(MIXED)))
def test_bounded_events_are_between_the_bounds_of_dp_accounting(events):
    """Below its upper bound, and closer to it than a thousandth."""
    upper = by_google(events)
    assert upper * (1 - 1e-3) <= epsilon(events, 1e-6) <= upper


@pytest.mark.parametrize("events", [*WITH_LAPLACE, MANY_KINDS], ids=range(len(WITH_LAPLACE) + 1))
def test_losses_on_a_grid_are_those_of_dp_accounting(events):
    """Both round up, each on its own grid."""
    assert epsilon(events, 1e-6) == pytest.approx(by_google(events), rel=1e-3)


@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
def test_one_laplace_release_is_its_closed_form(scale):
    """δ(ε) = 1 − exp((ε − 1/b)/2) below 1/b (Balle, Barthe & Gaboardi, 2018, Theorem 3)."""
    delta = 0.03
    exact = 1 / scale + 2 * math.log1p(-delta)
    found = epsilon({Laplace(scale): 1}, delta)
    assert max(exact, 0.0) <= found <= max(exact, 0.0) + 2e-4 / scale


@pytest.mark.parametrize("count", [2, 30, 1000])
def test_a_grid_never_rounds_down(count):
    """ε of losses drawn at random stays below, up to what 4 standard errors are."""
    draws = 400_000 // count
    x = np.random.default_rng(5).laplace(scale=5.0, size=(draws, count))
    lost = ((np.abs(x - 1.0) - np.abs(x)) / 5.0).sum(axis=1)
    found = epsilon({Laplace(5.0): count}, 0.05)
    each = np.maximum(-np.expm1(np.minimum(found - lost, 0.0)), 0.0)
    assert each.mean() <= 0.05 + 4 * each.std() / math.sqrt(draws)


def test_pure_events_never_cost_more_than_their_sum():
    events = {Bounded(0.3, mechanism="exponential"): 2, Bounded(0.1): 4}
    assert 0.99 <= epsilon(events, 1e-12) <= 1.0


def test_laplace_is_at_most_its_pure_loss():
    found = epsilon({Laplace(4.0): 1}, 1e-6)
    assert 0.249 <= found <= 0.25 + 1e-9
    assert epsilon({Laplace(4.0): 30}, 1e-6) < epsilon({Bounded(0.25): 30}, 1e-6)


@pytest.mark.parametrize(
    ("eps", "delta", "steps"), [(0.5, 1e-4, 10), (10.0, 1e-4, 10), (1.0, 1e-6, 1)]
)
def test_the_calibration_spends_exactly_the_budget(eps, delta, steps):
    sigma = gaussian_noise_multiplier(eps, delta, steps)
    assert epsilon({Gaussian(sigma): steps}, delta) == pytest.approx(eps, rel=1e-6)
    found = calibrate(lambda noise: {Gaussian(noise): steps}, eps, delta)
    assert sigma * (1 - 1e-9) <= found <= sigma * (1 + 2e-6)


def test_a_calibration_of_several_mechanisms_stays_below_the_target():
    def events(noise: float) -> dict:
        return {Gaussian(noise): 5, Bounded(0.05 / noise): 5}

    noise = calibrate(events, 0.7, 1e-5)
    assert epsilon(events(noise), 1e-5) <= 0.7 < epsilon(events(noise * 0.999), 1e-5)


def test_nothing_released_costs_nothing():
    assert epsilon({}, 1e-5) == 0.0


@pytest.mark.parametrize("delta", [0.0, 1.0, 2.0, -1e-3, float("nan"), True])
def test_a_delta_outside_its_range_is_refused(delta):
    refused(lambda: epsilon({Gaussian(1.0): 1}, delta), InputError, "delta must")


@pytest.mark.parametrize("eps", [0.0, -1.0, float("inf")])
def test_an_epsilon_outside_its_range_is_refused(eps):
    refused(lambda: gaussian_noise_multiplier(eps, 1e-5), InputError, "epsilon must")


def test_an_impossible_target_is_refused():
    refused(lambda: calibrate(lambda noise: {Bounded(1.0): 1}, 0.5, 1e-5), InputError, "no noise")


@pytest.mark.parametrize("epsilon", [1e-9, 0.12345, 1.0, 709.0, 711.0, 1e4])
def test_a_bounded_event_alone_is_what_it_says(epsilon):
    assert accounting.epsilon({Bounded(epsilon, 1e-6): 1}, 1e-6) == epsilon
    assert accounting.epsilon({Bounded(epsilon, 1e-6): 1}, 1e-7) == math.inf


@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_a_bounded_event_at_a_larger_delta_is_that_of_the_dominating_pair(epsilon):
    """P = (δ₀, (1−δ₀) e^ε/(1+e^ε), (1−δ₀)/(1+e^ε), 0), Q mirrored: Σ max(P − e^x Q, 0) = δ."""
    small, delta = 0.01, 0.05
    found = accounting.epsilon({Bounded(epsilon, small): 1}, delta)
    heads, tails = ((1 - small) * p / (1 + math.exp(epsilon)) for p in (math.exp(epsilon), 1.0))
    spent = (
        small + max(heads - math.exp(found) * tails, 0) + max(tails - math.exp(found) * heads, 0)
    )
    assert spent == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("epsilon", [1e-6, 1e-3, 0.1])
def test_small_losses_are_composed_on_a_grid_of_their_own_size(epsilon):
    """Ten ε-DP events spend at most 10 ε; a grid of 1e−4 made 8e−4 of 1e−5."""
    spent = accounting.epsilon({Bounded(epsilon): 10, Gaussian(1e9): 1}, 1e-12)
    assert 9.9 * epsilon <= spent <= 10.01 * epsilon


@pytest.mark.parametrize("event", [Bounded(2000.0), Laplace(1 / 2000.0)])
def test_large_losses_add_up(event):
    assert accounting.epsilon({event: 2}, 1e-6) == pytest.approx(4000.0)


def binomial_delta(eps0: float, count: int, eps: float) -> float:
    """δ(ε) of so many ε₀-DP mechanisms, by ratios of neighbouring terms about the largest."""
    p = 1 / (1 + math.exp(-eps0))
    width = int(14 * math.sqrt(count * p * (1 - p))) + 20
    mode = round(count * p)
    k = np.arange(max(0, mode - width), min(count, mode + width) + 1)
    ratios = (count - k[:-1]) / (k[:-1] + 1.0) * math.exp(eps0)
    logs = np.concatenate([[0.0], np.cumsum(np.log(ratios))])
    weights = np.exp(logs - logs.max())
    gain = -np.expm1(np.minimum(eps - eps0 * (2 * k - count), 0.0))
    return float(weights @ gain / weights.sum())


def laplace_delta_below(scales: dict[float, int], eps: float, cells: int = 4000) -> float:
    """δ(ε) of Laplace mechanisms, each loss rounded down on one grid: not above the true one."""
    step = 2 * max(1 / b for b in scales) / cells
    low, total = 0.0, np.ones(1)
    for b, count in scales.items():
        size = math.floor(2 / b / step)
        edges = -1 / b + step * np.arange(size + 1)
        one = np.diff(0.5 * np.exp((edges - 1 / b) / 2), append=1.0)
        one[0] += 0.5 * math.exp(-1 / b)
        for _ in range(count):
            total, low = np.convolve(total, one), low - 1 / b
    losses = low + step * np.arange(len(total))
    return float(total @ -np.expm1(np.minimum(eps - losses, 0.0)))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("count", [1, 30, 2047, 2048, 5000, 10**6, 10**9])
@pytest.mark.parametrize("total", [0.1, 3.0, 60.0])
def test_many_bounded_events_cost_their_exact_sum_and_a_hundredth_more_at_most(total, count, delta):
    eps0 = total / math.sqrt(count)
    found = peak_below(100e6, lambda: epsilon({Bounded(eps0): count}, delta))
    if found > 0.0:
        assert binomial_delta(eps0, count, found) <= delta * (1 + 1e-7)
    assert binomial_delta(eps0, count, found / 1.01 - 1e-9) >= delta or found == 0.0


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("delta", [0.05, 1e-6, 1e-10])
@pytest.mark.parametrize(
    "scales",
    [{4.0: 1, 5.0: 1, 7.0: 1}, {0.5: 2, 3.0: 4}, {2.0: 3, 2.1: 3, 30.0: 9}, {10.0: 25}, {0.01: 2}],
    ids=str,
)
def test_laplace_events_of_several_scales_cost_a_hundredth_more_at_most(scales, delta):
    events = {Laplace(b): count for b, count in scales.items()}
    found = peak_below(100e6, lambda: epsilon(events, delta))
    step = 2 * max(1 / b for b in scales) / 4000
    assert laplace_delta_below(scales, found) <= delta  # not below the truth
    off = step * sum(scales.values())  # by which rounding down may have moved it
    assert laplace_delta_below(scales, found / 1.01 - off) >= delta


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [Laplace, Gaussian, Bounded])
@pytest.mark.parametrize("size", [1e-150, 1e-30, 1e-3, 1e3, 1e30, 1e150])
def test_no_warning_for_any_size(kind, size):
    events = {kind(size): 3, Laplace(2.0): 1, Gaussian(1e-9 + 1 / size): 2}
    assert epsilon(events, 1e-6) >= epsilon({Laplace(2.0): 1}, 1e-6) - 1e-3


@pytest.mark.filterwarnings("error")
def test_ledgers_of_dn26_add_up():
    rng = np.random.default_rng(0)
    clients = [rng.standard_normal((60, 4)) for _ in range(3)]
    runs = [fedcore.run("dn26", clients, 1, seed=i, clip=True, measure=()).ledger for i in range(3)]
    parts = [run.privacy.epsilon(delta=1e-4) for run in runs]
    both = peak_below(100e6, lambda: (runs[0] + runs[1] + runs[2]).privacy.epsilon(delta=1e-4))
    assert max(parts) < both <= sum(parts) * 1.01


def peak_below(limit: float, call: Callable[[], float]) -> float:
    """Return what a call returns, and assert that it takes no more memory."""
    found = []
    assert peak(lambda: found.append(call())) < limit
    return found[0]
