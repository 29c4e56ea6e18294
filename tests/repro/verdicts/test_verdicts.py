"""The word for the text as printed, and the second line, follow from what was run."""

from __future__ import annotations

import math
import random
from itertools import pairwise

import pytest

from fedcore.errors import ConfigError, DataError
from fedcore.reports import tables
from fedcore.repro.config.claims import written_out
from fedcore.repro.verdicts import answers, records, verdict_pages, verdicts
from fedcore.repro.verdicts.decision_rules import DOUBT, FEW, SILENT, Part
from fedcore.repro.verdicts.verdicts import FAILS, HOLDS, NOT_RUN, UNDECIDED
from refused import refused

CHANGES = {
    "order": {"what": "the order is that of the other page", "ground": "contradiction",
              "because": "b", "passages": ["p. 1: up", "p. 2: down"]},
    "code": {"what": "the signs are those of the code", "ground": "authors' code", "because": "b",
             "passages": ["x"]},
    "found": {"what": "clients start from the server's basis", "ground": "search", "because": "b",
              "tried": 20, "searched": {"a": "all of it"}},
    "scaled": {"what": "pixels are scaled", "ground": "left open", "because": "b"},
    "centred": {"what": "pixels are centred", "ground": "left open", "because": "b"},
}  # fmt: skip
ITEM = {
    "id": "a", "title": "A is first", "source": "Section 5", "kind": "sentence", "printed": "first",
    "select": {"table": "t", "where": {"way": "own"}, "column": "value"},
    "test": {"most_runs": {}}, "because": "b",
}  # fmt: skip
NUMBER = {"number": {"of": "6"}}
TWO = ITEM["select"] | {"where": {"way": ["own", "two"]}, "points": ["way"]}


def item(**changes):
    return ITEM | changes


def reading(way, *replaces, fills_in=(), **more):
    select = {"where": {"way": way}}
    return {"replaces": list(replaces), "fills_in": list(fills_in), "select": select, **more}


def rows(values, way="own", **more):
    return [{"way": way, "repeat": i, "value": v, **more} for i, v in enumerate(values)]


def flags(agree, n):
    return [True] * agree + [False] * (n - agree)


@pytest.fixture
def judge(tmp_path):
    """Write a table, judge items against it."""

    def judge(table, *items, not_run=(), stand_ins=False, quick=False, **more):
        if table is not None:
            tables.write(table, tmp_path / "t.tsv")
        read = written_out({"changes": CHANGES, "items": list(items), **more}, "mf.yaml")
        asked = {"not_run": not_run, "stand_ins": stand_ins, "quick": quick}
        judge.read = read
        return verdicts.judge("mf", read, tmp_path, **asked)

    return judge


# ------------------------------------------------------ the first word


@pytest.mark.parametrize(("agree", "word"), [(7, HOLDS), (0, FAILS), (4, UNDECIDED)])
def test_the_word_is_that_of_the_text_as_printed(judge, agree, word):
    (found,) = judge(rows(flags(agree, 7)), item())
    assert (found.word, found.measured, found.otherwise) == (word, f"{agree} of 7", None)
    assert bool(found.why) == (word == UNDECIDED)


@pytest.mark.parametrize(
    ("own", "other", "word"),
    [(7, 7, HOLDS), (0, 0, FAILS), (7, 0, UNDECIDED), (7, 4, UNDECIDED), (4, 4, UNDECIDED)],
)
def test_two_fillings_must_agree(judge, own, other, word):
    table = rows(flags(own, 7)) + rows(flags(other, 7), "centred")
    (found,) = judge(table, item(readings=[reading("centred", fills_in=["centred"])]))
    assert (found.word, found.otherwise) == (word, None)
    assert f"{other} of 7" in found.measured + found.why
    assert ("depends on" in found.why) == ({own, other} == {0, 7})
    assert bool(found.why) == (word == UNDECIDED)


