"""Error rates of the tests of printed items, by simulation of runs whose law is known.

A print that is one of ours, or a true sentence, must fail seldom; one that is not must hold seldom,
and the more runs there are, the more often the tests must say so.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedcore.repro.verdicts import claim_tests
from fedcore.repro.verdicts.claim_tests import FAILS, HOLDS, LEVEL, UNDECIDED, joined, outcome_of

TIMES = 400
MOST = LEVEL + 3 * math.sqrt(LEVEL * (1 - LEVEL) / TIMES)  # as many as chance allows at the level


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Leave out how many more repeats would decide, which takes most of the time."""
    monkeypatch.setattr(claim_tests, "_needed", lambda decides, n: 1)


def share(draw, verdict, seed=7):
    """Return the share of `TIMES` draws of (test, values) with a verdict."""
    rng = np.random.default_rng(seed)
    return sum(outcome_of(*draw(rng)).state == verdict for _ in range(TIMES)) / TIMES


# ------------------------------------------------------ a printed number of one run

LAWS = {
    "normal": lambda rng, n: rng.normal(-3, 1, n),
    "lognormal": lambda rng, n: rng.lognormal(0, 1, n),
    "exponential": lambda rng, n: rng.exponential(1, n),
    "geometric": lambda rng, n: rng.geometric(0.02, n).astype(float),  # counts
    "heavy tails": lambda rng, n: rng.standard_t(2, n),
    "pareto": lambda rng, n: 1 + rng.pareto(1, n),
}


@pytest.mark.parametrize("n", [3, 5, 10, 40])
@pytest.mark.parametrize("law", LAWS)
def test_a_run_like_the_others_is_rarely_called_an_outlier(n, law):
    def draw(rng):
        *ours, printed = LAWS[law](rng, n + 1)
        return {"one_run": f"{printed:.9g}" if printed > 0 else printed}, ours

    assert share(draw, FAILS) < MOST
    # It lies among the others as often as it must, (n - 1) of n + 1 times; ties lie within.
    expected = (n - 1) / (n + 1)
    found = share(draw, HOLDS)
    assert found > expected - 4 * math.sqrt(expected * (1 - expected) / TIMES)


@pytest.mark.parametrize(("n", "least"), [(5, 0.5), (10, 0.9), (40, 0.99)])
def test_a_print_three_times_too_large_is_seen_where_starts_differ_by_a_fifth(n, least):
    def draw(rng):
        *ours, printed = rng.lognormal(5, 0.2, n + 1)
        return {"one_run": f"{3 * printed:.0f}"}, ours

    assert share(draw, FAILS) > least
    assert share(draw, HOLDS) < 0.01


# ------------------------------------------------------ a printed mean


@pytest.mark.parametrize("runs", [None, 1, 4])
@pytest.mark.parametrize(("truth", "wrong"), [(11.0, HOLDS), (11.0, FAILS), (9.0, HOLDS)])
def test_errors_of_a_mean_at_its_margin_are_rare(runs, truth, wrong):
    """At the margin itself each of the two answers comes in at most 5 of 100 cases.

    With `runs`, the printed number is a mean of as many runs with our spread.
    """

    def draw(rng):
        printed = 10.0 + (rng.normal(0, 0.5, runs).mean() if runs else 0.0)
        given = {"of": printed, "margin": 1.0, "absolute": True} | ({"runs": runs} if runs else {})
        return {"mean": given}, rng.normal(truth, 0.5, 8)

    assert share(draw, wrong, seed=3) < MOST


@pytest.mark.parametrize(
    ("of", "verdict", "least"), [(-2.0, HOLDS, 0.95), (-3.0, FAILS, 0.99), (-1.0, FAILS, 0.99)]
)
def test_a_slope_is_told_from_one_half_as_steep_again(of, verdict, least):
    """Twenty slopes with a deviation of 0.2, as those of an error in n."""

    def draw(rng):
        return {"mean": {"of": of, "margin": 0.1}}, rng.normal(-2, 0.2, 20)

    assert share(draw, verdict) > least


# ------------------------------------------------------ sentences


@pytest.mark.parametrize("n", [5, 8, 20])
def test_an_ordering_that_is_a_toss_is_rarely_decided(n):
    for verdict in (HOLDS, FAILS):
        assert share(lambda rng: ({"holds": "most"}, rng.random(n) < 0.5), verdict) < MOST


@pytest.mark.parametrize(("p", "verdict"), [(0.9, HOLDS), (0.1, FAILS)])
def test_an_ordering_of_nine_in_ten_is_decided_by_twenty_runs(p, verdict):
    assert share(lambda rng: ({"holds": "most"}, rng.random(20) < p), verdict) > 0.95


@pytest.mark.parametrize("groups", [1, 2, 6])
@pytest.mark.parametrize("n", [5, 20])
def test_a_sentence_about_many_groups_is_rarely_refuted_by_chance(n, groups):
    """In each group it is true of half of the runs, which is the worst case that does not fail."""
    rng = np.random.default_rng(1)
    failed = 0
    for _ in range(TIMES):
        values = rng.random((groups, n)) < 0.5

        def judged(i, failing, values=values):
            return outcome_of({"holds": "most"}, values[i], failing=failing)

        failed += any(outcome.state == FAILS for outcome in joined(judged, groups))
    assert failed / TIMES < MOST


def groups_of(*counts, n=5):
    """Return the states of groups in which so many of n runs are true."""

    def judged(i, failing):
        values = [True] * counts[i] + [False] * (n - counts[i])
        return outcome_of({"holds": "most"}, values, failing=failing)

    return [outcome.state for outcome in joined(judged, len(counts))]


def test_one_group_of_many_that_seems_to_fail_decides_nothing_and_two_do():
    assert groups_of(0) == [FAILS]
    assert groups_of(0, 5) == [UNDECIDED, HOLDS]
    assert groups_of(0, 0) == [FAILS, FAILS]
    assert groups_of(0, 20, 20, n=20) == [FAILS, HOLDS, HOLDS]  # by itself, it is beyond chance
    assert groups_of(5, 5, 5) == [HOLDS] * 3


@pytest.mark.parametrize("n", [5, 10])
def test_as_many_more_runs_as_a_verdict_asks_for_decide_as_a_rule(monkeypatch, n):
    monkeypatch.undo()
    rng = np.random.default_rng(5)
    asked = decided = 0
    for _ in range(150):
        values = rng.normal(10.0, 1.0, n)
        test = {"mean": {"of": 10.3, "margin": 0.8, "absolute": True}}
        found = outcome_of(test, values)
        if found.state == UNDECIDED and "about" in found.lack:
            more = int(found.lack.split("about ")[1].split()[0])
            asked += 1
            decided += outcome_of(test, rng.normal(10.0, 1.0, n + more)).state != UNDECIDED
    assert asked > 25 and decided / asked > 0.5
