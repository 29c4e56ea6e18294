"""Statistics over repeats, and what of them is rounding."""

import math

import pytest

from fedcore.errors import InputError
from fedcore.repro.tables import summaries
from refused import refused


def test_summarise_groups_in_order_of_appearance():
    rows = [{"m": m, "x": x} for m, x in [("b", 3), ("a", 1), ("b", 9), ("b", 4.0), ("a", 2)]]
    assert summaries.summarise(rows, "x", ["m"]) == [
        {"m": "b", "median": 4.0, "min": 3.0, "max": 9.0, "count": 3},
        {"m": "a", "median": 1.5, "min": 1.0, "max": 2.0, "count": 2},
    ]


def test_summarise_counts_a_missing_value_as_never_reached():
    rows = [{"m": "a", "x": x} for x in (5.0, math.nan, None, 4.0, 6.0)]
    (row,) = summaries.summarise(rows, "x", ["m"])
    assert row == {"m": "a", "median": 6.0, "min": 4.0, "max": 6.0, "count": 5}
    (row,) = summaries.summarise(rows[:4], "x", ["m"])
    assert math.isnan(row["median"]) and row["max"] == 5.0


@pytest.mark.parametrize("bad", ["6", True, [1.0]])
def test_summarise_refuses_what_is_no_number(bad):
    refused(lambda: summaries.summarise([{"x": bad}], "x", []), InputError)


def test_the_failing_end_of_missing_values():
    assert summaries.statistic([6, 7, None], missing="last") == 7.0
    assert summaries.statistic([6, 7, None], missing="first") == 6.0
    assert math.isnan(summaries.statistic([6, 7, None], "max"))
    assert math.isnan(summaries.statistic([6, 7, None], "mean"))
    refused(lambda: summaries.statistic([1], "medain"), InputError, "'median'")


def test_a_summary_says_what_one_rounding_does():
    """46, 63, 98 spread over 52 and change by up to 67; 213, 250, 339 over 126, by up to 1."""
    counts = {"chaotic": [(46, 113), (63, 43), (98, 52)], "stable": [(213, 213), (250, 251)]}
    counts |= {"alone": [(7, None)], "once": [(5.0, math.nan)], "never": [(math.nan, math.nan)]}
    rows = [
        {"method": method, "rounds": run, "twin_rounds": twin}
        for method, pairs in counts.items()
        for run, twin in pairs
    ]
    found = {row["method"]: row for row in summaries.summarise(rows, "rounds", ["method"])}
    assert {m: (r["rounding"], r["decided by"]) for m, r in found.items()} == {
        "chaotic": (67, "rounding"),
        "stable": (1, "start"),
        "alone": (None, None),
        "once": (math.inf, "rounding"),
        "never": (0, None),
    }
    assert found["chaotic"]["median"] == 63
    plain = [{k: v for k, v in row.items() if k != "twin_rounds"} for row in rows]
    assert "rounding" not in summaries.summarise(plain, "rounds", ["method"])[0]


@pytest.mark.parametrize(
    ("change", "decided"), [(0, "start"), (49, "start"), (50, "rounding"), (120, "rounding")]
)
def test_rounding_decides_from_half_of_the_range_over_the_starts_on(change, decided):
    assert summaries.decided_by([100, 200], [100 + change, 200]) == decided


def test_without_leaves_out_columns_and_keeps_the_order_of_the_others():
    rows = [{"a": 1, "b": 2, "c": 3}]
    assert [list(row.items()) for row in summaries.without("b", "x")(rows)] == [
        [("a", 1), ("c", 3)]
    ]


def test_groups_of_several_columns_stand_below_one_another():
    rows = [{"n": 1, "a": 2.0, "b": 5.0}, {"n": 1, "a": 4.0, "b": 7.0}]
    assert summaries.by_group("a", "n")(rows) == summaries.summarise(rows, "a", ["n"])
    found = summaries.by_group(("a", "b"), "n")(rows)
    assert [(row["column"], row["n"], row["median"]) for row in found] == [("a", 1, 3), ("b", 1, 6)]
