"""Rows of tables from runs: what they always say, and what is asked for."""

import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from fedcore.errors import ConfigError, DataError, HistoryError, InputError
from fedcore.history import History
from fedcore.reports import tables
from fedcore.repro.plan.plan import NAMED
from fedcore.repro.tables import report, rows
from fedcore.repro.tables.results import Results, last
from fedpower import tables as fedpower
from folder import Folder
from refused import refused


def made_up(distance):
    rounds = np.tile(np.arange(len(distance[0])), (len(distance), 1))
    return History({"iteration": rounds, "distance": np.array(distance)})


@pytest.fixture
def results(tmp_path):
    folder = Folder(tmp_path, "made_up", {"n_components": 2}, [])
    folder.problems = {"easy": {"label": "Easy"}, "hard": {}}
    tags = {"kind": "drawn", "n": 10}
    for experiment, problem, curves in (
        ("first", "easy", [[3.0, 1.0], [4.0, 2.0]]),
        ("first", "hard", [[9.0, 8.0], [9.0, 7.0]]),
        ("second", "easy", [[5.0, 0.5]]),
    ):
        folder.add(experiment, "ssi", problem, "p-4", history=made_up(curves), tags=tags)
    return folder.results()


def test_a_row_per_repeat_says_what_ran_and_its_tags(results):
    found = results.table(
        "first", end=last("distance"), four=4, start=lambda run: run["distance"][:, 0]
    )
    assert [row["end"] for row in found] == [1.0, 2.0, 8.0, 7.0]
    assert found[1] == {
        "experiment": "first", "problem": "easy", "status": "synthetic", "algorithm": "ssi",
        "variant": "p-4", "kind": "drawn", "n": 10, "repeat": 1, "end": 2.0, "four": 4,
        "start": 4.0,
    }  # fmt: skip
    asked = {"kind", "n", "end", "four", "start"}
    assert found[1].keys() - asked == NAMED  # which a tag may not be called


def test_runs_are_chosen_by_experiment_algorithm_and_tags(results):
    assert [run.problem for run in results.runs()] == ["easy", "hard", "easy"]
    assert [run.experiment for run in results.runs("second", "first")] == [
        "second",
        "first",
        "first",
    ]
    assert [run.label for run in results.runs("first", problem="easy")] == ["Easy"]
    assert [run.label for run in results.runs("first", problem="hard")] == ["hard"]
    assert list(results.runs("first", kind="other")) == []
    assert list(results.runs("first", algorithm="faps")) == []
    refused(lambda: list(results.runs("frist")), InputError, "'first'")


def test_a_column_that_a_history_lacks_is_told_with_its_cell(results):
    for column in (last("distnace"), lambda run: run["distnace"][:, 0]):
        refused(lambda c=column: results.table("first", end=c), InputError, "first/ssi/easy-p-4")


def test_a_tag_that_only_some_have_is_a_column_of_all(results):
    (path, first), *_ = results.cells.items()
    results.cells[path] = replace(first, tags={"only": True})
    one, other = results.runs("first")
    assert one.tags == {"only": True, "kind": None, "n": None}
    assert other.tags == {"only": None, "kind": "drawn", "n": 10}
    assert [run.tags for run in results.runs("second")] == [{"kind": "drawn", "n": 10}]
    assert len({tuple(row) for row in results.table()}) == 1


def test_rows_and_columns_are_chosen_by_values():
    table = [{"n": n, "by": by, "end": n * len(by)} for n in (1, 2) for by in ("a", "bb")]
    assert rows.chosen(table, n=2, by="bb") == [{"n": 2, "by": "bb", "end": 4}]
    assert rows.chosen(table) == table
    n, end = rows.columns(table, "n", "end", by="bb")
    assert n.tolist() == [1, 2] and end.tolist() == [2, 4]
    with pytest.raises(KeyError, match="m"):
        rows.chosen(table, m=2)


def test_a_series_rises_and_holds_a_row_per_repeat():
    table = [{"n": n, "by": "a", "end": 10 * n + i} for n in (3, 1) for i in range(2)]
    x, y = rows.series([*table, {"n": 7, "by": "b", "end": 0}], "n", "end", by="a")
    assert x.tolist() == [1, 3] and y.tolist() == [[10, 30], [11, 31]]


