"""The three tests of printed items: their limits, what they may not confuse, and how they err."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from fedcore.repro.verdicts import decision_rules
from fedcore.repro.verdicts.decision_rules import (
    ALONE,
    FAILS,
    FEW,
    HEADLINE,
    HOLDS,
    NEAR,
    SILENT,
    SPREAD,
    UNCLEAR,
    UNDECIDED,
    USUAL,
    Outcome,
    Part,
    agreement,
    judge_exact,
    judge_jointly,
    judge_number,
    judge_runs,
    weigh,
)

NUMBER = {"of": 1.0, "runs": 1, "theory": False, "scale": "relative", "point": 1,
          "reading_error": 0.0}  # fmt: skip


def runs(agree, n, **given):
    return judge_runs([[1.0] * agree + [0.0] * (n - agree)], given)


def number(values, demand=USUAL, pooled=None, **given):
    return judge_number(list(values), NUMBER | given, demand, pooled)


# ------------------------------------------------------ test A


@pytest.mark.parametrize(("k", "n", "q"), [(7, 7, 0.5), (13, 15, 0.5), (3, 20, 0.8), (43, 43, 0.9)])
def test_the_weight_of_runs_is_the_mean_likelihood_over_that_of_the_share(k, n, q):
    def likelihood(p):
        return p**k * (1 - p) ** (n - k)

    above, below = weigh(k, n, q)
    assert above == pytest.approx(integrate.quad(likelihood, q, 1)[0] / (1 - q) / likelihood(q))
    assert below == pytest.approx(integrate.quad(likelihood, 0, q)[0] / q / likelihood(q))


@pytest.mark.parametrize(
    ("k", "n", "q"),
    [(7, 7, 0.5), (13, 15, 0.5), (16, 20, 0.5), (23, 30, 0.5), (42, 60, 0.5),
     (20, 20, 0.8), (43, 43, 0.9)],
)  # fmt: skip
def test_a_sentence_holds_from_so_many_runs_on_and_fails_from_as_many_against_it(k, n, q):
    assert runs(k, n, probability=q).state == HOLDS
    fewer = runs(k - 1, n - (k == n), probability=q)
    assert fewer.state == UNDECIDED and fewer.why
    if q == 0.5:
        assert (runs(n - k, n).state, runs(n - k + (k < n), n - (k == n)).state) == (
            FAILS, UNDECIDED,
        )  # fmt: skip


def test_a_headline_needs_more_and_a_search_as_many_times_more():
    for k, n in ((9, 9), (14, 15), (18, 20)):
        assert judge_runs([[1.0] * k + [0.0] * (n - k)], {}, HEADLINE).state == HOLDS
        assert judge_runs([[1.0] * (k - 1) + [0.0] * (n + 1 - k)], {}, HEADLINE).state == UNDECIDED
    searched = USUAL._replace(searched=20)
    ten = [[1.0] * 10]
    assert judge_runs(ten, {}).state == HOLDS and judge_runs(ten, {}, searched).state == UNDECIDED


@pytest.mark.parametrize("demand", [USUAL, HEADLINE])
def test_looking_after_each_run_errs_no_oftener_than_the_weight_allows(demand):
    """The exact law of the first crossing where each run agrees with probability ½."""
    alive, wrong = {0: 1.0}, 0.0
    for n in range(1, 201):
        after: dict[int, float] = {}
        for k, chance in alive.items():
            for more in (0, 1):
                after[k + more] = after.get(k + more, 0.0) + chance / 2
        crossed = {k for k in after if weigh(k, n)[0] >= demand.holds}
        wrong += sum(after.pop(k) for k in crossed)
        alive = after
    assert 0.1 / demand.weight < wrong < 1 / demand.weight


def test_points_count_alike_by_the_first_runs_of_each():
    """Forty runs of one point may not outvote seven of another."""
    many, few = [0.0] * 7 + [1.0] * 33, [1.0] * 7
    found = judge_runs([many, few], {})
    assert (found.measured, found.state, found.runs) == ("7 of 14", UNDECIDED, 14)


def test_always_fails_where_one_point_fails_by_itself():
    points = [[1.0] * 20] * 3 + [[0.0] * 20]
    assert judge_runs(points, {}).state == HOLDS
    assert judge_runs(points, {"every": True}).state == FAILS
    # A headline: W(0, 10) = 186 is below 400, and two more runs there reach it, W(0, 12) = 630.
    open_ = judge_runs([[1.0] * 10] * 3 + [[0.0] * 10], {"every": True}, HEADLINE)
    assert open_.measured == "30 of 40"
    assert (open_.state, open_.growth) == (UNDECIDED, 1.2)
    assert "2 more runs there would refute it" in open_.why
    # Of 200 runs, one point has 78 and the other 122: no number of runs is named for either.
    rare, often = [[1.0] * k + [0.0] * (200 - k) for k in (78, 122)]
    assert 20 < weigh(78, 200)[1] < 2 * HEADLINE.fails
    open_ = judge_runs([rare, often], {"every": True}, HEADLINE)
    assert (open_.state, open_.growth) == (UNDECIDED, 0.0) and "more" not in open_.why


@pytest.mark.parametrize(("n", "demand"), [(8, USUAL), (11, HEADLINE)])
def test_always_does_not_hold_where_one_point_speaks_against_it(n, demand):
    """W there is enough for one item, but not for four, and all runs together would hold."""
    points = [[1.0] * n] * 3 + [[0.0] * n]
    assert USUAL.weight < weigh(0, n)[1] < 4 * demand.fails
    assert judge_runs(points, {}, demand).state == HOLDS
    found = judge_runs(points, {"every": True}, demand)
    assert found.state == UNDECIDED and f"0 of {n} runs agree" in found.why


def test_always_does_not_hold_while_fewer_of_a_points_runs_agree_than_are_asked():
    points = [[1.0] * 5] * 3 + [[1.0, 1.0, 0.0, 0.0, 0.0]]
    assert judge_runs(points, {}).state == HOLDS
    assert judge_runs(points, {"every": True}).state == UNDECIDED
    assert judge_runs([*points[:3], [1.0, 1.0, 1.0, 0.0, 0.0]], {"every": True}).state == HOLDS


def test_a_run_without_a_result_never_helps_and_one_that_says_nothing_never_harms():
    assert judge_runs([[1.0] * 6 + [None]], {}).state == UNDECIDED
    assert judge_runs([[0.0] * 6 + [None]], {}).state == UNDECIDED
    assert judge_runs([agreement([math.nan] * 7, {"at_most": 1}, [1] * 7)], {}).state == FAILS
    assert judge_runs([[None] * 30], {}).state == UNDECIDED


def test_two_hundred_runs_without_an_order_have_none():
    assert runs(105, 200).why == "no clear order after 200 runs"
    assert "4 more runs" in judge_runs([[1.0] * 5], {}, HEADLINE).why


# ------------------------------------------------------ test B


def test_a_number_holds_where_it_lies_among_ours_and_ours_are_narrow():
    narrow = [0.98, 0.99, 1.0, 1.01, 1.02]
    found = number(narrow)
    assert found.state == HOLDS and "within ± 10 %" in found.measured
    assert number(narrow, of=1.3).state == FAILS and number(narrow, of=1.3).side == 1
    wide = number([0.5, 0.8, 1.0, 1.2, 1.5])
    assert wide.state == UNDECIDED and "spread by ±" in wide.why
    assert number(narrow[:4]).state == UNDECIDED


def test_it_is_said_whether_more_runs_can_narrow_a_number_down():
    values = [0.75, 0.85, 1.0, 1.15, 1.25]
    once, averaged = number(values), number(values, runs=20)
    assert once.growth == 0 and "more would not tell, as the print is of 1 run" in once.why
    assert averaged.growth == 2 and "10 runs would tell" in averaged.why
    points = {str(i): outcome for i, outcome in enumerate([once] * 5 + [averaged] * 5)}
    lack = judge_jointly(points, True).why
    assert "at 10 of 10 points" in lack and "more runs would not" in lack
    assert "more runs would not" not in judge_jointly({"a": averaged, "b": averaged}, True).why


@pytest.mark.parametrize("level", [0.05, 0.01])
def test_the_width_is_that_of_students_prediction_interval(level):
    rng = np.random.default_rng(0)
    ours = rng.normal(1, 0.05, 10)
    t = stats.t.ppf(1 - level / 2, 9)
    end = ours.mean() + t * ours.std(ddof=1) * math.sqrt(1 / 10 + 1 / 4)
    inside, outside = (HOLDS, UNDECIDED) if level == 0.05 else (UNDECIDED, FAILS)
    tight = {"runs": 4, "scale": "exponent", "tolerance": 1e-9}
    wide = {"runs": 4, "scale": "accuracy", "point": 0.05}
    given = tight if level == 0.01 else wide | {"point": 0.04}
    assert number(ours, of=float(end) * 0.999, **given).state == inside
    assert number(ours, of=float(end) * 1.001, **given).state == outside


def test_more_runs_than_the_last_look_do_not_count():
    ours = [0.98, 0.99, 1.0, 1.01, 1.02]
    assert number(ours + [50.0] * 4) == number(ours)
    assert number(ours * 2).runs == 10


def test_few_runs_take_the_spread_of_rows_of_one_kind():
    rng = np.random.default_rng(1)
    groups = rng.normal(0, 2.0, (200, 4))
    deviation, freedom = decision_rules.pooled_deviation([list(group) for group in groups])
    assert freedom == 600 and deviation == pytest.approx(2.0, rel=0.1)
    assert number([1.0, 1.0], pooled=(0.02, 38)).state == HOLDS
    assert number([1.0], of=1.2, pooled=(0.02, 38)).state == FAILS
    assert decision_rules.pooled_deviation([[1.0], [2.0]]) is None


def test_positive_values_that_spread_widely_are_compared_by_logarithms():
    rng = np.random.default_rng(2)
    ours = np.exp(rng.normal(0, 0.5, 40))
    factor = math.exp(stats.t.ppf(0.975, 39) * np.log(ours).std(ddof=1) * math.sqrt(1 / 40 + 1))
    print_ = float(np.exp(np.log(ours).mean()))
    for x in (print_ * factor**2, print_ / factor**2):
        assert number(ours, of=x).state == FAILS
    assert number(ours, of=print_).state == UNDECIDED  # too wide to show anything


def test_a_number_without_a_result_is_no_agreement():
    assert number([1.0, 1.0, 1.01, 0.99, math.nan]).state == UNDECIDED
    assert number([math.nan] * 10).state == FAILS and number([None] * 10).state == UNDECIDED


@pytest.mark.parametrize(
    ("given", "near", "far"),
    [({"of": "80.1", "scale": "accuracy"}, 80.9, 84.0),
     ({"of": "1", "scale": "exponent"}, 1.2, 1.6),
     ({"of": "-7", "scale": "exponent", "tolerance": 1.0}, -6.2, -5.0)],
)  # fmt: skip
def test_scales_have_tolerances_of_their_own(given, near, far):
    for center, state in ((near, HOLDS), (far, FAILS)):
        assert number(center + 0.01 * np.arange(-2, 3), **given).state == state


@pytest.mark.parametrize("tails", [None, 3])
def test_numbers_of_the_same_law_fail_seldom_and_those_half_as_large_again_hold_seldom(tails):
    rng = np.random.default_rng(3)

    def draw(n):
        return rng.standard_normal(n) if tails is None else rng.standard_t(tails, n) / math.sqrt(3)

    words = []
    for factor in (1.0, 1.5):
        for _ in range(300):
            x, ours = factor * (1 + 0.1 * draw(1)[0]), 1 + 0.1 * draw(40)
            looks = [number(ours[:n], of=float(x)).state for n in (5, 10, 20, 40)]
            words.append(next((word for word in looks if word != UNDECIDED), UNDECIDED))
    most = 0.05 if tails is None else 0.08
    most += 3 * math.sqrt(most * (1 - most) / 300)
    assert words[:300].count(FAILS) < most * 300 and words[300:].count(HOLDS) < most * 300
    assert words[:300].count(HOLDS) > 200 and words[300:].count(FAILS) > 200


# ------------------------------------------------------ test C and cells


def test_what_is_exact_holds_in_every_value_and_says_its_slack():
    values = [0.1, 0.25, 0.5]
    found = judge_exact(values, agreement(values, {"at_most": 1}, [1.0] * 3), [1.0] * 3)
    assert (found.state, found.measured) == (HOLDS, "0.25 [0.1, 0.5], slack 2")
    assert judge_exact(values, agreement(values, {"at_most": 0.4}, [0.4] * 3)).state == FAILS
    assert judge_exact([1.0, None], [1.0, None]).state == UNDECIDED
    assert judge_exact([math.nan], agreement([math.nan], {"at_most": 1}, [1])).state == FAILS


@pytest.mark.parametrize(
    ("given", "value", "right"),
    [({"equals": "1.0"}, 1.04, 1), ({"equals": "1.0"}, 1.06, 0), ({"equals": 1.0}, 1.0, 1),
     ({"between": [1, 2]}, 2.0, 1), ({"between": [1, 2]}, 2.1, 0), ({"at_least": 1}, 1.0, 1),
     ({"at_least": 1}, 0.9, 0), ({}, 1.0, 1), ({}, 0.0, 0), ({"at_most": 1}, None, None)],
)  # fmt: skip
def test_a_value_agrees_with_its_limit(given, value, right):
    assert agreement([value], given, [1.0]) == [right]


def test_cells_hold_together_and_fail_if_one_does():
    held, open_, failed = (Outcome(Part(state), "m") for state in (HOLDS, UNDECIDED, FAILS))
    for cells, panel, state in (
        ([held] * 3, False, HOLDS), ([held, open_], False, UNDECIDED),
        ([held, failed], False, FAILS), ([held] * 9 + [open_], True, HOLDS),
        ([held] * 8 + [open_] * 2, True, UNDECIDED), ([held] * 19 + [failed], True, UNDECIDED),
        ([held] * 18 + [failed] * 2, True, FAILS),
    ):  # fmt: skip
        assert judge_jointly({str(i): c for i, c in enumerate(cells)}, panel).state == state


def test_what_two_cells_lack_is_said_once():
    lacks = {name: Outcome(Part(UNDECIDED), "m", "few runs") for name in "ab"}
    assert judge_jointly(lacks, False).why == "a and b: few runs"


def test_what_cannot_tell_names_the_kind_of_what_it_lacks():
    unclear = runs(105, 200)
    narrow, wider = [0.98, 0.99, 1.0, 1.01, 1.02], [0.95, 0.975, 1.0, 1.025, 1.05]
    kinds = {
        UNCLEAR: unclear, FEW: runs(4, 7), SILENT: judge_runs([[None] * 30], {}),
        SPREAD: number([0.1, 1.9, 1.0, 0.5, 1.5]), NEAR: number(wider, of=1.16),
    }  # fmt: skip
    for kind, found in kinds.items():
        assert (found.state, found.part.lack) == (UNDECIDED, kind)
    assert unclear.part.share == (105, 200)
    assert number(narrow).part == Part(HOLDS) and number(narrow[:3]).part.lack == FEW
    assert judge_exact([1.0, None], [1.0, None]).part == Part(UNDECIDED, (1, 2), SILENT)
    open_ = [Outcome(Part(UNDECIDED, lack=kind), "m") for kind in (NEAR, SPREAD, SPREAD)]
    for rest, kind in ((open_, SPREAD), ([Outcome(Part(FAILS), "m")], ALONE)):
        cells = [Outcome(Part(HOLDS), "m")] * 3 + rest
        found = judge_jointly({str(i): cell for i, cell in enumerate(cells)}, True)
        assert found.part == Part(UNDECIDED, (3, len(cells)), kind)


def test_a_failure_of_one_of_many_cells_must_be_the_stronger():
    ours = 1 + 0.05 * np.array([-1, 1, -0.5, 0.5, 0.0] * 2)
    off = float(1 + 4 * ours.std(ddof=1) * math.sqrt(1.1))
    assert number(ours, of=off).state == FAILS
    assert number(ours, USUAL._replace(cells=50), of=off).state == UNDECIDED


@given(st.integers(1, 60), st.data())
def test_as_many_runs_as_an_undecided_order_asks_for_decide_it(n, data):
    k = data.draw(st.integers(0, n))
    first = runs(k, n)
    assert first.growth == 0 or (first.growth > 1 and first.state == UNDECIDED)
    if first.growth:
        m = round(n * first.growth)
        assert runs(round(k * m / n), m).state != UNDECIDED