def test_fillings_are_told_apart_by_what_they_do_not_share(judge):
    table = rows(flags(0, 7)) + rows(flags(4, 7), "centred")
    given = item(fills_in=["scaled"], readings=[reading("centred", fills_in=["scaled", "centred"])])
    (found,) = judge(table, given)
    assert found.word == UNDECIDED and "pixels are scaled" not in found.why + found.measured
    assert (found.why + found.measured).count("if pixels are centred") == 1


def test_two_fillings_on_both_sides_of_a_number_leave_it_undecided(judge):
    low, high = [3.0, 3.1, 2.9, 3.0, 3.0], [9.0, 9.1, 8.9, 9.0, 9.0]
    centred = reading("centred", fills_in=["centred"])
    for other, word in ((high, UNDECIDED), (low, FAILS)):
        table = rows(low) + rows(other, "centred")
        assert judge(table, item(test=NUMBER, readings=[centred]))[0].word == word


def test_what_replaces_the_print_is_not_run_as_printed(judge):
    (found,) = judge(rows(flags(10, 10)), item(replaces=["code"]))
    assert (found.word, found.otherwise.state) == (NOT_RUN, HOLDS)
    assert "the signs are those of the code" in found.why


TESTS = {  # of every kind: the test, and values of one run that agrees and of one that does not
    "flags": ({"most_runs": {}}, (True, False)),
    "limits": ({"most_runs": {"at_most": 1}}, (0.5, 2.0)),
    "probability": ({"most_runs": {"probability": 0.7}}, (True, False)),
    "always": ({"most_runs": {"every": True}}, (True, False)),
    "number": (NUMBER, (6.1, 12.0)),
    "exact": ({"exact": {"at_most": 1}}, (0.5, 2.0)),
}


def drawn(random_, kind, share):
    ends = TESTS[kind][1]
    values = [ends[random_.random() >= share] for _ in range(random_.choice((5, 10, 20, 20)))]
    if kind == "number":
        values = [value * (1 + 0.01 * random_.random()) for value in values]
    failed = kind == "limits" and share == 0.5
    return [math.nan if failed and random_.random() < 0.1 else value for value in values]


@pytest.mark.parametrize("kind", TESTS)
@pytest.mark.parametrize("cells", [False, True])
@pytest.mark.parametrize("headline", [{}, {"headline": "the claim"}])
def test_the_first_word_does_not_move_with_other_readings(judge, kind, cells, headline):
    """Over random evidence for what was run as printed and for all that replaces it."""
    random_ = random.Random(f"{kind}{cells}{headline}")
    columns = ("value", "more")
    parts = {"cells": {c: {"select": {"column": c}} for c in columns}} if cells else {}
    others = [reading("code", "code"), reading("order", "order"),
              reading("found", "found", fills_in=["scaled"])]  # fmt: skip
    seen = set()
    for _ in range(8):
        share = random_.choice((0.0, 0.5, 0.9, 1.0))
        printed = rows(drawn(random_, kind, share)) + rows(drawn(random_, kind, share), "centred")
        words = set()
        for _ in range(2):
            table = [*printed]
            for way in random_.sample(("code", "order", "found"), random_.randrange(4)):
                table += rows(drawn(random_, kind, random_.random()), way)
            table = [row | {"more": row["value"]} for row in table]
            centred = reading("centred", fills_in=["centred"])
            given = item(test=TESTS[kind][0], **parts, **headline)
            for readings in ([centred, *others], [*reversed(others), centred]):
                found = judge(table, given | {"readings": readings})[0]
                words.add((found.word, found.measured, found.why))
        assert len(words) == 1
        seen |= {word for word, *_ in words}
    assert len(seen) > 1 or headline