def test_rows_are_grouped_in_order_of_appearance():
    table = [{"m": m, "k": k} for m, k in (("b", 1), ("a", 1), ("b", 2), ("b", 1))]
    found = [(key, len(group)) for key, group in rows.groups(table, "m", "k")]
    assert found == [({"m": "b", "k": 1}, 2), ({"m": "a", "k": 1}, 1), ({"m": "b", "k": 2}, 1)]
    assert [len(group) for _, group in rows.groups(table)] == [4]


def test_the_value_at_the_first_record_where_something_holds():
    values = np.array([[5.0, 3.0, 1.0], [4.0, 2.0, np.nan], [1.0, 0.0, 1.0]])
    found = rows.reached(values <= 2, 10 * values)
    np.testing.assert_array_equal(found, [10, 20, 10])
    np.testing.assert_array_equal(rows.reached(values > 4, values), [5, np.nan, np.nan])


def test_a_flag_is_none_where_a_value_that_it_needs_is_missing():
    few, many = np.array([1.0, np.nan, 3.0]), np.array([2.0, 2.0, 2.0])
    found = rows.flags(few < many, few, many)
    assert found.tolist() == [True, None, False] and type(found[0]) is bool
    assert rows.flags(few < many, np.array([np.nan, 0, 0]), few).tolist() == [None, None, False]
    assert rows.flags(few[0] < 2.0, few[0], math.inf) is True
    assert rows.flags(False, 3.0) is False
    assert rows.flags(True, 1.0, math.nan) is None
    assert rows.flags(True, 1.0, math.nan, failed=True) is False
    failed = np.array([True, False, False])
    assert rows.flags(few < many, few, [np.nan] * 3, failed=failed).tolist() == [False, None, None]


def test_a_row_of_a_run(results):
    (run,) = results.runs("second")
    assert run.params.n_components == 2 and run.params.tol == 0.0
    row = run.row(end=lambda run: run.last("distance").max())
    assert row["end"] == 0.5 and type(row["end"]) is float and "repeat" not in row
    for call in (
        lambda: run.row(end=last("distance")),
        lambda: run.rows(end=np.zeros(3)),
    ):
        with pytest.raises(InputError, match="'end' of second/ssi"):
            call()


@pytest.mark.parametrize("content", [None, "", "{", "\xff", "older"])
def test_a_plan_that_is_not_there_or_none_is_a_data_error(results, tmp_path, content):
    file = tmp_path / "plans" / "other.json"
    if content == "older":
        del results.plan["cells"]["made_up/second/ssi/easy-p-4"]["iterates"]
        content = json.dumps(results.plan)
    if content is not None:
        file.write_text(content, encoding="latin-1")
    refused(lambda: Results(file), DataError, str(file), "snakemake")


def test_a_history_that_is_not_there_is_named(results, tmp_path):
    next(tmp_path.rglob("easy-p-4.h5")).unlink()
    refused(lambda: results.table(end=last("distance")), HistoryError, "easy-p-4.h5")


@pytest.mark.parametrize(
    ("algorithm", "judged", "taken"),
    [("one_shot", True, False), ("one_shot", False, True), ("ssi", True, True)],
)
def test_repeats_that_are_copies_are_no_independent_runs(tmp_path, algorithm, judged, taken):
    """`one_shot` draws nothing; from two starts, `ssi` does not end at the same basis."""
    folder = Folder(tmp_path, "made_up", {"n_components": 2}, ["objective"])
    data = np.random.default_rng(0).standard_normal((3, 20, 6))
    folder.add_problem("drawn_once", list(data))
    folder.add("first", algorithm, "drawn_once")
    results = folder.results()
    results.plan["judged"] = judged
    if taken:
        assert len(results.table("first", end=last("objective"))) == 2
    else:
        call = partial(results.table, "first", end=last("objective"))
        refused(call, ConfigError, "first/one_shot/drawn_once-default", "draws")


def test_repeats_without_a_finite_end_are_no_copies():
    columns = {"iteration": np.zeros((3, 1))}
    ends = [np.ones((3, 4)), np.full((3, 4), np.nan), np.eye(3)]
    found = [History(columns, {"V": end}).copies for end in ends]
    assert found == [[1, 2], [], []] and History(columns).copies == []


