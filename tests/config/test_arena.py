"""The arena's file becomes a paper's: every method on every data set with every partition."""

from __future__ import annotations

import copy

import pytest
from refused import refused

from fedcore.config.arena import LATE, LEAKAGE, MAIN, written_as_paper
from fedcore.config.schemas import check
from fedcore.errors import ConfigError
from fedcore.experiments.plan import load_plan

ARENA = {
    "title": "t",
    "components": 2,
    "repeats": 3,
    "methods": {"a": {"algorithm": "ssi", "params": {"rounds": 4}}, "b": {"algorithm": "one_shot"}},
    "data": {
        "mnist": {"label": "MNIST", "dataset": "mnist", "defaults": {"n_components": 3}},
        "spiked": {"generator": "spiked", "params": {"n_clients": 2}},
    },
    "partitions": {
        "even": {"partition": {"by": "even", "clients": 4}},
        "label": {"label": "by class", "partition": {"by": "label"}},
    },
    "leakage": {"problem": {"generator": "spectrum"}, "methods": ["a"]},
    "tables": {"results": "r"},
    "figures": {},
}


def written(**changes):
    arena = check({**copy.deepcopy(ARENA), **changes}, "arena", "config/arena.yaml")
    return check(written_as_paper(arena, "config/arena.yaml"), "paper", "config/arena.yaml")


def test_every_method_meets_every_problem():
    paper = written()
    names = ["mnist_even", "mnist_label", "spiked"]
    assert list(paper["problems"]) == [*names, LEAKAGE]
    contest = paper["experiments"][MAIN]
    assert contest["problems"] == names and contest["repeats"] == 3
    assert [run["algorithm"] for run in contest["runs"]] == ["ssi", "one_shot"]
    assert contest["runs"][0]["variants"] == {"a": {"rounds": 4, "tags": {"method": "a"}}}
    assert len(paper["experiments"][LEAKAGE]["runs"]) == 1
    assert paper["problems"]["mnist_even"]["defaults"] == {"n_components": 3}
    assert paper["problems"]["spiked"]["defaults"] == {"n_components": 2}
    assert paper["problems"]["mnist_label"]["label"] == "MNIST, by class"
    assert not paper["judged"]


def test_parts_that_are_not_given_are_left_out():
    assert set(written()["experiments"]) == {MAIN, LEAKAGE, LATE}
    without = {key: value for key, value in ARENA.items() if key != "leakage"}
    arena = check(copy.deepcopy(without), "arena", "a")
    assert set(written_as_paper(arena, "a")["experiments"]) == {MAIN}


MISTAKES = [
    ({"leakage": {**ARENA["leakage"], "methods": ["c"]}}, "'c'"),
    ({"data": {"leakage": {"generator": "spiked"}}}, "'leakage'"),
    ({"partition": {}}, "'partitions'"),
    ({"methods": {"a": {"params": {}}}}, "'algorithm'"),
]


@pytest.mark.parametrize(("changes", "name"), MISTAKES)
def test_mistakes_are_named(changes, name):
    refused(lambda: written(**changes), ConfigError, name)


def test_the_shipped_arena_has_every_method_on_every_problem():
    plan = load_plan({"papers": ["arena"], "surrogates": True})
    methods = {cell.tags["method"] for cell in plan.cells_of("arena")}
    problems = {c.problem for c in plan.cells_of("arena") if c.experiment == MAIN}
    contest = [c for c in plan.cells_of("arena") if c.experiment == MAIN]
    assert len(contest) == len(methods) * len(problems)
    assert {"ssi", "one_shot", "fedpower_1", "fedpower_10", "faps_residual"} <= methods
    assert plan.judged == []
    data = {c.tags["data"] for c in contest}
    assert {"mnist", "fashion_mnist", "cifar10", "w8a", "spiked", "block_model"} <= data
    parts = {c.tags["partition"] for c in contest if c.tags["data"] == "mnist"}
    assert parts == {"even", "label", "dirichlet", "uneven"}