@pytest.mark.parametrize("kind", ["flags", "limits", "number", "always"])
def test_more_runs_of_a_true_effect_do_not_lose_it(judge, kind):
    random_ = random.Random(kind)
    lost = 0
    for _ in range(20):
        share = 1.0 if kind == "number" else 0.9
        table = rows([v for _ in range(20) for v in drawn(random_, kind, share)][:80])
        values = [row["value"] for row in table]
        words = [
            judge(rows(values[:n]), item(test=TESTS[kind][0]))[0].word for n in (10, 20, 40, 80)
        ]
        lost += any(a == HOLDS != b for a, b in pairwise(words))
    assert lost == 0 and words[-1] == HOLDS


# ------------------------------------------------------ the second line


def test_another_passage_of_the_paper_is_the_second_line(judge):
    """It stands there whether it holds or not, as it is the paper that says otherwise."""
    table = rows(flags(7, 7)) + rows(flags(7, 7), "code") + rows(flags(0, 7), "passage")
    readings = [reading("code", "code"), reading("passage", "order")]
    (found,) = judge(table, item(readings=readings))
    assert (found.word, found.otherwise.state) == (HOLDS, FAILS)


def test_the_second_line_is_the_fewest_replacements_that_hold(judge):
    table = rows(flags(0, 10)) + rows(flags(10, 10), "one") + rows(flags(10, 10), "two")
    two, one = reading("two", "code", "order"), reading("one", "code")
    (found,) = judge(table, item(readings=[two, one]))
    assert (found.word, found.otherwise.how) == (FAILS, "the signs are those of the code")
    table = rows(flags(0, 10)) + rows(flags(1, 10), "one") + rows(flags(0, 10), "two")
    (found,) = judge(table, item(readings=[two, one]))
    assert len(found.otherwise.replaces) == 2  # none holds: the first that is listed


def test_a_search_needs_evidence_that_is_as_many_times_as_strong(judge):
    found = reading("found", "found")
    for n, state in ((10, UNDECIDED), (12, HOLDS)):
        table = rows(flags(0, 7)) + rows(flags(n, n), "found")
        (own,) = judge(table, item(readings=[found]))
        assert (own.word, own.otherwise.state) == (FAILS, state)
        assert "found by trying 20 readings, all of it in it" in answers.second_line(own)
    (other,) = judge(table, item(id="a", readings=[found]), item(id="b", readings=[found]))[1:]
    assert "this item not in it" in answers.second_line(other)


# ------------------------------------------------------ which rows


def test_points_that_the_run_left_out_are_named(judge):
    select = ITEM["select"] | {"where": {"way": ["own", "two", "three"]}}
    table = rows(flags(7, 7)) + rows(flags(7, 7), "two")
    given = item(select=select | {"points": ["way"]})
    (found,) = judge(table, given, not_run={"three"})
    assert (found.word, found.measured) == (HOLDS, "14 of 14, three not run")
    # Without points each of the values must be there.
    assert judge(table, item(select=select))[0].word == NOT_RUN


@pytest.mark.parametrize("test", ["flags", "limits", "always", "exact"])
@pytest.mark.parametrize("silent", [[], [None] * 14])
def test_an_item_without_a_result_at_one_of_its_points_cannot_hold(judge, test, silent):
    """Nor is it said that more runs would decide; the point is named."""
    given, (agrees, disagrees) = TESTS[test]
    (found,) = judge(rows([agrees] * 14) + rows(silent, "two"), item(test=given, select=TWO))
    assert (found.word, found.why) == (UNDECIDED, "there is no result at two")
    assert "no result" not in found.measured
    if not silent:
        (found,) = judge(rows([disagrees] * 14), item(test=given, select=TWO))
        assert found.word == FAILS and "no result at two" in found.measured
    (found,) = judge(rows([agrees] * 14) + rows([agrees] * 14, "two"), item(test=given, select=TWO))
    assert found.word == HOLDS


