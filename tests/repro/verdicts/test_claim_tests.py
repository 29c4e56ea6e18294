"""Tests of a printed item: against scipy's tests, and in closed cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedcore.repro.verdicts.claim_tests import FAILS, HOLDS, LEVEL, OUTLIER, UNDECIDED, outcome_of

NAN = math.nan


def state(test, values, **options):
    return outcome_of(test, values, **options).state


# ------------------------------------------------------ a printed number of one run


def test_a_print_within_the_range_holds_wherever_it_lies():
    for printed in ("162", "337", "368"):
        assert state({"one_run": printed}, [162, 250, 300, 368]) == HOLDS
    found = outcome_of({"one_run": "337"}, [162, 250, 300, 368])
    assert (found.measured, found.place) == ("275", "3 of 4 below")
    assert found.accepted == "within the range of 4 runs, 162 to 368" and found.lack == ""


@pytest.mark.parametrize(
    ("printed", "verdict"),
    [("1.80e-06", HOLDS), ("1.8e-06", HOLDS), ("1.800e-06", UNDECIDED), (1.80e-6, UNDECIDED)],
)
def test_the_range_is_as_wide_as_the_printed_digits(printed, verdict):
    assert state({"one_run": printed}, [1.804e-6, 1.82e-6, 1.86e-6]) == verdict


@pytest.mark.parametrize("scale", [1.0, -1.0])  # negative numbers take no logarithms
@pytest.mark.parametrize("n", [2, 3, 5, 10, 38])
def test_an_outlier_is_what_a_t_test_against_one_more_run_says(n, scale):
    rng = np.random.default_rng(n)
    decided = set()
    for _ in range(20):
        sample = rng.lognormal(5, 0.4, n)
        for x in (sample.max() * f for f in (1.01, 1.5, 3.0, 50.0)):
            logs = np.log if scale > 0 else np.array
            p = stats.ttest_ind(logs(sample), [logs(x)], equal_var=True).pvalue
            found = outcome_of({"one_run": scale * x}, scale * sample)
            assert found.state == (FAILS if p < OUTLIER * LEVEL else UNDECIDED)
            decided.add(found.state)
    assert FAILS in decided or n == 2


def test_from_39_runs_on_the_range_alone_decides():
    uniform = np.linspace(1, 2, 39)  # no Student would call 2.01 an outlier
    assert state({"one_run": "2.01"}, uniform) == FAILS
    found = outcome_of({"one_run": "2.01"}, uniform[::2])
    assert found.state == UNDECIDED and "about 19 more would decide" in found.lack


def test_equal_counts_are_no_sure_thing():
    """Of a count that is 6 nine times in ten, two runs show nothing; a far print fails."""
    assert state({"one_run": "7"}, [6, 6, 6]) == UNDECIDED
    assert state({"one_run": "337"}, [6, 6, 6]) == FAILS
    assert state({"one_run": "6"}, [6, 6, 6]) == HOLDS


def test_one_run_has_no_spread():
    found = outcome_of({"one_run": "7"}, [6])
    assert found.state == UNDECIDED
    assert "about 4 more" in found.lack
    assert state({"one_run": "6"}, [6]) == HOLDS
    assert state({"one_run": "7"}, [6], spread=False) == FAILS


# ------------------------------------------------------ a printed mean


@pytest.mark.parametrize("n", [2, 5, 20])
def test_a_mean_is_tested_as_by_two_one_sided_t_tests(n):
    rng = np.random.default_rng(n)
    found = set()
    for _ in range(40):
        values = rng.normal(10, rng.choice([0.05, 0.3, 1.0, 5.0]), n) + rng.choice([0, 0.8, 3])
        low = stats.ttest_1samp(values, 9.0, alternative="greater").pvalue
        high = stats.ttest_1samp(values, 11.0, alternative="less").pvalue
        far = min(
            stats.ttest_1samp(values, 9.0, alternative="less").pvalue,
            stats.ttest_1samp(values, 11.0, alternative="greater").pvalue,
        )
        expected = HOLDS if max(low, high) < 0.05 else FAILS if far < 0.05 else UNDECIDED
        assert state({"mean": {"of": 10, "margin": 0.1}}, values) == expected
        assert state({"mean": {"of": 10, "margin": 1.0, "absolute": True}}, values) == expected
        found.add(expected)
    assert len(found) >= 2


def test_a_mean_says_its_interval_and_how_many_more_would_decide():
    values = [9.0, 10.0, 11.0]
    half = stats.t.ppf(0.95, 2) / math.sqrt(3)
    found = outcome_of({"mean": {"of": "10", "margin": 0.1}}, values)
    assert found.state == UNDECIDED and found.measured == "10 (mean)"
    assert found.place == f"90 % interval {10 - half:.4g} to {10 + half:.4g}"
    assert found.accepted == "10 ± 1"
    more = int(found.lack.split("about ")[1].split()[0])
    needed = next(n for n in range(3, 99) if stats.t.ppf(0.95, n - 1) / math.sqrt(n) <= 1)
    assert more == needed - 3
    found = outcome_of({"mean": {"of": 10, "margin": 0.1}}, [10, 12])
    assert "no number of runs would" in found.lack


def test_a_printed_mean_without_a_spread_is_taken_to_have_ours():
    """FedAvg+FT in Table 1 of `fedrep`, three seeds; the words say whose spread it is."""
    values = [89.34, 89.26, 89.84]
    found = outcome_of(
        {"mean": {"of": "87.65", "runs": 5, "margin": 1.0, "absolute": True}}, values
    )
    error = np.std(values, ddof=1) * math.sqrt(1 / 3 + 1 / 5)
    low, high = stats.t.interval(0.9, 2, np.mean(values), error)
    interval = f"90 % interval {low:.4g} to {high:.4g}"
    assert found.place == f"{interval}, if the 5 printed runs spread as ours"
    assert found.state == FAILS and low > 87.65 + 1.005


def test_a_margin_is_no_narrower_than_the_printed_digits():
    values = [0.1249, 0.1251, 0.125, 0.125]
    assert state({"mean": {"of": "0.12", "margin": 0.001}}, values) == UNDECIDED
    assert state({"mean": {"of": "0.12", "margin": 0.001}}, [0.1235, 0.1236, 0.1237]) == HOLDS
    assert state({"mean": {"of": "0.120", "margin": 0.001}}, [0.1235, 0.1236, 0.1237]) == FAILS


def test_computed_values_are_each_within_the_margin():
    test = {"mean": {"of": 10, "margin": 0.1}}
    assert state(test, [10.5], spread=False) == HOLDS
    assert state(test, [12], spread=False) == FAILS
    assert state(test, [8, 12], spread=False) == FAILS  # their mean is 10
    assert state(test, [10.5]) == UNDECIDED


# ------------------------------------------------------ flags, limits, exact numbers


@pytest.mark.parametrize("n", [1, 4, 5, 8, 11, 30])
def test_most_runs_are_counted_as_by_a_binomial_test(n):
    for right in range(n + 1):
        more = stats.binomtest(right, n, 0.5, alternative="greater").pvalue
        fewer = stats.binomtest(right, n, 0.5, alternative="less").pvalue
        expected = HOLDS if more < 0.05 else FAILS if fewer < 0.05 else UNDECIDED
        values = [True] * right + [False] * (n - right)
        assert state({"holds": "most"}, values) == expected
        limit = {"limit": 1, "of": "most"}
        assert state({"at_most": limit}, [0.5 if x else 2 for x in values]) == expected
        assert state({"at_least": limit}, [1.5 if x else 0 for x in values]) == expected
        every = HOLDS if n == right and n >= 5 else UNDECIDED if n == right else FAILS
        assert state({"holds": "every"}, values) == every
        assert state({"between": [0, 1]}, [0.5 if x else 2 for x in values]) == every


def test_computed_flags_need_no_repeats():
    assert state({"holds": "every"}, [True], spread=False) == HOLDS
    assert state({"holds": "most"}, [True, True, False], spread=False) == FAILS
    assert state({"at_most": {"limit": 1}}, [1.0], spread=False) == HOLDS


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([6, 6], HOLDS), ([6, 6.4], HOLDS), ([6, 7], FAILS), ([6, NAN], FAILS),
        ([6, None], UNDECIDED), ([7, None], FAILS), ([NAN, None], FAILS),
    ],
)  # fmt: skip
def test_an_exact_number_is_every_value(values, expected):
    assert state({"equals": "6"}, values) == expected
    found = outcome_of({"equals": "6"}, values)
    assert found.accepted == "6 in every run"
    assert state({"equals": 6}, [6.0]) == HOLDS and state({"equals": 6}, [6.001]) == FAILS


# ------------------------------------------------------ repeats without a result

ALL = [
    {"one_run": "6"}, {"mean": {"of": "6", "margin": 0.5}}, {"equals": "6"},
    {"at_most": {"limit": 1e300}}, {"at_least": {"limit": -1e300}}, {"between": [-1e300, 1e300]},
]  # fmt: skip


@pytest.mark.parametrize("test", ALL, ids=lambda test: next(iter(test)))
@pytest.mark.parametrize("spread", [True, False])
def test_a_repeat_without_a_result_never_helps(test, spread):
    full = [6.0] * 6
    assert state(test, full, spread=spread) == HOLDS
    for gone in (None, NAN):
        if "one_run" not in test:  # whose print lies among the runs with a result
            assert state(test, [6.0] * 5 + [gone], spread=spread) != HOLDS


@pytest.mark.parametrize("test", [*ALL, {"holds": "every"}, {"holds": "most"}], ids=str)
@pytest.mark.parametrize("spread", [True, False])
def test_runs_that_say_nothing_decide_nothing_but_runs_that_failed_fail(test, spread):
    """Fits without enough points, or comparisons that could not be made, made an item fail."""
    found = outcome_of(test, [None] * 3, spread=spread)
    assert found.state == UNDECIDED and "3 of 3" in found.lack
    if "holds" not in test:
        assert state(test, [NAN] * 6, spread=spread) == FAILS
        assert state(test, [NAN] * 5 + [None], spread=spread) == FAILS


@pytest.mark.parametrize("test", ALL[2:], ids=lambda test: next(iter(test)))
def test_what_holds_in_all_runs_that_say_something_is_undecided(test):
    found = outcome_of(test, [6.0] * 6 + [None] * 2)
    assert found.state == UNDECIDED and "2 of 8" in found.lack


@pytest.mark.parametrize("test", [{"equals": "6"}, {"at_most": {"limit": 7}}, {"between": [5, 7]}])
def test_what_fails_in_one_run_fails_beside_those_that_say_nothing(test):
    assert state(test, [6.0, 8.0, None]) == FAILS
    assert state(test, [6.0, NAN, None]) == FAILS


def test_most_counts_runs_that_say_nothing_for_neither_side():
    test = {"at_most": {"limit": 7, "of": "most"}}
    assert state(test, [6.0] * 8 + [None]) == HOLDS
    assert state(test, [6.0] * 5 + [None]) == UNDECIDED
    assert state(test, [8.0] * 8 + [None]) == FAILS
    assert state(test, [NAN] * 8 + [None]) == FAILS
    assert state(test, [8.0] * 4 + [None] * 2) == UNDECIDED


def test_a_flag_without_a_value_decides_neither_way():
    assert state({"holds": "most"}, [True] * 5) == HOLDS
    assert state({"holds": "most"}, [True] * 5 + [None]) == UNDECIDED
    assert state({"holds": "most"}, [False] * 4 + [None] * 2) == UNDECIDED
    assert state({"holds": "most"}, [False] * 5) == FAILS
    assert state({"holds": "every"}, [True] * 5 + [None]) == UNDECIDED
    assert state({"holds": "every"}, [True] * 5 + [None, False]) == FAILS


def test_runs_that_never_get_there_may_lie_beyond_the_others():
    values = [10, 11, 12, NAN]
    found = outcome_of({"one_run": "1000"}, values)
    assert found.state == UNDECIDED and "1 of 4" in found.lack
    assert state({"one_run": "12"}, values) == HOLDS
    assert state({"one_run": "0.2"}, values) == FAILS
    assert state({"one_run": "1000"}, [10, 11, 12, math.inf]) == UNDECIDED


def test_what_fails_fails_whatever_the_missing_would_have_been():
    test = {"mean": {"of": 6, "margin": 0.1}}
    assert state(test, [60, 61, 62, NAN]) == FAILS
    found = outcome_of(test, [6, 6.01, 6.02, NAN])
    assert found.state == UNDECIDED and "1 of 4" in found.lack