def test_a_table_is_shown_as_its_report_says_and_damage_is_noticed(results, monkeypatch):
    plan = results.tables.parents[1] / "plans/made_up.json"
    shown = [{"mean": 1}]
    declared = {
        "ends": report.Table(lambda results: results.table("second", end=last("distance"))),
        "short": report.Table(lambda _: [{"a": 1}, {"a": 2}], lambda rows: shown),
    }
    monkeypatch.setattr(report, "Results", lambda _: results)
    monkeypatch.setattr(report.importlib, "import_module", lambda _: fedpower)
    monkeypatch.setattr(fedpower, "TABLES", declared)
    ends = {"ends": "Where it ended"}
    for named, missing in ((ends, "'short'"), ({**ends, "short": "S", "more": "M"}, "'more'")):
        results.plan["tables"] = named
        refused(lambda: report.write_tables(plan), ConfigError, missing)
    results.plan["tables"] = {**ends, "short": "Short"}
    report.write_tables(plan)
    assert [row["end"] for row in results.rows("ends")] == [0.5]
    assert results.rows("short") == [{"a": 1}, {"a": 2}]
    assert results.markdown("short") == "Short\n\n" + tables.markdown(shown)
    (results.tables / "short.md").write_text("edited")
    refused(lambda: results.markdown("short"), DataError, "short.md")


def test_tables_of_a_paper_with_private_runs_say_what_was_not_released(tmp_path, monkeypatch):
    """The runs of one paper are read while its tables are made; the point is below each."""
    rows = np.random.default_rng(0).standard_normal((40, 3))
    folder = Folder(tmp_path, "made_up", {"n_components": 1}, ["sin_squared"])
    folder.add_problem("x", [rows])
    folder.add("open", "power_exact", "x")
    folder.add("hidden", "noisy_power", "x", params={"rounds": 1, "clip": True})
    point = "- Measures of private runs are exact functions of their data: not released.\n"
    for experiment, marked in (("open", False), ("hidden", True)):
        results = folder.results()
        results.plan["tables"] = {"first": "First", "second": "Second"}
        declared = {
            "first": report.Table(lambda _: [{"a": 1}]),
            "second": report.Table(
                lambda r, name=experiment: r.table(name, error=last("sin_squared"))
            ),
        }
        monkeypatch.setattr(report, "Results", lambda _, one=results: one)
        monkeypatch.setattr(report.importlib, "import_module", lambda _: fedpower)
        monkeypatch.setattr(fedpower, "TABLES", declared)
        report.write_tables("plan.json")
        for name in declared:
            assert results.markdown(name).endswith(point) == marked
        assert len(results.rows("second")) == 2  # the table for machines holds rows alone


def judged(results, items, why=None):
    """Write a table of verdicts with the word and the readings of each item."""
    results.plan["run"] = {"quick": False}
    table = results.tables.parents[1] / "verdicts" / f"{results.plan['paper']}.tsv"
    tables.write(
        [
            {
                "id": item,
                "word": word,
                "why": (why or {}).get(item, ""),
                "readings": json.dumps(readings),
            }
            for item, (word, readings) in items.items()
        ],
        table,
    )


def came_out(results, item, *drawn):
    """Return what an item's line says after the printed words."""
    (line,) = results.outcome({item: "it falls"}, *drawn).splitlines()
    printed, _, said = line.partition("\t")
    assert printed == "Printed: it falls"
    return said


def out(state, **parts):
    """Return a reading with its parts, by their names."""
    return {"state": state, "parts": parts}


HALF = {"state": "undecided", "share": [18, 30], "lack": "too few runs"}


def test_what_came_out_has_the_words_of_the_verdicts(results):
    results.plan["run"] = {"quick": False}
    assert results.outcome({"a": "it falls"}) == ""  # before the rule of the verdicts
    least, other, third = (
        {"name": name, "what": f"it is the {name}"} for name in ("least", "other", "third")
    )
    held, number = {"state": "holds", "share": [9, 9]}, {"state": "fails"}
    few, fewer = (out("undecided", **{"": HALF | {"share": [18, n]}}) for n in (30, 40))
    readings = {
        "a": [out("holds", **{"": held}), few | {"fills_in": [other]}],
        "b": [out("fails", **{"": number})],
        "c": [few, few | {"fills_in": [other]}, {"state": "fails", "replaces": [least]},
              few | {"state": "holds", "replaces": [least, third]}],
        "d": [{"obstacle": "It takes hours."}],
        "e": [],
        "f": [few, fewer | {"fills_in": [other]}],
    }  # fmt: skip
    words = {"a": "undecided", "b": "fails", "c": "undecided", "d": "not run", "e": "not run",
             "f": "undecided"}  # fmt: skip
    why = {"d": "It takes hours.", "e": "No data may be had; there are none."}
    judged(results, {item: (word, readings[item]) for item, word in words.items()}, why)
    a, b, c, d, e, f = (came_out(results, item) for item in words)
    drawn, other = a.split(". ")
    assert "holds (9 of 9 runs)" in drawn and "undecided" in other
    assert "fails" in b and " of " not in b
    assert c.count("undecided") == 1 and "too few runs" in c and "fails" not in c
    assert "hours" in d and "no data may be had; there are none" in e.lower()
    assert f.count("undecided") == 1
    drawn, printed = came_out(results, "c", "least").split(". ")  # with the fewest changes
    assert "fails" in drawn and "it is" not in drawn and "undecided" in printed
    drawn, printed = came_out(results, "c", "third").split(". ")
    assert "too few runs, where it is the least" in drawn and "undecided" in printed
    both = results.outcome({"b": "alike", "c": "alike", "f": "alike"})
    assert both.count("Printed") == 1 and "(1 of 3)" in both and "(2 of 3)" in both
    refused(lambda: results.outcome({"z": "z"}), InputError, "'z'")
    results.plan["run"] = {"quick": True}
    assert not {"holds", "fails"} & set(results.outcome({"a": "A", "b": "B"}).lower().split())


