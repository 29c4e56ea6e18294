"""Short forms of a paper's file come out as what one would have written without them."""

from __future__ import annotations

import pytest

from fedcore.errors import ConfigError
from fedcore.files.strict_yaml import parse_yaml
from fedcore.repro.config.short_forms import merge, written_out
from refused import refused


def written(text="{}"):
    paper = {"problems": {}, "experiments": {}, **parse_yaml(text, "text")}
    return written_out(paper, "p.yaml")


PROBLEMS = """
problems:
  alone: {label: a}
  sizes:
    params: {rank: 2, n: 1}
    each:
      small: {params: {n: 10}}
      middle: {params: {n: 20}}
      large: {params: {n: 30, m: 4}}
experiments:
  one: {problems: [small, large], runs: [{algorithm: a}, {algorithm: b, problems: [large, alone]}]}
"""


def test_problems_that_differ_in_little():
    found = written(PROBLEMS)
    assert found["problems"] == {
        "alone": {"label": "a"},
        "small": {"params": {"rank": 2, "n": 10}},
        "middle": {"params": {"rank": 2, "n": 20}},
        "large": {"params": {"rank": 2, "n": 30, "m": 4}},
    }
    assert list(found["problems"]) == ["alone", "small", "middle", "large"]


EXPERIMENTS = """
experiments:
  one:
    repeats: 9
    params: {rounds: 100, step: 1}
    runs:
      - {algorithm: a}
      - algorithm: c
        variants:
          - {x: {tags: {kind: 1}, q: 1}, y: {q: 2}}
          - {'10': {r: 10, tags: {r: 10}}, '20': {r: 20}}
"""


def test_a_grid_has_every_combination_and_joins_the_names():
    (one,) = written(EXPERIMENTS)["experiments"].values()
    assert one["repeats"] == 9 and [run["algorithm"] for run in one["runs"]] == ["a", "c"]
    assert list(one["runs"][1]["variants"].items()) == [
        ("x-10", {"q": 1, "r": 10, "tags": {"kind": 1, "r": 10}}),
        ("x-20", {"q": 1, "r": 20, "tags": {"kind": 1}}),
        ("y-10", {"q": 2, "r": 10, "tags": {"r": 10}}),
        ("y-20", {"q": 2, "r": 20}),
    ]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("problems: {a: {}, b: {each: {a: {}}}}", "'a'"),
        ("experiments: {e: {runs: [{variants: [{a: {}, a-b: {}}, {b-c: {}, c: {}}]}]}}", "'a-b-c'"),
    ],
)
def test_what_cannot_be_written_out(text, name):
    refused(lambda: written(text), ConfigError, name)


def test_merging_leaves_what_it_merges():
    base, changes = {"a": {"b": 1}, "c": [1]}, {"a": {"d": 2}, "c": [2]}
    merged = merge(base, changes)
    assert merged == {"a": {"b": 1, "d": 2}, "c": [2]}
    merged["a"]["d"] = merged["c"][0] = 0
    assert (base, changes) == ({"a": {"b": 1}, "c": [1]}, {"a": {"d": 2}, "c": [2]})
