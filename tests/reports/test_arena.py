"""Tables of the arena on rows and runs that are made up."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from fedcore.history import History
from fedcore.reports.papers import arena, arena_findings


class MadeUp:
    """A run of columns."""

    algorithm, params = "ssi", SimpleNamespace(epsilon=2.0)

    def __init__(self, rounds, errors, private=None):
        self.columns = {"round": rounds, "iteration": rounds, "subspace_distance": errors}
        self.columns["bytes_up"] = 8 * np.asarray(rounds)
        self.columns = {name: np.asarray(value) for name, value in self.columns.items()}
        self.history = History(self.columns, about={"privacy": private} if private else {})
        self.seconds = np.asarray(rounds) / 2

    def __getitem__(self, name):
        return self.columns[name]


RUN = MadeUp([[0, 1, 2, 3], [0, 1, 2, -1]], [[1.0, 0.5, 0.01, 0.02], [1.0, 0.6, 0.3, np.nan]])


def test_the_error_within_rounds_is_the_latest_one():
    assert arena.least_error(RUN, 1).tolist() == [0.5, 0.6]
    assert arena.least_error(RUN, 3).tolist() == [0.02, 0.3]  # the second run has ended
    late = MadeUp([[0, 6]], [[1.0, 0.1]])
    assert np.isnan(arena.least_error(late, 5)).all() and arena.least_error(late, 6) == 0.1


def test_the_cost_until_the_target_is_that_of_its_first_record():
    spent = arena.solved(RUN)
    assert spent["rounds"][0] == spent["steps"][0] == 2.0 and np.isnan(spent["rounds"][1])
    assert spent["bytes"][0] == 16 and spent["seconds"][0] == 1.0


def test_a_front_is_the_least_error_for_at_most_a_cost():
    slow = (np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.4, 0.0]))
    fast = (np.array([1.5, 3.0, np.nan]), np.array([0.1, 0.2, 0.0]))
    cost, error = arena.front([slow, fast])
    assert cost.tolist() == [1.0, 1.5, 4.0] and error.tolist() == [0.5, 0.1, 0.0]
    for x, y in zip(cost, error, strict=True):  # nothing dominates it
        both = np.concatenate([slow[0], fast[0]]), np.concatenate([slow[1], fast[1]])
        assert not ((both[0] <= x) & (both[1] < y)).any()
    assert arena.front([(np.array([np.nan]), np.array([1.0]))])[0].size == 0


def rows(errors):
    """Rows of two methods on problems: method -> errors by problem, one repeat."""
    return [
        {"problem": str(i), "status": "synthetic", "privacy": "none", "repeat": 0, "data": str(i),
         "method": method, "algorithm": method, "partition": "even", "clients": 10,
         "steps_to_target": error, "error": error, **{f"error_{b}": error for b in arena.BUDGETS}}
        for method, found in errors.items()
        for i, error in enumerate(found)
    ]  # fmt: skip


def test_of_a_private_run_only_the_end_is_a_result():
    claim = {"delta": 1e-6, "neighbours": "replace_one"}
    run = MadeUp([[0, 1, 2, 3], [0, 1, 2, -1]], RUN["subspace_distance"], private=claim)
    assert arena.privacy(run) == "ε = 2, δ = 1e-06, a row replaced"
    assert np.isnan(arena.least_error(run, 1)).all()
    assert arena.least_error(run, 2).tolist()[1] == 0.3 and np.isnan(arena.least_error(run, 2)[0])
    assert arena.least_error(run, 3).tolist() == [0.02, 0.3]
    assert np.isnan(arena.solved(run)["rounds"]).all()  # 0.01 was not its last
    assert arena.privacy(RUN) == "none"


def test_a_direct_method_makes_no_products():
    direct = MadeUp([[1]], [[0.1]])
    direct.columns["iteration"] = direct.history.columns["iteration"] = np.array([[0]])
    assert np.isnan(arena.costs(direct)["steps"]).all()
    assert arena.costs(RUN)["steps"].tolist()[0] == [0, 1, 2, 3]


def test_the_first_are_those_with_most_problems_and_equal_ones_share():
    table = rows({"a": [0.1, 0.5, 0.3], "b": [0.2, 0.4, 0.1], "c": [np.nan] * 3})
    assert list(arena_findings._winners(table, "error").items()) == [("b", 2), ("a", 1)]
    swapped = rows({"b": [0.1, 0.5, 0.3], "a": [0.2, 0.4, 0.1]})
    assert list(arena_findings._winners(swapped, "error")) == ["a", "b"]
    alike = rows({"a": [0.1, 3e-15], "b": [0.1 + 1e-9, 1e-16], "c": [0.2, 1e-9]})
    assert arena_findings._winners(alike, "error") == {"a": 2, "b": 2, "c": 0}
    ((topic, text, cells),) = arena_findings._within(table, 1, "One shot")
    assert topic == "One shot" and cells == "contest/b/*-b, contest/a/*-a"
    assert text == (
        "After 1 round the least error of 3 problems is that of b on 2 (median error over all "
        "problems 0.2), and then of a on 1 (median error over all problems 0.3)."
    )


def test_repeats_that_fail_are_the_worst():
    bad, good = rows({"bad": [np.nan] * 2, "good": [0.02] * 2}), []
    for repeat, error in enumerate([np.nan, np.nan, 0.01]):
        good += [{**row, "repeat": repeat, "error_1": error} for row in rows({"bad": [0.0]})]
        good += [{**row, "repeat": repeat} for row in rows({"good": [0.02]})]
    assert next(iter(arena_findings._winners(good, "error_1").items())) == ("good", 1)
    assert list(arena_findings._winners(bad, "error")) == ["good"]


def test_ranks_share_places_and_a_missing_result_has_none(monkeypatch):
    table = rows({"a": [0.1], "b": [0.1], "c": [np.nan], "d": [0.4]})
    monkeypatch.setattr(arena, "results", lambda results: table)
    found = {row["method"]: row["rank"] for row in arena.ranks(None) if row["budget"] == 5}
    assert found == {"a": 1, "b": 1, "d": 3}
    shown = arena.mean_ranks(arena.ranks(None))
    assert [row["method"] for row in shown[:3]] == ["a", "b", "d"]
    assert shown[0]["first"] == 1 and shown[0]["of"] == 1
    nothing = rows({"a": [np.nan], "b": [np.nan]})
    monkeypatch.setattr(arena, "results", lambda results: nothing)
    assert arena.ranks(None) == [] and arena.mean_ranks([]) == []


def test_unlike_clients_are_compared_where_the_subspace_was_found():
    even = rows({"a": [0.01], "b": [0.01], "lost": [0.99]})
    label = [
        {**row, "partition": "label"} for row in rows({"a": [0.4], "b": [0.02], "lost": [0.99]})
    ]
    ((_, text, cells),) = arena_findings._divided([*even, *label])
    assert "most from 0.01 to 0.4 for a on 0, and least from 0.01 to 0.02 for b on 0" in text
    assert "lost" not in text and cells == "contest/a/*-a, contest/b/*-b"
    assert list(arena_findings._divided(even)) == []
    fewer = [{**row, "clients": 2} for row in label]
    assert list(arena_findings._divided([*even, *fewer])) == []


def test_privacy_has_a_sentence_for_every_guarantee_that_methods_share():
    table = [{**row, "privacy": "ε = 1"} for row in rows({"a": [0.4, 0.9], "b": [0.5, 0.95]})]
    ((_, text, cells),) = arena_findings._private(table)
    assert text == (
        "With ε = 1, some method has an error below 0.5 on 1 of 2 problems; a has the least on 2, "
        "0.4 at best and 0.65 in the median."
    )
    assert cells == "contest/a/*-a"
    hopeless = [{**row, "error": 0.99} for row in table]
    ((_, text, cells),) = arena_findings._private(hopeless)
    assert text == "With ε = 1, some method has an error below 0.5 on 0 of 2 problems."
    assert cells == ""
    assert (
        list(arena_findings._private([{**row, "privacy": "ε = 10"} for row in rows({"a": [0.1]})]))
        == []
    )


def test_the_fewest_products():
    assert list(arena_findings._cheap(rows({"a": [np.nan]}))) == []
    ((_, text, _),) = arena_findings._cheap(rows({"a": [3.0, np.nan], "b": [4.0, np.nan]}))
    assert (
        "on 1 of 2 problems; a does on 1, and needs the fewest products with the data on 1" in text
    )


def test_what_the_server_learns_is_said_of_the_method_that_shows_most():
    leaked = [
        {"method": method, "algorithm": method, "repeat": i, "leakage": error}
        for method, errors in {"a": [1.0, 1.0], "b": [1e-15, 3e-15], "c": [0.5, 0.6]}.items()
        for i, error in enumerate(errors)
    ]
    ((topic, text, cells),) = arena_findings._seen(leaked)
    assert topic == "What the server learns" and cells == "leakage/b/*-b, leakage/a/*-a"
    assert "error of 2e-15 with b, the least of 3 methods; the attacks fail against a." in text
    ((_, text, cells),) = arena_findings._seen(leaked[2:])
    assert text.endswith("against none.") and cells == "leakage/b/*-b"
    assert list(arena_findings._seen([])) == []


class Tables:
    """Results of tables that are made up, by experiment; what was left out has no row."""

    def __init__(self, leaks=(), **tables):
        self.made, self.leaks = tables, leaks
        self.plan = {"experiments": ["contest", "leakage", "late_leakage"]}

    def table(self, experiment, **columns):
        return [dict(row) for row in self.made.get(experiment, ())]

    def runs(self, experiment):
        for method, errors in self.leaks:
            yield SimpleNamespace(tags={"method": method}, last=lambda column, e=errors: e)


def test_no_attack_fails_that_was_not_made():
    rows = [{"method": name, "repeat": 0, "leakage": 2.0} for name in ("ssi", "local_power")]
    assert arena.leaks(Tables(leakage=rows)) == []
    (row,) = arena.leaks(Tables(leakage=rows, leaks=[("local_power", [0.25])]))
    assert (row["method"], row["leakage"]) == ("local_power", 0.25)
