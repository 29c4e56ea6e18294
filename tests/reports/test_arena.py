"""Tables of the arena on rows and runs that are made up."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from fedcore.history import History
from fedcore.reports.papers import arena


class MadeUp:
    """A run of columns."""

    algorithm, params = "ssi", SimpleNamespace(epsilon=None)

    def __init__(self, rounds, errors):
        self.columns = {"round": rounds, "iteration": rounds, "subspace_distance": errors}
        self.columns["bytes_up"] = 8 * np.asarray(rounds)
        self.columns = {name: np.asarray(value) for name, value in self.columns.items()}
        self.history = History(self.columns)
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
         "method": method, "algorithm": method, "partition": "even", "steps_to_target": error,
         "error": error, **{f"error_{b}": error for b in arena.BUDGETS}}
        for method, found in errors.items()
        for i, error in enumerate(found)
    ]  # fmt: skip


def test_the_first_of_the_winners_has_most_problems():
    table = rows({"a": [0.1, 0.5, 0.3], "b": [0.2, 0.4, 0.1], "c": [np.nan] * 3})
    assert list(arena._winners(table, "error").items()) == [("b", 2), ("a", 1), ("c", 0)]
    swapped = rows({"b": [0.1, 0.5, 0.3], "a": [0.2, 0.4, 0.1]})
    assert list(arena._winners(swapped, "error")) == ["a", "b"]
    ((topic, text, cells),) = arena._within(table, 1, "One shot")
    assert topic == "One shot" and cells == "contest/b/*-b, contest/a/*-a"
    assert text.startswith("After 1 round, b has the least error on 2 of 3 problems, 0.2 in the")


def test_ranks_share_places_and_put_missing_results_last(monkeypatch):
    table = rows({"a": [0.1], "b": [0.1], "c": [np.nan], "d": [0.4]})
    monkeypatch.setattr(arena, "results", lambda results: table)
    found = {row["method"]: row["rank"] for row in arena.ranks(None) if row["budget"] == 5}
    assert found == {"a": 1, "b": 1, "d": 3, "c": 4}
    shown = arena.mean_ranks(arena.ranks(None))
    assert [row["method"] for row in shown[:4]] == ["a", "b", "d", "c"]
    assert shown[0]["first"] == 1 and shown[0]["of"] == 1


def test_unlike_clients_are_held_against_even_ones():
    even = rows({"a": [0.1], "b": [0.1]})
    label = [{**row, "partition": "label"} for row in rows({"a": [0.4], "b": [0.1]})]
    ((_, text, _),) = arena._divided([*even, *label])
    assert "4 times as large for a and 1 times for b" in text
    assert list(arena._divided(even)) == []


def test_privacy_has_a_sentence_for_every_level_that_methods_share():
    table = [{**row, "privacy": "ε = 1"} for row in rows({"a": [0.4, 0.9], "b": [0.5, 0.95]})]
    ((_, text, _),) = arena._private(table)
    assert "a has the least error on 2 of 2 problems; its error is below 0.5 on 1 of them" in text
    assert list(arena._private([{**row, "privacy": "ε = 10"} for row in rows({"a": [0.1]})])) == []
    assert list(arena._cheap(rows({"a": [np.nan]}))) == []
    assert "a needs the fewest products" in next(arena._cheap(rows({"a": [3.0]})))[1]


def test_level_of_privacy():
    assert arena.privacy(RUN) == "none"
    run = SimpleNamespace(params=SimpleNamespace(epsilon=1.0))
    assert arena.privacy(run) == "ε = 1"
    assert arena.privacy(SimpleNamespace(params=SimpleNamespace())) == "none"