def test_an_item_says_why_runs_are_silent_where_no_run_has_a_result(judge):
    select = {**ITEM["select"], "silent": "no run arrives"}
    points = TWO | {"silent": "no run arrives"}
    for given, table in ((select, rows([None] * 7)), (points, rows(flags(7, 7)))):
        (found,) = judge(table, item(select=given))
        assert found.word == UNDECIDED and found.why.endswith(": no run arrives")
    (found,) = judge(rows(flags(4, 7)), item(select=select))
    assert found.word == UNDECIDED and "no run arrives" not in found.why


def test_a_reading_has_what_its_runs_lack_as_data(judge):
    """Its kind, its counts and its points stand apart from the words."""

    def part(table, test=ITEM["test"], **more):
        (found,) = judge(table, item(select=TWO | more, test=test))
        ((name, one),) = found.readings[0].parts.items()
        assert (name, one.state, bool(one.lack)) == ("", found.word, found.word == UNDECIDED)
        return one

    two, every = rows(flags(7, 7), "two"), {"most_runs": {"every": True}}
    assert part(rows(flags(7, 7)) + two) == Part(HOLDS, (14, 14))
    assert part(rows(flags(0, 7)) + two).share == (7, 14)
    assert part(rows(flags(4, 7)) + rows(flags(4, 7), "two")).lack == FEW
    assert part(rows(flags(2, 20)) + rows(flags(20, 20), "two"), every).state == FAILS
    doubt = part(rows(flags(2, 7)) + two + two[:0], every)
    assert (doubt.lack, doubt.share, doubt.at) == (DOUBT, (9, 14), ("own",))
    gone = part(rows(flags(7, 7)), silent="no run arrives", called={"two": "α = 2"})
    assert (gone.lack, gone.at, gone.silent) == (SILENT, ("α = 2",), "no run arrives")
    assert part(rows([None] * 7) + rows([None] * 7, "two")).lack == SILENT


def test_the_parts_of_a_failing_reading_have_their_own_states(judge):
    table = rows(flags(9, 9), "held") + rows(flags(0, 9), "lost") + rows(flags(5, 9), "open")
    cells = {way: {"select": {"where": {"way": way}}} for way in ("held", "lost", "open")}
    (found,) = judge(table, item(select=ITEM["select"] | {"where": {}}, cells=cells))
    parts = found.readings[0].parts
    assert {name: one.state for name, one in parts.items()} == {
        "held": HOLDS, "lost": FAILS, "open": UNDECIDED
    }  # fmt: skip
    assert parts["open"] == Part(UNDECIDED, (5, 9), FEW)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "test", [{"at_most": 1}, {"at_least": -1}, {"between": [-1, 1e300]}, {"equals": 1}]
)
def test_a_run_that_is_lost_agrees_with_nothing(judge, value, test):
    kinds = [{"exact": test}] + ([{"most_runs": test}] if "equals" not in test else [])
    for kind in kinds:
        assert judge(rows([value] * 10), item(test=kind))[0].word == FAILS


@pytest.mark.parametrize(
    ("printed", "without", "cause"),
    [
        (0, 7, "the signs"), (0, 4, "perhaps the signs"), (0, 0, ""),
        (4, 7, ""), (7, 7, ""),  # only what fails has a cause
    ],
)  # fmt: skip
def test_a_cause_is_named_if_the_item_fails_and_holds_without_it(judge, printed, without, cause):
    given = item(cause="signs", readings=[reading("code", "code")])
    table = rows(flags(printed, 7)) + rows(flags(without, 7), "code")
    (found,) = judge(table, given, causes=signs("code"))
    assert (found.word == FAILS, found.cause) == (printed == 0, cause)
    (told,) = judge.read["items"]
    assert verdicts.retold(found, told, judge.read) == found


def signs(*taken_away):
    return {"signs": {"what": "the signs", "because": "b", "taken_away": list(taken_away)}}


