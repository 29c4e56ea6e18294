"""What must turn an outcome does, and a test that nothing turns has no power."""

from __future__ import annotations

import math

import pytest

from fedcore.repro.verdicts.claim_tests import FAILS, HOLDS, UNDECIDED, outcome_of
from fedcore.repro.verdicts.counterfactuals import shifted, turned, with_power


def state(test, values):
    return outcome_of(test, values).state


def after(test, values):
    """Return the outcome of a test that holds, after its counterfactuals, and whether they turn."""
    outcome = outcome_of(test, values)
    assert outcome.state == HOLDS
    return with_power(outcome, turned(test, values, HOLDS))


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
    outcome, turns = after(test, values)
    assert outcome.state == HOLDS and turns
    assert any(other.state != HOLDS for _, other in turned(test, values, HOLDS))


@pytest.mark.parametrize(("test", "values"), HOLDING, ids=str)
def test_every_test_that_fails_is_turned_by_runs_as_printed(test, values):
    far = [not x for x in values] if "holds" in test else [1e6 * (1 + x * x) for x in values]
    far = [-1e6] * 5 if "at_least" in test else far
    outcome = outcome_of(test, far)
    ((what, other),) = turned(test, far, outcome.state)
    assert (outcome.state, what) == (FAILS, "every run as printed")
    assert other.state == HOLDS or (other.state == UNDECIDED and len(values) < 5)


@pytest.mark.parametrize("values", [[math.nan] * 3, [True, True, False, True, True]])
def test_what_fails_in_part_is_turned_too(values):
    test = {"holds": "every"} if True in values else {"one_run": "6"}
    assert state(test, values) == FAILS
    ((_, other),) = turned(test, values, FAILS)
    assert other.state == HOLDS


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
    found, turns = after(test, values)
    assert (found.state, turns) == (UNDECIDED, False)
    assert found.lack.startswith("no power: it would also hold with ")


def test_a_range_that_holds_one_of_the_two_shifts_has_no_power():
    found, turns = after({"one_run": "337"}, [200, 340, 600])
    assert (found.state, turns) == (UNDECIDED, False)
    assert found.lack == "no power: it would also hold with 506 printed"
    assert after({"one_run": "337"}, [320, 340, 345])[0].state == HOLDS
    found, _ = after({"one_run": "337"}, [100, 340, 600])
    assert found.lack == "no power: it would also hold with 506 printed or 168 printed"


@pytest.mark.parametrize(
    ("printed", "others"),
    [
        ("337", ["506", "168"]), ("1", ["2", "0"]), ("2", ["3", "1"]), ("0", ["1", "-1"]),
        ("1.80e-06", ["2.70e-06", "9.00e-07"]), (2, [3.0, 1.0]), (-1.0, [-1.5, -0.5]),
    ],
)  # fmt: skip
def test_a_shifted_number_has_the_digits_of_the_printed_one(printed, others):
    assert shifted(printed) == others
