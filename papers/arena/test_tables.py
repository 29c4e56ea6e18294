"""Tables of the arena on rows and runs that are made up."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np

from arena import tables as arena
from fedcore.datasets import partition
from fedcore.files.strict_yaml import read_yaml
from fedcore.history import History

PAPER = Path(__file__).with_name("experiments.yaml")


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


def test_with_any_seed_there_are_samples_enough_for_uneven_clients():
    groups = read_yaml(PAPER)["problems"]
    dealt = [
        (group.get("first") or group["options"]["samples"], problem["partition"])
        for group in groups.values()
        for problem in group.get("each", {}).values()
        if {"first", "options"} & group.keys() and problem["partition"]["by"] == "lognormal"
    ]
    assert len(dealt) == 3
    for n, how in dealt:
        sizes = {name: value for name, value in how.items() if name != "by"}
        for seed in range(1000):
            partition.lognormal(n, **sizes, rng=np.random.default_rng(seed))