def test_a_reading_that_replaces_more_than_a_cause_does_not_show_it(judge):
    readings = [reading("code", "code"), reading("both", "code", "found")]
    table = rows(flags(0, 7)) + rows(flags(0, 7), "code") + rows(flags(100, 100), "both")
    for taken_away, cause in ((("code",), ""), (("code", "found"), "the signs")):
        given = item(cause="signs", readings=readings)
        (found,) = judge(table, given, causes=signs(*taken_away))
        assert [one.state for one in found.readings] == [FAILS, FAILS, HOLDS]
        assert found.cause == cause


def test_several_changes_are_told_apart_by_semicolons(judge):
    two = reading("code", "code", fills_in=["scaled"])
    (found,) = judge(rows(flags(7, 7), "code"), item(readings=[two]))
    changes = "the signs are those of the code", "pixels are scaled"
    assert found.readings[1].how == "; ".join(changes)


def test_runs_are_taken_in_the_order_of_their_seeds(judge):
    table = rows(flags(8, 20)) + rows(flags(7, 7), "two")
    shuffled = random.Random(1).sample(table, len(table))
    assert judge(shuffled, item(select=TWO))[0].measured == "14 of 14"


def test_points_whose_runs_agree_unequally_often_are_told_apart(judge):
    table = rows(flags(2, 7)) + rows(flags(7, 7), "two")
    for called, name in (({}, "two"), ({"two": "α = 2"}, "α = 2")):
        (found,) = judge(table, item(select=TWO | {"called": called}))
        assert found.measured == f"9 of 14 (2 of 7 at own; 7 at {name})"


def test_two_rows_of_one_run_are_no_two_runs(judge):
    select = ITEM["select"] | {"where": {"way": ["own", "two"]}}
    table = rows(flags(7, 7)) + rows(flags(7, 7), "two")
    refused(lambda: judge(table, item(select=select)), ConfigError, "mf, a", "points")


def test_a_limit_may_be_a_column(judge):
    table = [
        row | {"bound": bound} for row, bound in zip(rows([1.0, 2.0]), (1.5, 1.9), strict=True)
    ]
    given = item(test={"exact": {"at_most": "bound"}})
    assert judge(table, given)[0].word == FAILS
    assert judge([row | {"bound": 3.0} for row in table], given)[0].word == HOLDS


@pytest.mark.parametrize(
    ("change", "name"),
    [({"select": ITEM["select"] | {"column": "valu"}}, "'value'"),
     ({"select": ITEM["select"] | {"where": {"wey": "own"}}}, "'way'"),
     ({"test": NUMBER}, "value")],
)  # fmt: skip
def test_an_item_that_does_not_fit_its_table_is_refused(judge, change, name):
    refused(lambda: judge(rows(flags(7, 7)), item(**change)), ConfigError, "mf, a", name)


# ------------------------------------------------------ what was not run


def test_not_run_says_why_in_a_sentence(judge):
    absent = {**ITEM["select"], "where": {"way": "gone"}, "absent": "A start takes hours."}
    cases = [
        (None, item(), {}, "This run made no table '"),
        (rows(flags(7, 7)), item(select=absent), {}, "A start takes hours."),
        (rows(flags(7, 7)), item(needs=[["x", "y"]]), {"x", "y"}, "x or y"),
        (None, item(select=absent, needs=["x"]), {"x"}, "A start takes hours."),
        (rows(flags(7, 7), status="surrogate"), item(), {}, "stand-ins"),
    ]
    for table, given, not_run, why in cases:
        (found,) = judge(table, given, not_run=not_run)
        assert found.word == NOT_RUN and why in found.why
    bare = {k: v for k, v in ITEM.items() if k not in ("select", "test")}
    (found,) = judge(None, bare | {"not_run": "CelebA may not be passed on."})
    assert (found.word, found.why) == (NOT_RUN, "CelebA may not be passed on.")
    assert judge(rows(flags(7, 7)), item(needs=[["x", "y"]]), not_run={"x"})[0].word == HOLDS


