"""Verdicts follow from what was run and what came out, and every line can fail."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from fedcore.errors import ConfigError, DataError
from fedcore.reports import tables
from fedcore.repro.config.claims import written_out
from fedcore.repro.verdicts import verdict_pages, verdicts
from fedcore.repro.verdicts.measurements import Departure
from refused import refused

ITEM = {
    "id": "table2-wk2023-w8a",
    "quantity": "communications to reach the error",
    "source": "Table 2",
    "kind": "number",
    "printed": "6",
    "select": {"table": "rounds", "where": {"method": "wk"}, "column": "rounds"},
    "test": {"one_run": "6"},
}
DEPARTURES = {
    "order": {"what": "the order of the code", "ground": "contradiction", "because": "b",
              "passages": ["p. 1: up", "p. 2: down"]},
    "code": {"what": "as the code", "ground": "authors' code", "because": "b", "passages": ["x"]},
    "signs": {"what": "other signs", "ground": "fitted", "because": "b", "tried": 20,
              "searched": "Table 4"},
}  # fmt: skip


def item(**changes):
    return ITEM | changes


def reading(column, *departures, **more):
    return {"departures": list(departures), "select": {"column": column}, **more}


def names(found):
    return [departure.name for departure in found.departures]


def rows(*numbers, method="wk", **more):
    return [
        {"method": method, "repeat": i, "rounds": number, **more}
        for i, number in enumerate(numbers)
    ]


@pytest.fixture
def judge(tmp_path):
    """Write a table, judge items against it."""

    def judge(table, *claims, not_run=(), surrogate=False, software=()):
        if table is not None:
            tables.write(table, tmp_path / "mf" / "rounds.tsv")
        given = {"departures": DEPARTURES, "tables": {}, "claims": list(claims)}
        read = written_out(given | {"software": list(software)}, "mf.yaml")
        return verdicts.judge("mf", read, tmp_path, not_run=dict(not_run), surrogate=surrogate)

    return judge


# ------------------------------------------------------ what was run, and what came out


def test_reproduced(judge):
    (found,) = judge(rows(5, 6, 7) + rows(90, method="other"), item())
    assert (found.verdict, found.departures, found.section) == ("reproduced", (), "claims")
    assert (found.measured, found.low, found.high) == ("6", 5.0, 7.0)
    assert (found.count, found.missing, found.place) == (3, 0, "1 of 3 below")
    assert found.accepted == "within the range of 3 runs, 5 to 7"
    assert found.where == "rounds.tsv, rounds; method = wk"
    assert (found.paper, found.id, found.printed) == ("mf", ITEM["id"], "6")
    assert found.counterfactual == "9 printed: undecided; 3 printed: undecided"
    assert found.turned is True


def test_undecided_says_how_many_more_and_has_turned_nothing(judge):
    (found,) = judge(rows(7.5, 8.5), item())
    assert (found.verdict, found.counterfactual, found.turned) == ("undecided", "", None)


def test_a_departure_of_the_only_reading_is_named(judge):
    (found,) = judge(rows(5, 6, 7), item(departures=["code"]))
    assert (found.verdict, names(found)) == ("holds with a departure", ["code"])
    (found,) = judge(rows(60, 61, 62), item(departures=["code"]))
    assert found.verdict == "deviates"


@pytest.mark.parametrize(
    ("printed", "other", "departures", "verdict"),
    [
        (6, 60, ["order"], "reproduced"),
        (60, 6, ["order"], "contradicts itself"),
        (60, 6, ["code"], "holds with a departure"),
        (60, 6, ["signs"], "holds with a departure"),
        (60, 6, ["order", "code"], "holds with a departure"),
        (60, 60, ["order"], "deviates"),
        (8, 6, ["order"], "undecided"),  # the print itself may still hold
        (60, 8, ["order"], "undecided"),
    ],
)
def test_readings_count_where_the_print_fails(judge, printed, other, departures, verdict):
    table = [
        row | {"other": other + i / 10}
        for i, row in enumerate(rows(*(printed + i / 10 for i in range(4))))
    ]
    (found,) = judge(table, item(readings=[reading("other", *departures)]))
    assert found.verdict == verdict
    assert (found.turned is None) == (verdict == "undecided")


def test_a_reading_without_power_is_not_passed_over_for_one_that_happens_to_have(judge):
    """Between 2 and 10 lie 6, 9 and 3; between 5 and 7 lies 6 alone."""
    table = [
        row | {"wide": wide, "narrow": narrow}
        for row, wide, narrow in zip(
            rows(*[60] * 5), (2, 4, 6, 8, 10), (5, 6, 6, 6, 7), strict=True
        )
    ]
    wide, narrow = reading("wide", "order"), reading("narrow", "code")
    (found,) = judge(table, item(readings=[narrow, wide]))
    assert found.verdict == "holds with a departure" and found.measured == "6"
    (found,) = judge(table, item(readings=[wide, narrow]))
    assert (found.verdict, found.turned) == ("undecided", None)


def test_only_a_printed_protocol_can_show_that_a_paper_contradicts_itself(judge):
    table = [row | {"other": 6} for row in rows(60, 61, 60, 61)]
    (found,) = judge(table, item(departures=["code"], readings=[reading("other", "order")]))
    assert found.verdict == "holds with a departure"


def test_every_reading_that_was_tried_is_told_with_its_result(judge):
    table = [row | {"b": 70, "c": 6} for row in rows(60, 61, 60, 61)]
    other = [reading("b", "code"), reading("c", "signs")]
    (found,) = judge(table, item(readings=other))
    assert found.verdict == "holds with a departure"
    assert found.departures == (Departure("signs", "other signs", "fitted", 20, "Table 4"),)
    tried = [(r.measured, r.state) for r in found.readings]
    assert tried == [("6", "holds"), ("60.5", "fails"), ("70", "fails")]
    (found,) = judge(table, item(readings=other[:1]))
    assert (found.verdict, names(found)) == ("deviates", [])
    absent = {"departures": ["code"], "select": {"where": {"method": "absent"}}}
    (found,) = judge(table, item(readings=[absent]))
    assert found.verdict == "deviates" and found.readings[1].obstacle


def test_a_reading_may_have_another_test(judge):
    given = reading("rounds", "code", test={"equals": "60"})
    (found,) = judge(rows(*[60] * 4), item(readings=[given]))
    assert (found.verdict, found.accepted) == ("holds with a departure", "60 in every run")


def test_where_the_print_was_not_run_another_reading_can_hold_and_cannot_fail(judge):
    other = {"departures": ["code"]}
    gone = ITEM["select"] | {"table": "gone"}
    for number, verdict in ((6, "holds with a departure"), (60, "not run")):
        given = item(select=gone, readings=[other | {"select": {"table": "rounds"}}])
        (found,) = judge(rows(*[number] * 4), given)
        assert found.verdict == verdict and any("gone.tsv" in r.obstacle for r in found.readings)
    assert [(r.measured, r.state) for r in found.readings] == [("", ""), ("60", "fails")]


def test_where_the_print_says_nothing_another_reading_can_hold_and_cannot_fail(judge):
    for number, verdict in ((6, "holds with a departure"), (60, "undecided"), (8, "undecided")):
        table = [row | {"other": number + i / 10} for i, row in enumerate(rows(*[None] * 4))]
        (found,) = judge(table, item(readings=[reading("other", "order")]))
        assert found.verdict == verdict and found.count == 4
        assert [r.state for r in found.readings if r.lack and not r.departures] == ["undecided"]
        assert found.missing == (4 if number == 60 else 0)


def test_unchecked_items_say_why(judge):
    given = {k: v for k, v in ITEM.items() if k not in ("select", "test")}
    why = {"verdict": "not comparable", "because": "another data set"}
    (found,) = judge(None, given | {"unchecked": why})
    assert (found.verdict, found.because) == ("not comparable", why["because"])
    assert (found.count, found.turned, found.readings) == (0, None, ())


@pytest.mark.parametrize(
    ("value", "verdict"),
    [(6, "passes"), (60, "fails"), (7, "undecided"), (math.nan, "fails"), (None, "undecided")],
)
def test_checks_of_this_software_have_verdicts_of_their_own(judge, value, verdict):
    check = item(kind="check", id="check")
    first, last = judge(rows(*[value] * 4), item(), software=[check])
    assert (first.section, last.section) == ("claims", "software")
    assert last.verdict == verdict
    found = judge(rows(*[value] * 4, status="surrogate"), item(), software=[check])
    assert [v.verdict for v in found] == ["surrogate data", verdict]


# ------------------------------------------------------ which rows


def test_a_claim_for_each_must_hold_for_each(judge):
    claim = item(select={"table": "rounds", "column": "rounds", "each": "method"})
    table = rows(5, 6, 7, method="a") + rows(6, 6, 7, method="b")
    (found,) = judge(table, claim)
    assert (found.verdict, found.measured) == ("reproduced", "a: 6; b: 6")
    assert (found.place, found.turned, found.count) == ("2 of 2 hold", True, 6)
    (found,) = judge(table + rows(8, 8.5, method="c"), claim)
    assert found.verdict == "undecided" and found.readings[0].lack.startswith("c: ")
    assert (found.turned, found.counterfactual) == (None, "")
    (found,) = judge(table + rows(60, 61, 62, method="c"), claim)
    assert (found.verdict, found.counterfactual) == ("deviates", "every run as printed: holds")


@pytest.mark.parametrize(
    "test",
    [
        {"one_run": "6"},
        {"mean": {"of": 6, "margin": 0.1}},
        {"at_most": {"limit": 9, "of": "most"}},
    ],
)
def test_two_rows_of_one_repeat_are_no_two_runs(judge, test):
    """Ten rows from five starts on two problems would pass for ten independent runs."""
    table = rows(6, 6, 7, problem="a") + rows(6, 6, 7, problem="b")
    refused(lambda: judge(table, item(test=test, because="b")), ConfigError, "repeat 0")
    assert len(judge(table, item(test={"equals": "6"}))) == 1
    assert len(judge(table, item(test=test, because="b", spread=False))) == 1


def test_where_may_list_values(judge):
    table = rows(5, 6, method="a") + rows(7, method="b") + rows(60, method="c")
    select = ITEM["select"] | {"where": {"method": ["a", "b"]}}
    (found,) = judge(table, item(select=select, test={"between": [5, 7]}, because="b"))
    assert (found.low, found.high, found.count) == (5.0, 7.0, 3)
    # What is printed of two methods is not shown by one.
    (found,) = judge(rows(5, 6, 7, method="a"), item(select=select))
    assert found.verdict == "not run" and found.readings[0].obstacle.endswith("with method = b")


@pytest.mark.parametrize(
    "cell, wanted, same",
    [
        (5, 5.0, True), (1e-6, "1e-6", True), (None, None, True), ("1", "1", True),
        (True, 1, False), (1, True, False), ("1", 1, False), (None, "", True), (5, '"x', False),
    ],
)  # fmt: skip
def test_rows_are_selected_by_value_and_type(judge, cell, wanted, same):
    select = ITEM["select"] | {"where": {"noise": wanted}}
    (found,) = judge(rows(6, noise=cell), item(select=select))
    assert found.verdict == ("reproduced" if same else "not run")


@pytest.mark.parametrize(
    ("number", "changes", "name"),
    [
        (6, {"select": ITEM["select"] | {"column": "round"}}, "'rounds'"),
        (6, {"select": ITEM["select"] | {"where": {"methd": "wk"}}}, "'method'"),
        (True, {"test": {"one_run": "1"}}, "'holds'"),
        ("6", {"test": {"one_run": "6"}}, "numbers"),
        (6, {"test": {"holds": "every"}}, "'holds'"),
    ],
)
def test_an_item_that_does_not_fit_its_table_is_refused(judge, number, changes, name):
    refused(lambda: judge(rows(number), item(**changes)), ConfigError, "mf, table2", name)


def test_not_run_says_what_is_missing(judge, tmp_path):
    (found,) = judge(None, item())
    assert (found.verdict, found.measured, found.count) == ("not run", "", 0)
    assert str(tmp_path / "mf" / "rounds.tsv") in found.readings[0].obstacle
    absent = item(select=ITEM["select"] | {"absent": "a start takes hours"})
    typo = item(select=ITEM["select"] | {"table": "round"})
    for table, claim, name in (
        (rows(6), typo, "'rounds'"),
        (rows(6, method="other"), item(), "method = wk"),
        (rows(6, method="other"), absent, "a start takes hours"),
    ):
        (found,) = judge(table, claim)
        assert found.verdict == "not run" and name in found.readings[0].obstacle
    (found,) = judge([], item(because="the start lies below the threshold"))
    assert (found.verdict, found.because) == ("not run", "the start lies below the threshold")


def test_data_that_cannot_be_had_are_not_run_even_beside_an_old_table(judge):
    reasons = {"mf/celeba": "CelebA is missing: put it into data/raw/celeba"}
    (found,) = judge(rows(6), item(needs=[["celeba"]]), not_run=reasons)
    assert (found.verdict, found.because) == ("not run", reasons["mf/celeba"])
    assert judge(rows(6), item(needs=[["w8a"]]), not_run=reasons)[0].verdict == "reproduced"
    (found,) = judge(rows(6), item(needs=[["celeba"]]), not_run={"fedrep/celeba": "x"})
    assert found.verdict == "reproduced"


def test_of_several_seeds_one_is_enough(judge):
    of_seeds = item(needs=[["a_1", "a_2"], ["b_1"]])
    assert judge(rows(6), of_seeds, not_run={"mf/a_2": "left out"})[0].verdict == "reproduced"
    without = {"mf/a_1": "left out", "mf/a_2": "lost"}
    (found,) = judge(rows(6), of_seeds, not_run=without)
    assert (found.verdict, found.because) == ("not run", "left out")


@pytest.mark.parametrize("number", [6, 7])
def test_surrogate_data_never_pass(judge, number):
    table = rows(number, status="official") + rows(None, number, status="surrogate")[1:]
    (found,) = judge(table, item())
    assert (found.verdict, found.measured) == ("surrogate data", str(number))
    (found,) = judge(rows(number), item(), surrogate=True)
    assert (found.verdict, found.measured) == ("surrogate data", str(number))
    other = {"departures": ["code"], "select": {"where": {"method": "code"}}}
    table = rows(8, status="official") + rows(number, method="code", status="surrogate")
    assert judge(table, item(readings=[other]))[0].verdict == "surrogate data"


@pytest.mark.parametrize("status", ["official", "official content", "rebuilt", "synthetic"])
def test_rows_that_say_where_they_come_from_are_judged_by_that(judge, status):
    (found,) = judge(rows(6, status=status), item(), surrogate=True)
    assert found.verdict == "reproduced"
    assert judge(rows(6, status=None), item(), surrogate=True)[0].verdict == "surrogate data"


def test_an_unknown_status_or_a_damaged_table_is_an_error_and_no_verdict(judge, tmp_path):
    refused(lambda: judge(rows(6, status="surogate"), item()), DataError, "'surrogate'")
    (tmp_path / "mf" / "rounds.tsv").write_text("method\trounds\nwk\n")
    with pytest.raises(DataError):
        judge(None, item())


# ------------------------------------------------------ twins


CHAOS, NEVER = [(46, 113), (63, 43), (98, 52)], math.nan
TWINS = [  # what runs and their twins found, and the verdict
    (CHAOS, {"at_most": {"limit": 100}}, "undecided"),
    (CHAOS, {"one_run": "55"}, "undecided"),
    # Luck does not help: 61 lies among all of them, but no repeat is worth a number.
    ([(50, 62), (60, 60), (70, 70)], {"one_run": "61"}, "undecided"),
    ([(46, None), (63, None), (71, None)], {"one_run": "55"}, "reproduced"),  # no twin: unseen
    ([(5, 5), (6, 6), (7, 7)], {"one_run": "6"}, "reproduced"),
    ([(5, 5.1), (6, 6.2), (7, 6.8)], {"one_run": "6"}, "reproduced"),
    ([(232, 457), (221, 163), (372, 254)], {"at_most": {"limit": 9}}, "deviates"),
    *(
        ([pair] * 5, {kind: {"limit": limit}}, verdict)
        for pair in ((6.0, NEVER), (NEVER, 6.0))  # one of the two never got there
        for kind, limit, verdict in (
            ("at_least", 5, "undecided"),
            ("at_most", 7, "undecided"),
            ("at_least", 7, "deviates"),
            ("at_most", 5, "deviates"),
        )
    ),
    ([(True, True)] * 5, {"holds": "most"}, "reproduced"),
    ([(True, True)] * 4 + [(True, False)], {"holds": "most"}, "undecided"),
    ([(False, False)] * 5, {"holds": "most"}, "deviates"),
    ([(False, None)] * 5, {"holds": "most"}, "deviates"),
]


@pytest.mark.parametrize(("pairs", "test", "verdict"), TWINS)
def test_rounding_decides_what_a_twin_turns_round(judge, pairs, test, verdict):
    table = [row | {"twin_rounds": twin} for row, (_, twin) in
             zip(rows(*(own for own, _ in pairs)), pairs, strict=True)]  # fmt: skip
    (found,) = judge(table, item(test=test, because="b"))
    assert found.verdict == verdict
    assert (found.turned is None) == (verdict == "undecided")


# ------------------------------------------------------ every line can fail


def test_a_counterfactual_of_ones_own(judge):
    """Rows of a method that must not pass; where it passes, the line shows nothing."""
    other = {"what": "no alignment", "select": {"where": {"method": "none"}}}
    claim = item(
        test={"at_most": {"limit": 8}}, because="b", counterfactual=other,
        select=ITEM["select"],
    )  # fmt: skip
    five = [6] * 5
    (found,) = judge(rows(*five) + rows(*[50] * 5, method="none"), claim)
    assert (found.verdict, found.counterfactual) == ("reproduced", "no alignment (50): fails")
    (found,) = judge(rows(*five) + rows(*[7] * 5, method="none"), claim)
    assert found.verdict == "undecided"
    (found,) = judge(rows(*five), claim)
    assert (found.verdict, found.turned) == ("undecided", None)
    scale = {"what": "ten times the error", "scale": 10}
    (found,) = judge(rows(*[0.9] * 5), claim | {"counterfactual": scale})
    assert (found.verdict, found.counterfactual) == ("reproduced", "ten times the error: fails")


def test_a_counterfactual_of_each_is_of_its_own_group(judge):
    """The method that must not pass does on problem b, which the rows of a would hide."""
    select = ITEM["select"] | {"each": "problem"}
    other = {"what": "none", "select": {"where": {"method": "none"}}}
    claim = item(test={"at_most": {"limit": 8}}, because="b", counterfactual=other, select=select)
    table = [row for p in "ab" for row in rows(*[6] * 5, problem=p)]
    bad = rows(*[50] * 5, problem="a", method="none")
    (found,) = judge(table + bad + rows(*[50] * 5, problem="b", method="none"), claim)
    assert found.verdict == "reproduced" and found.turned
    (found,) = judge(table + bad + rows(*[7] * 5, problem="b", method="none"), claim)
    assert found.verdict == "undecided" and found.readings[0].lack.startswith("b: ")


KEPT = verdict_pages.kept_tables(Path(__file__).parents[3] / "papers")


@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.parent.name)
def test_every_counterfactual_of_the_last_full_run_turned_its_line(path):
    kept = verdict_pages.read(path)
    assert [v.id for v in kept if v.turned is False] == []
    assert [v.id for v in kept if v.verdict == "undecided" and v.turned is not None] == []
    decided = ("reproduced", "deviates", "contradicts itself", "holds with a departure", "passes")
    assert [v.id for v in kept if v.verdict in decided and not v.turned] == []
    measured = [v for v in kept if v.verdict not in ("not run", "not comparable")]
    assert [v.id for v in measured if not (v.count and v.accepted and v.readings)] == []
    assert [v.id for v in kept if v.count == 0 and not verdict_pages.reasons(v)] == []
