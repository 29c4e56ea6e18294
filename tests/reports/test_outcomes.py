"""Tests of a printed item: against scipy's tests, by simulated error rates, and in closed cases."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from fedcore.reports import outcomes
from fedcore.reports.outcomes import FAILS, HOLDS, UNDECIDED, judge, shifted, turned, with_power

NAN = math.nan


def state(test, values, **options):
    return judge(test, values, **options).state


@pytest.fixture
def quick(monkeypatch):
    """Leave out how many more repeats would decide, which takes most of the time."""
    monkeypatch.setattr(outcomes, "_more", lambda decides, n: "")


# ------------------------------------------------------ a printed number of one run


def test_a_print_within_the_range_holds_wherever_it_lies():
    for printed in ("162", "337", "368"):
        assert state({"one_run": printed}, [162, 250, 300, 368]) == HOLDS
    found = judge({"one_run": "337"}, [162, 250, 300, 368])
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
            found = judge({"one_run": scale * x}, scale * sample)
            assert found.state == (FAILS if p < 0.05 else UNDECIDED)
            decided.add(found.state)
    assert FAILS in decided or n == 2


@pytest.mark.parametrize("n", [3, 5, 10, 40])
@pytest.mark.parametrize("draw", ["normal", "lognormal", "geometric"])
def test_a_run_like_the_others_is_rarely_called_an_outlier(quick, n, draw):
    """The print is one more run of ours: it must fail in at most 5 of 100 cases."""
    rng, times = np.random.default_rng(7), 600
    draws = {
        "normal": lambda: rng.normal(-3, 1, n + 1),
        "lognormal": lambda: rng.lognormal(0, 1, n + 1),
        "geometric": lambda: rng.geometric(0.02, n + 1).astype(float),  # counts
    }
    failed = 0
    for _ in range(times):
        *ours, printed = draws[draw]()
        failed += state({"one_run": f"{printed:.9g}" if printed > 0 else printed}, ours) == FAILS
    assert failed / times < 0.05 + 3 * math.sqrt(0.05 * 0.95 / times)


def test_from_39_runs_on_the_range_alone_decides():
    uniform = np.linspace(1, 2, 39)  # no Student would call 2.01 an outlier
    assert state({"one_run": "2.01"}, uniform) == FAILS
    found = judge({"one_run": "2.01"}, uniform[::2])
    assert found.state == UNDECIDED and "about 19 more would decide" in found.lack


def test_equal_counts_are_no_sure_thing():
    """Of a count that is 6 nine times in ten, two runs show nothing; a far print fails."""
    assert state({"one_run": "7"}, [6, 6, 6]) == UNDECIDED
    assert state({"one_run": "337"}, [6, 6, 6]) == FAILS
    assert state({"one_run": "6"}, [6, 6, 6]) == HOLDS


def test_one_run_has_no_spread():
    found = judge({"one_run": "7"}, [6])
    assert found.state == UNDECIDED
    assert found.lack == "one run has no spread; about 4 more would decide"
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


@pytest.mark.parametrize("runs", [None, 1, 4])
@pytest.mark.parametrize(("truth", "wrong"), [(11.0, HOLDS), (11.0, FAILS), (9.0, HOLDS)])
def test_errors_of_a_mean_at_its_margin_are_rare(quick, runs, truth, wrong):
    """At the margin itself each of the two answers comes in at most 5 of 100 cases.

    With `runs`, the printed number is a mean of as many runs with our spread.
    """
    rng, times = np.random.default_rng(3), 600
    count = 0
    for _ in range(times):
        printed = 10.0 + (rng.normal(0, 0.5, runs).mean() if runs else 0.0)
        given = {"of": printed, "margin": 1.0, "absolute": True}
        given |= {"runs": runs} if runs else {}
        count += state({"mean": given}, rng.normal(truth, 0.5, 8)) == wrong
    assert count / times < 0.05 + 3 * math.sqrt(0.05 * 0.95 / times)


def test_a_mean_says_its_interval_and_how_many_more_would_decide():
    values = [9.0, 10.0, 11.0]
    half = stats.t.ppf(0.95, 2) / math.sqrt(3)
    found = judge({"mean": {"of": "10", "margin": 0.1}}, values)
    assert found.state == UNDECIDED and found.measured == "10 (mean)"
    assert found.place == f"90 % interval {10 - half:.4g} to {10 + half:.4g}"
    assert found.accepted == "10 ± 1"
    more = int(found.lack.split("about ")[1].split()[0])
    needed = next(n for n in range(3, 99) if stats.t.ppf(0.95, n - 1) / math.sqrt(n) <= 1)
    assert more == needed - 3
    assert "no number of runs would" in judge({"mean": {"of": 10, "margin": 0.1}}, [10, 12]).lack


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


def test_flags_say_how_many_more_would_decide():
    assert judge({"holds": "most"}, [True] * 4).lack == "4 of 4 may be chance; about 1 more " + (
        "would decide"
    )
    assert "no number of runs" in judge({"holds": "most"}, [True, False]).lack


def test_computed_flags_need_no_repeats():
    assert state({"holds": "every"}, [True], spread=False) == HOLDS
    assert state({"holds": "most"}, [True, True, False], spread=False) == FAILS
    assert state({"at_most": {"limit": 1}}, [1.0], spread=False) == HOLDS


@pytest.mark.parametrize(
    ("values", "expected"), [([6, 6], HOLDS), ([6, 6.4], HOLDS), ([6, 7], FAILS), ([6, NAN], FAILS)]
)
def test_an_exact_number_is_every_value(values, expected):
    assert state({"equals": "6"}, values) == expected
    found = judge({"equals": "6"}, values)
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
    assert state(test, [None, NAN], spread=spread) == FAILS
    full, gap = [6.0] * 6, [6.0] * 5 + [None]
    assert state(test, full, spread=spread) == HOLDS
    if "one_run" not in test:  # whose print lies among the runs with a result
        assert state(test, gap, spread=spread) != HOLDS


def test_a_flag_without_a_value_decides_neither_way():
    assert state({"holds": "most"}, [True] * 5) == HOLDS
    assert state({"holds": "most"}, [True] * 5 + [None]) == UNDECIDED
    assert state({"holds": "most"}, [False] * 4 + [None] * 2) == UNDECIDED
    assert state({"holds": "most"}, [False] * 5) == FAILS
    assert state({"holds": "most"}, [None] * 5) == FAILS  # as of numbers that no run has
    assert state({"holds": "every"}, [True] * 5 + [None]) == UNDECIDED
    assert state({"holds": "every"}, [True] * 5 + [None, False]) == FAILS


def test_runs_that_never_get_there_may_lie_beyond_the_others():
    values = [10, 11, 12, NAN]
    found = judge({"one_run": "1000"}, values)
    assert found.state == UNDECIDED
    assert found.lack == "1 of 4 runs without a result may lie beyond the others"
    assert state({"one_run": "12"}, values) == HOLDS
    assert state({"one_run": "2"}, values) == FAILS
    assert state({"one_run": "1000"}, [10, 11, 12, math.inf]) == UNDECIDED


def test_what_fails_fails_whatever_the_missing_would_have_been():
    test = {"mean": {"of": 6, "margin": 0.1}}
    assert state(test, [60, 61, 62, NAN]) == FAILS
    found = judge(test, [6, 6.01, 6.02, NAN])
    assert (found.state, found.lack) == (UNDECIDED, "1 of 4 runs without a result")


# ------------------------------------------------------ counterfactuals

HOLDING = [
    ({"one_run": "337"}, [330, 340, 345]),
    ({"one_run": "0"}, [0, 0, 0]),
    ({"one_run": "1.80e-06"}, [1.7e-6, 1.9e-6]),
    ({"one_run": -2.0}, [-2.1, -2.0, -1.9]),
    ({"mean": {"of": "6", "margin": 0.05}}, [6, 6.01, 5.99]),
    ({"mean": {"of": -2, "margin": 0.2, "absolute": True}}, [-2, -2.01, -1.99]),
    ({"mean": {"of": 0, "margin": 0.2, "absolute": True}}, [0.01, -0.01, 0]),
    ({"equals": "6"}, [6, 6]),
    ({"equals": "1"}, [1, 1]),
    ({"equals": 0}, [0, 0]),
    ({"holds": "most"}, [True] * 5),
    ({"holds": "every"}, [True] * 5),
    ({"at_most": {"limit": 1}}, [0.5] * 5),
    ({"at_most": {"limit": -1.5}}, [-2.0] * 5),
    ({"at_least": {"limit": 1, "of": "most"}}, [2.0] * 5),
    ({"at_least": {"limit": -3}}, [-2.0] * 5),
    ({"between": [0.8, 1.2]}, [1.0] * 5),
    ({"between": [-1.2, -0.8]}, [-1.0] * 5),
    ({"between": [-0.1, 0.1]}, [0.0] * 5),
]


@pytest.mark.parametrize(("test", "values"), HOLDING, ids=str)
def test_every_test_that_holds_is_turned(test, values):
    outcome = judge(test, values)
    what, other = turned(test, values, outcome.state)
    assert outcome.state == HOLDS != other.state
    assert with_power(outcome, what, other) == outcome


@pytest.mark.parametrize(("test", "values"), HOLDING, ids=str)
def test_every_test_that_fails_is_turned_by_runs_as_printed(test, values):
    far = [not x for x in values] if "holds" in test else [1e6 * (1 + x * x) for x in values]
    far = [-1e6] * 5 if "at_least" in test else far
    outcome = judge(test, far)
    what, other = turned(test, far, outcome.state)
    assert (outcome.state, what) == (FAILS, "every run as printed")
    assert other.state == HOLDS or (other.state == UNDECIDED and len(values) < 5)


@pytest.mark.parametrize("values", [[None] * 3, [True, True, False, True, True]])
def test_what_fails_in_part_is_turned_too(values):
    test = {"holds": "every"} if True in values else {"one_run": "6"}
    assert state(test, values) == FAILS
    assert turned(test, values, FAILS)[1].state == HOLDS


NO_POWER = [
    ({"one_run": "10"}, [1, 100]),  # between 1 and 100 lie 5 and 15, too
    ({"mean": {"of": 1, "margin": 0.5}}, [1, 1, 1]),
    ({"mean": {"of": 1, "margin": 0.35}}, [1.2, 1.2, 1.2]),  # agrees with 1.5 as well
    ({"at_most": {"limit": 1}}, [0.1] * 5),
    ({"at_most": {"limit": 0}}, [0.0] * 5),
    ({"between": [0.1, 10]}, [1.0] * 5),
]


@pytest.mark.parametrize(("test", "values"), NO_POWER, ids=str)
def test_what_would_hold_as_well_for_another_number_is_undecided(test, values):
    outcome = judge(test, values)
    what, other = turned(test, values, outcome.state)
    found = with_power(outcome, what, other)
    assert (outcome.state, found.state) == (HOLDS, UNDECIDED)
    assert found.lack == f"no power: it would also hold with {what}"


@pytest.mark.parametrize(
    ("printed", "others"),
    [
        ("337", ["506", "168"]), ("1", ["2", "0"]), ("2", ["3", "1"]), ("0", ["1", "-1"]),
        ("1.80e-06", ["2.70e-06", "9.00e-07"]), (2, [3.0, 1.0]), (-1.0, [-1.5, -0.5]),
    ],
)  # fmt: skip
def test_a_shifted_number_has_the_digits_of_the_printed_one(printed, others):
    assert shifted(printed) == others