def test_an_unknown_status_or_a_damaged_table_is_an_error_and_no_verdict(judge, tmp_path):
    refused(lambda: judge(rows(flags(7, 7), status="surogate"), item()), DataError, "'surrogate'")
    (tmp_path / "t.tsv").write_text("way\tvalue\nown\n")
    refused(lambda: judge(None, item()), DataError)


def test_a_quick_run_has_no_words(judge):
    table = rows(flags(0, 7), status="surrogate")
    checks = [item(id="check", kind="check")]
    own, gone, check = judge(
        table, item(), item(id="b", select=ITEM["select"] | {"table": "u"}), software=checks,
        quick=True,
    )  # fmt: skip
    assert (own.word, own.measured, own.otherwise) == ("ran", "", None)
    assert gone.word == "did not run" and check.word == "ran"
    assert verdict_pages.opening("What?", [own, gone]) == ""
    kept = judge(rows(flags(10, 10)), item(headline="the claim"))
    text = verdict_pages.overview([own, gone], {}, kept)
    assert (
        "2 items as printed: 1 ran, 1 did not run" in text
        and "Yes. Holds: the claim." in text
        and "fails" not in text
    )


# ------------------------------------------------------ twins


NEVER = math.nan


@pytest.mark.parametrize(
    ("pairs", "test", "word"),
    [
        ([(0.5, 0.6)] * 7, {"most_runs": {"at_most": 1}}, HOLDS),
        ([(0.5, 2.0)] + [(0.5, 0.5)] * 6, {"most_runs": {"at_most": 1}}, UNDECIDED),
        ([(0.5, NEVER)] + [(0.5, 0.5)] * 6, {"most_runs": {"at_most": 1}}, UNDECIDED),
        ([(6.0, 6.0), (6.1, 6.1), (5.9, 5.9), (6.0, 6.0), (6.0, 6.0)], NUMBER, HOLDS),
        ([(6.0, 6.2), (6.1, 5.9), (5.9, 6.1), (6.0, 6.0), (6.0, 6.0)], NUMBER, UNDECIDED),
        ([(60.0, 62.0), (61.0, 59.0), (59.0, 61.0), (60.0, 60.0), (60.0, 60.0)], NUMBER, FAILS),
    ],
)
def test_rounding_decides_where_twins_turn_the_word(judge, pairs, test, word):
    table = rows([own for own, _ in pairs])
    table = [row | {"twin_value": twin} for row, (_, twin) in zip(table, pairs, strict=True)]
    (found,) = judge(table, item(test=test))
    assert found.word == word and ("rounding decides" in found.why) == (word == UNDECIDED)


# ------------------------------------------------------ records of tests


def test_another_test_needs_new_seeds_and_the_page_says_so(tmp_path):
    def printed(**changes):
        return written_out({"changes": CHANGES, "items": [item(**changes)]}, "mf.yaml")

    first, second = printed(), printed(headline="the claim")
    assert records.remarks(tmp_path, first, 1) == {}
    records.record(tmp_path, first, date="2026-11-28", commit="abc", seed=1)
    called = printed(select=ITEM["select"] | {"called": {"own": "α = 1"}, "absent": "It is long."})
    for same in (first, printed(because="other words", title="In other words"), called):
        assert records.fingerprints(same) == records.fingerprints(first)
        records.record(tmp_path, same, date="2026-11-29", commit="abd", seed=1)
    assert len(records.read(tmp_path)) == 1
    assert "were seen" in records.remarks(tmp_path, first, 1)["a"]
    assert records.remarks(tmp_path, first, 2) == {}
    assert "new test" in records.remarks(tmp_path, second, 2)["a"]
    records.record(tmp_path, second, date="2026-11-30", commit="abe", seed=2)
    remark = records.remarks(tmp_path, second, 3)["a"]
    assert remark == "test of 2026-11-30; an earlier one was dropped"
    assert "needs new seeds" in records.remarks(tmp_path, second, 2)["a"]
