"""Short forms of a paper's file come out as what one would have written without them."""

from __future__ import annotations

import pytest

from fedcore.config.short_forms import merge, written_out
from fedcore.config.strict_yaml import parse_yaml
from fedcore.errors import ConfigError


def written(text="{}", *, quick=False):
    paper = {"problems": {}, "experiments": {}, **parse_yaml(text, "text")}
    return written_out(paper, "p.yaml", quick=quick)


PROBLEMS = """
problems:
  alone: {label: a, quick: {label: b}}
  sizes:
    params: {rank: 2, n: 1}
    quick: {params: {n: 3}}
    each:
      small: {params: {n: 10}}
      middle: {params: {n: 20}, quick: {params: {rank: 1}}}
      large: {params: {n: 30, m: 4}, quick: false}
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


def test_the_quick_run_goes_without_a_problem_and_has_its_own_sizes():
    found = written(PROBLEMS, quick=True)
    assert found["problems"] == {
        "alone": {"label": "b"},
        "small": {"params": {"rank": 2, "n": 3}},
        "middle": {"params": {"rank": 1, "n": 3}},
        "large": {"params": {"rank": 2, "n": 30, "m": 4}},  # as it is; no cell is on it
    }
    one = found["experiments"]["one"]
    assert (one["problems"], one["runs"][1]["problems"]) == (["small"], ["alone"])


EXPERIMENTS = """
experiments:
  one:
    repeats: 9
    params: {rounds: 100, step: 1}
    quick: {repeats: 2, params: {rounds: 5}}
    runs:
      - {algorithm: a, quick: {repeats: 1}, tune: {every: 20, quick: {every: 1}}}
      - {algorithm: b, quick: false}
      - algorithm: c
        variants:
          - {x: {tags: {kind: 1}, q: 1}, y: {q: 2, quick: false}}
          - {'10': {r: 10, tags: {r: 10}}, '20': {r: 20, quick: {r: 2}}}
"""


def test_a_grid_has_every_combination_and_joins_the_names():
    (one,) = written(EXPERIMENTS)["experiments"].values()
    assert one["repeats"] == 9 and [run["algorithm"] for run in one["runs"]] == ["a", "b", "c"]
    assert list(one["runs"][2]["variants"].items()) == [
        ("x-10", {"q": 1, "r": 10, "tags": {"kind": 1, "r": 10}}),
        ("x-20", {"q": 1, "r": 20, "tags": {"kind": 1}}),
        ("y-10", {"q": 2, "r": 10, "tags": {"r": 10}}),
        ("y-20", {"q": 2, "r": 20}),
    ]
    assert "quick" not in str(one)


def test_the_quick_run_is_said_beside_experiments_runs_and_variants():
    (one,) = written(EXPERIMENTS, quick=True)["experiments"].values()
    assert one == {
        "repeats": 2,
        "params": {"rounds": 5, "step": 1},
        "runs": [
            {"algorithm": "a", "repeats": 1, "tune": {"every": 1}},
            {
                "algorithm": "c",
                "variants": {
                    "x-10": {"q": 1, "r": 10, "tags": {"kind": 1, "r": 10}},
                    "x-20": {"q": 1, "r": 2, "tags": {"kind": 1}},
                },
            },
        ],
    }


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("problems: {a: {}, b: {each: {a: {}}}}", "two problems are called 'a'"),
        (
            "experiments: {e: {runs: [{variants: [{a: {}, a-b: {}}, {b-c: {}, c: {}}]}]}}",
            "p.yaml, experiment e: two variants are called 'a-b-c'",
        ),
    ],
)
def test_what_cannot_be_written_out(text, words):
    with pytest.raises(ConfigError) as error:
        written(text)
    assert words in str(error.value)


def test_merging_leaves_what_it_merges():
    base, changes = {"a": {"b": 1}, "c": [1]}, {"a": {"d": 2}, "c": [2]}
    merged = merge(base, changes)
    assert merged == {"a": {"b": 1, "d": 2}, "c": [2]}
    merged["a"]["d"] = merged["c"][0] = 0
    assert (base, changes) == ({"a": {"b": 1}, "c": [1]}, {"a": {"d": 2}, "c": [2]})
