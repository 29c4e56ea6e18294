"""Printed bounds of `dppower`: their formulas by hand, and privacy by another way of composing."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import norm

from dppower import bounds as report

dimensions, gaps = st.integers(2, 1000), st.floats(0.01, 0.99)
epsilons, rows = st.floats(0.01, 10.0), st.integers(1000, 10**7)


@given(dimensions, gaps, epsilons, rows, st.floats(0.01, 1.0))
def test_rows_of_table_1_term_by_term(d, kappa, epsilon, n, top):
    first = n / d
    sigma, second = math.sqrt(first), math.sqrt((1 - kappa) * first)
    squares = epsilon**2 * (sigma**2 - second**2) ** 2
    upsilon = math.sqrt(top) / sigma
    ours = min(4 * n, d * first) * upsilon**2
    ours += sigma**2 * upsilon**2 / kappa + d * sigma**2 * upsilon**2 * kappa
    close = {"rel": 1e-9}
    assert report.ours(n, d, epsilon, first, kappa, top) == pytest.approx(ours / squares, **close)
    assert report.dttz14(d, epsilon, first, kappa) == pytest.approx(d / squares, **close)
    dn26 = n * d * (2 / n) / (epsilon**2 * (sigma - second) ** 2)  # ‖U‖²_∞ = 2/n
    assert report.dn26(n, d, epsilon, first, kappa, 2.0) == pytest.approx(dn26, **close)
    hr13 = dn26 * sigma / (sigma - second)
    assert report.hr13(n, d, epsilon, first, kappa, 2.0) == pytest.approx(hr13, **close)


@given(dimensions, gaps, epsilons, rows, st.floats(1.0, 100.0))
def test_the_sums_of_theorem_1_2_and_of_section_1_1(d, kappa, epsilon, n, above):
    top = min(1.0, above / d)  # σ̄₁², of trace 1 at least 1/d
    noise = d / (epsilon * n * kappa) ** 2 / top + 1 / ((epsilon * n) ** 2 * top * kappa**3)
    sampling, last = 1 / (n * top * kappa**2), 1 / (n * top * kappa) ** 2
    in_d = report.ours_gaussian(n, d, epsilon, kappa)
    assert last <= sampling * (1 + 1e-9)
    assert noise + sampling <= in_d * (1 + 1e-9)
    extra = d / (epsilon**2 * n**2 * kappa**3)
    assert in_d - report.lkjo22(n, d, epsilon, kappa) == pytest.approx(extra, abs=1e-9 * in_d)


def test_every_comparison_is_of_points_where_its_sentence_speaks():
    found = report.bounds()
    assert all(row["share"] > 0.0 for row in found)
    for row in found:
        d, kappa = row["d"], row["kappa"]
        if row["claim"] == "by-coherence":
            assert kappa > 1.0 / d
        if row["claim"] == "small-gap":
            assert kappa < 1.0 / d
        if row["claim"].startswith("range"):
            assert d <= row["n"] < d**1.5 < d**2
        if row["claim"] == "same-as-lkjo22":
            assert kappa >= min(1.0 / d, 1.0 / (row["n"] * row["epsilon"] ** 2))
        if row["claim"] == "worse-by-logarithm":
            assert row["n"] > math.exp(kappa**-2)
            assert kappa <= min(1.0 / d, 1.0 / (row["n"] * row["epsilon"] ** 2))
    same = [row for row in found if row["claim"] == "same-as-lkjo22"]
    by_d = [row for row in same if 1.0 / row["d"] < 1.0 / (row["n"] * row["epsilon"] ** 2)]
    assert 0 < len(by_d) < len(same)  # each of the two is the smaller one somewhere
    d, n, epsilon, kappa = report.EXTREME
    tenth = [n * epsilon**2 * kappa, d * kappa, d**3 / ((epsilon * n) ** 2 * kappa**5)]
    assert tenth == pytest.approx([0.1] * 3)


def profile(spent: float, sigma: float) -> float:
    """Return δ = Φ(1/2σ − εσ) − e^ε Φ(−1/2σ − εσ) of one release (Balle & Wang 2018)."""
    first, second = 0.5 / sigma - spent * sigma, -0.5 / sigma - spent * sigma
    return norm.cdf(first) - math.exp(spent + norm.logcdf(second))


def release(sigma: float, delta: float) -> float:
    """Return ε of one release at δ; 0 if δ alone covers it."""
    if profile(0.0, sigma) <= delta:
        return 0.0
    return brentq(lambda spent: profile(spent, sigma) - delta, 0.0, 1e4)


def test_a_gaussian_release_spends_what_its_privacy_profile_says():
    for row in report.mechanism():
        printed = math.sqrt(2 * math.log(2 / row["delta"])) / row["epsilon"]
        for column, sigma in (("deviation", printed), ("variance", math.sqrt(printed))):
            delta = profile(row[column] * row["epsilon"], sigma)
            assert delta == pytest.approx(row["delta"], rel=1e-3)


def test_a_run_spends_more_than_its_releases_and_less_than_the_sum_of_its_steps():
    for row in report.privacy():
        T, epsilon, delta = row["steps"], row["epsilon"], row["delta"]
        root = math.sqrt(2 * T * math.log(1 / delta))
        assert row["whole"] == pytest.approx(2 * (T * epsilon**2 + root * epsilon))
        factor = {"line 9": math.sqrt(2), "proof": 2.0}[row["noise"]]
        sigma = factor * math.sqrt(math.log(2 / delta)) / epsilon
        for spent, at in (
            (row["share"] * epsilon, delta),
            (row["share_lemma"] * row["whole"], (T + 1) * delta),
        ):
            # T releases are one with σ/√T; T steps, each with a T-th of δ, add up.
            least = release(sigma / math.sqrt(T), at)
            assert least * (1 - 1e-6) < spent < T * (epsilon + release(sigma, at / T)) * (1 + 1e-6)