def test_the_part_that_a_figure_shows_comes_first(results):
    held = {"state": "holds", "share": [108, 110]}
    lost = {"state": "fails", "share": [3, 110]}
    judged(results, {
        "two": ("undecided", [out("undecided", one=held, two=HALF)]),
        "one": ("undecided", [out("undecided", **{"": HALF})]),
        "three": ("fails", [out("fails", one=held, two=lost, three=HALF)]),
    })  # fmt: skip
    drawn, whole = came_out(results, "two", "", "one").split(". ")
    assert "one: holds (108 of 110 runs)" in drawn and "two" not in drawn
    assert whole == "With two: undecided"
    (drawn,) = came_out(results, "two", "", "two").split(". ")  # its word is that of the item
    assert "two: undecided, too few runs" in drawn and "one" not in drawn
    assert came_out(results, "two").endswith("undecided, too few runs")
    assert came_out(results, "one") == came_out(results, "one", "", "one")  # has no such part
    drawn, whole = came_out(results, "three", "", "one").split(". ")
    assert "holds" in drawn and "fails" in whole and "two" in whole and "three" not in whole


@pytest.mark.parametrize(
    ("part", "told"),
    [
        ({"lack": "no result", "at": ["n = 1", "n = 2"], "silent": "no run arrives"},
         "at n = 1 and n = 2 no run arrives"),
        ({"lack": "no result", "silent": "no run arrives"}, "no run arrives"),
        ({"lack": "no result", "at": [f"n = {n}" for n in range(20)]}, "no result at 20 points"),
        ({"lack": "few runs agree", "at": ["n = 2"]}, "few runs agree at n = 2"),
    ],
)  # fmt: skip
def test_what_runs_lack_is_said_with_its_points(results, part, told):
    part = {"state": "undecided"} | part
    judged(results, {"a": ("undecided", [out("undecided", **{"": part})])})
    assert came_out(results, "a").endswith(f"undecided, {told}")
    judged(results, {"a": ("undecided", [out("undecided", one=part, two=part)])})
    assert came_out(results, "a").count(told) == 1


def test_a_corner_names_run_sizes_and_repeats(results):
    results.plan["run"] = {"quick": False}
    for run in results.runs():
        run.history.about["commit"] = "abc1234"
        run.history.about["problem"]["n_samples"] = {"easy": 1000, "hard": 20}[run.problem]
    found = results.corner(results.runs())
    assert found.startswith("full run, abc1234, n = 20 to 1,000,") and "repeats: 1 to 2" in found
    assert "repeats: 1 to 2 (bars: range)" in results.corner(results.runs(), "bars: range")
    assert results.corner(()) == ""


def test_a_corner_has_the_papers_symbols_and_no_size_of_a_grid(results):
    plan = results.figures.parents[1] / "plans" / f"{results.plan['paper']}.json"
    named = Results(plan, {"m": "each", "n": "n_clients"})
    named.plan["run"] = {"quick": False}
    for run in named.runs():
        run.history.about["problem"] |= {"n_samples": 60, "n_clients": 20}
    found = named.corner(named.runs())
    assert "m = 3, n = 20," in found
    for problem in named.plan["problems"].values():
        problem["over"] = {"n_clients": [20, 30]}
    assert "n = " not in named.corner(named.runs())
