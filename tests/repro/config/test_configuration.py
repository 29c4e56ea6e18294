"""A wrong value in a configuration ends in one sentence that names its place, before any job."""

from __future__ import annotations

import copy
import datetime
import random
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from fedcore import datasets
from fedcore.errors import ConfigError
from fedcore.files.strict_yaml import parse_yaml, read_yaml
from fedcore.repro.config import claims
from fedcore.repro.config.configuration import typed
from fedcore.repro.plan.plan import load_plan
from refused import refused

TINY = Path(__file__).parents[2] / "workflow/tiny/experiments.yaml"
NAN, BIG, DAY = float("nan"), 1e308, datetime.date(2024, 1, 1)
# What cannot stand in the place of a value of each type.
WRONG = {
    bool: (NAN, [True], {"x": True}, "maybe", 5, DAY),
    int: (NAN, [1], {"x": 1}, "five", -4, 2.5, 2.0, BIG, DAY),
    float: (NAN, [1.0], {"x": 1.0}, "five", DAY, float("inf")),
    str: (NAN, ["a"], {"a": "b"}, 5, DAY),
    list: ("text", 5, {"a": 1}, NAN),
    dict: ("text", 5, ["a"], NAN),
}
# Names that a paper is free to choose, and values that may be of several types.
FREE_NAMES = {
    ("tags",), ("tables",), ("experiments",), ("figures",), ("variants",), ("where",), ("labels",),
}  # fmt: skip
FREE_VALUES = {
    "sigma_max": [5],
    "identities": [[1]],
    "at_most": [-4, 2.5, 2.0, BIG],
    "equals": [-4, 2.5, 2.0, BIG],
    "between": [-4, 2.5, 2.0, BIG],
    "scale": [-4, 2.5, 2.0, BIG],
    "mean": [5],
}


def paper():
    """The tiny paper of the workflow's tests, on a data set that is registered, and with stops."""
    settings = read_yaml(TINY)
    settings["problems"]["little"]["dataset"] = "mnist"
    settings["problems"]["little"] |= {"options": {"samples": 6}, "first": 5}
    settings["problems"]["parts"] = {
        "dataset": "celeba",
        "options": {"identities": 3},
        "partition": {"by": "dirichlet", "clients": 2, "alpha": 0.5},
        "defaults": {"n_components": 2},
    }
    settings["problems"]["over"] = {
        "generator": "spectrum",
        "params": {"n_features": 4, "n_clients": 2, "n_samples": 10, "kind": "geometric"},
        "over": {"xi": [1.5, 2.0]},
        "draws": 2,
        "defaults": {"n_components": 2},
    }
    settings["experiments"]["third"] = {
        "reproduces": "Table 3",
        "problems": ["over", "parts"],
        "repeats": 2,
        "metrics": ["objective", "kkt"],
        "stop": {"kkt": {"at_most": 1e-3}},
        "runs": [{"algorithm": "ssi", "params_of": {"over": {"rounds": 3}}}],
    }
    return settings


CONFIG = {
    "papers": ["tiny"],
    "seed": 1,
    "surrogates": True,
    "quick": False,
    "paths": {"raw": "data/raw", "clients": "data/clients", "results": "results"},
    "overrides": {},
}
REGISTRY = {
    "datasets": {
        "toy": {
            "title": "Toy", "description": "A toy.", "terms": "None.", "citation": "None.",
            "homepage": "https://example.org/", "n_features": 3, "n_classes": 2,
            "surrogate": "digits",
            "status": "official", "note": "A note.", "manual": "ask", "loader": "idx",
            "splits": {"train": {"images": "a", "labels": "b"}},
            "files": [
                {"name": "a", "bytes": 3, "sha256": "0" * 64, "urls": ["http://a.b/c"]},
                {"name": "b", "md5": "0" * 32},
            ],
            "pictures": {
                "status": "official content", "note": "A note.",
                "splits": {split: {"records": {"c": "0" * 64}} for split in ("train", "test")},
                "files": [{"name": "c", "bytes": 3, "sha256": "0" * 64}],
            },
        }
    }
}  # fmt: skip


def dump(value):
    return yaml.dump(value, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper))


def write(checkout, settings):
    """Write the tiny paper's file."""
    (checkout / "papers/tiny").mkdir(parents=True, exist_ok=True)
    (checkout / "papers/tiny/experiments.yaml").write_text(dump(settings))


def places(value, at=()):
    """Yield every place below a value, as a path of keys and indices, and what stands there."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        yield (*at, key), item
        if isinstance(item, dict | list):
            yield from places(item, (*at, key))


def changed(base, at, change):
    """Copy with ``change(container, key)`` made at a place."""
    copied = copy.deepcopy(base)
    inner = copied
    for key in at[:-1]:
        inner = inner[key]
    change(inner, at[-1])
    return copied


def wrong_values(base):
    """Yield every (place, copy with a value there that cannot be right)."""
    for at, value in places(base):
        if {"where", "tags"} & set(at[:-1]):  # a table's cell may hold any text, number or word
            continue
        for wrong in WRONG[type(value)]:
            allowed = next((FREE_VALUES[key] for key in at if key in FREE_VALUES), ())
            if wrong not in allowed:
                yield at, wrong, changed(base, at, lambda c, k, w=wrong: c.__setitem__(k, w))


def wrong_names(base):
    """Yield every (place, name, copy with a key there that nobody knows)."""
    for at, _ in places(base):
        if isinstance(at[-1], str) and at[-2:-1] not in FREE_NAMES:
            wrong = at[-1][:-1] + "qq"
            yield at, wrong, changed(base, at, lambda c, k, w=wrong: c.__setitem__(w, c.pop(k)))


def fault(call, at, wrong):
    """What is wrong with a refusal: it must be one line with the place, a key or what is there."""
    try:
        call()
    except ConfigError as error:
        text = str(error)
        named = [part for part in at if isinstance(part, str)]
        place = any(part in text for part in named[-2:]) or str(wrong) in text
        return None if place and "\n" not in text and len(text) < 1500 else f"says {text!r}"
    return "accepted"


def survivors(cases, call):
    """Every case that was not refused as it should be."""
    found = [(at, wrong, fault(lambda c=case: call(c), at, wrong)) for at, wrong, case in cases]
    assert len(found) > 5
    return [(".".join(map(str, at)), wrong, why) for at, wrong, why in found if why]


@pytest.fixture
def load(tmp_path):
    """Load a plan of a configuration and a paper."""

    def call(settings, config=CONFIG):
        write(tmp_path, settings)
        plan = load_plan(config, tmp_path)
        for name in plan.judged:
            plan.claims_of(name)
        assert plan.cells

    call(paper())
    return call


def sample(cases, size, seed):
    """A seeded part of the cases; with another seed it is another part."""
    cases = list(cases)
    return random.Random(seed).sample(cases, min(size, len(cases)))


CLAIMS = """
question: Does it?
changes:
  code: {what: w, ground: authors' code, because: b, passages: [x]}
  tried: {what: w, ground: search, because: b, tried: 20, searched: {low: all of it}}
causes:
  the-code: {what: the code, because: b, taken_away: [code]}
tables:
  t1: {source: Table 1, caption: c, columns: [easy], labels: {easy: Easy}, rows: {ssi: ["5"]}}
items:
  - id: t1-ssi
    title: t
    row: [t1, ssi]
    select: {table: ends, where: {algorithm: ssi}}
    test: {number: {runs: 4, tolerance: 0.1}}
    because: b
    cells: {easy: {select: {column: rounds}}}
    needs: [easy]
  - each: [{id: low}, {id: high, source: other}]
    headline: the speed
    title: t
    source: Section 2
    kind: sentence
    printed: p
    select: {table: ends, column: error, points: [problem]}
    test: {most_runs: {at_most: 5, every: true}}
    because: b
    replaces: [code]
    cause: the-code
    readings: [{replaces: [tried], select: {column: other}, test: {most_runs: {at_most: 2}}}]
  - {id: none, title: t, source: s, kind: number, printed: p, not_run: "no data: x"}
facts: [{kind: setting, source: s, fact: f}]
figures: [{source: s, shows: f}]
software:
  - {id: audit, title: t, source: s, kind: check, printed: p, because: b,
     select: {table: ends, column: c}, test: {exact: {between: [1, 2]}}}
"""


@pytest.mark.parametrize("mutate", [wrong_values, wrong_names])
def test_claims(mutate):
    settings = parse_yaml(CLAIMS, "text")
    assert len(claims.written_out(settings, "c.yaml")["items"]) == 4
    # A list of one problem is what its name is, a limit that is a text names a column, and items of
    # a search are looked up where they are shown.
    limits = ("items.1.test.most_runs.at_most", "items.1.readings.0.test.most_runs.at_most")
    unseen = {"items.0.needs.0", "changes.tried.searched.low", *limits}
    found = survivors(mutate(settings), lambda case: claims.written_out(case, "c.yaml"))
    assert [case for case in found if case[0] not in unseen] == []


@pytest.mark.parametrize("mutate", [wrong_values, wrong_names])
def test_paper(load, mutate):
    assert survivors(sample(mutate(paper()), 200, seed=1), load) == []


@pytest.mark.parametrize("mutate", [wrong_values, wrong_names])
def test_overrides(load, mutate):
    """The same wrong values, laid over a right paper by the configuration."""
    inside = (case for case in mutate(paper()) if not any(isinstance(k, int) for k in case[0]))

    def call(case):
        load(paper(), CONFIG | {"overrides": {"tiny": case}})

    assert survivors(sample(inside, 120, seed=2), call) == []


@pytest.mark.parametrize("mutate", [wrong_values, wrong_names])
def test_config(load, mutate):
    assert survivors(mutate(CONFIG), lambda config: load(paper(), config)) == []


@pytest.mark.parametrize("mutate", [wrong_values, wrong_names])
def test_registry(tmp_path, mutate):
    path = tmp_path / "registry.yaml"

    def call(registry):
        path.write_text(dump(registry))
        datasets.describe("toy", path)

    call(REGISTRY)
    renamed = {("datasets", "toy"), ("datasets", "toy", "splits", "train", "images")}
    cases = [case for case in mutate(REGISTRY) if case[0] not in renamed or mutate is wrong_values]
    assert survivors(cases, call) == []


# ------------------------------------------------------ reading YAML


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a: 1\nb: {c: 1, c: 2}", 2),
        ("- {a: 1,\n   a: 2}", 2),
        ("1: a\n0x1: b", 2),
        ("yes: a\ntrue: b", 2),
        ("'a': 1\na: 1", 2),
        ("<<: {a: 1}\n<<: {b: 1}", 2),
    ],
)
def test_a_key_said_twice_in_any_spelling(tmp_path, text, line):
    path = tmp_path / "p.yaml"
    path.write_text(text)
    refused(lambda: read_yaml(path), ConfigError, f"{path}, line {line}")


@pytest.mark.parametrize(
    "text",
    [
        "a: &x {b: 1, c: 2}\nd: {<<: *x, b: 3}\ne: *x",
        "a: &x {b: 1}\nd: &y {<<: *x, b: 3}\ne: {<<: *y, b: 4}\nf: {<<: *y}",
        "a: {b: 1}\nc: {b: 1}",
        "",
    ],
)
def test_what_is_not_said_twice(text):
    """Merged mappings are laid under a mapping's own keys, as YAML says."""
    assert parse_yaml(text, "text") == yaml.safe_load(text)


@pytest.mark.parametrize(
    "content",
    [b"- a", b"text", b"a: \xff", b"a: b: c", b"a:\n\t- b", b"? [a]\n: b", b"a: 2024-13-45",
     b"a: *b", b"a: !!python/object/apply:os.getcwd []", None],
)  # fmt: skip
def test_what_is_no_mapping(tmp_path, content):
    path = tmp_path / "p.yaml"
    if content is not None:
        path.write_bytes(content)
    refused(lambda: read_yaml(path), ConfigError, str(path))


# ------------------------------------------------------ by name


EASY, PARTS = ("problems", "easy"), ("problems", "parts")
OTHER, SECOND = ("problems", "other"), ("experiments", "second")
WRONG_PLACES = [  # in the tiny paper, what stands there, and what the message names
    ((*EASY, "params", "rank"), "five", "problem easy: rank"),
    ((*EASY, "params", "rank"), 7, "rank = 7"),
    ((*EASY, "params", "noise"), -4, "problem easy: noise"),
    ((*EASY, "params", "noize"), 1, "'noise'"),
    ((*EASY, "label"), "{rank.nothing}", "problem easy: the label"),
    (("problems", "over", "over", "xi"), [2.0, 0.5], "problem over: xi"),
    ((*PARTS, "partition", "clients"), 0, "problem parts: clients"),
    ((*PARTS, "partition", "alpha"), -4, "problem parts: alpha"),
    ((*PARTS, "partition", "by"), "dirichelt", "'dirichlet'"),
    ((*PARTS, "options", "identities"), [0], "'identities'"),
    (("problems", "little", "options", "samples"), -4, "problem little: option samples"),
    (("problems", "little", "options", "sample"), 4, "'samples'"),
    (("experiments", "third", "stop", "ktt"), {"at_most": 1}, "experiment third: stop"),
    (("experiments", "first", "runs", 0, "params_of"), {"esay": {}}, "'esay'"),
    (("experiments", "first", "problems"), [], "experiment first: runs.0"),
    (("experiments", "first", "runs", 1, "algorithm"), "wk2032", "'wk2023'"),
    (("experiments", "first", "metrics"), ["objectiv"], "'objective'"),
    ((*OTHER, "label"), "other of {n_clents}", "n_clients"),
    (("problems", "faces", "dataset"), "celebs", "'celeba'"),
    (("experiments", "first", "repeats"), 2.0, "experiments.first.repeats"),
    ((*OTHER, "each"), {"other": {"each": {}}}, "problems.other.each"),
    ((*OTHER, "each"), {"other": {"params": {"noise": "five"}}}, "noise"),
    ((*OTHER, "each"), {"other": {"labl": "x"}}, "'label'"),
    (("experiments", "third", "runs", 0, "repeat"), 1, "'repeats'"),
    ((*OTHER, "each"), {"other": {"each": {"x": {}}}}, "problems.other: 'each'"),
    ((*OTHER, "tags"), {"status": "official"}, "'status'"),
    ((*SECOND, "runs", 0, "params"), {"rond": 2}, "'rond'"),
]
GRID = {"runs": [{"algorithm": "ssi", "variants": [{"a": {}}]}]}
WRONG_CONFIG = [  # beside the tiny paper
    ({"pahts": {}}, "'paths'"),
    ({"papers": ["tinny"]}, "'tiny'"),
    *(
        ({"overrides": {"tiny": changes}}, name)
        for changes, name in (
            ({"problems": {"other": {"each": {"x": {}}}}}, "problems.other: 'each'"),
            ({"experiments": {"second": GRID}}, "experiments.second.runs.0"),
            ({"experiments": {"frist": {"repeats": 1}}}, "'first'"),
            ({"problems": {"esay": {"repeats": 1}}}, "'easy'"),
            ({"cells": {"secnd/*": {}}}, "'secnd/*'"),
            ({"cells": {"second/*": {"repeat": 1}}}, "overrides.tiny.cells"),
            ({"cells": {"second/*": {"repeats": 0}}}, "overrides.tiny.cells"),
            ({"cells": {"second/*": True}}, "overrides.tiny.cells"),
            ({"cells": {"second/*": {"params": {"rond": 1}}}}, "'rond'"),
            ({"cells": {"second/*": {"tune": {"every": 1}}}}, "tune"),
        )
    ),
]


@pytest.mark.parametrize(("at", "value", "name"), WRONG_PLACES)
def test_what_only_a_job_would_have_found(load, at, value, name):
    wrong = changed(paper(), at, lambda c, k: c.__setitem__(k, value))
    refused(lambda: load(wrong), ConfigError, name)


@pytest.mark.parametrize(("changes", "name"), WRONG_CONFIG)
def test_a_configuration_of_what_is_not_there(load, changes, name):
    refused(lambda: load(paper(), CONFIG | changes), ConfigError, name)


@pytest.mark.parametrize(("draws", "values"), [(1, 1), (2, 1), (3, 2)])
def test_repeats_beyond_the_draws_would_be_copies_and_are_refused(load, draws, values):
    settings = paper()
    settings["problems"]["over"] |= {"draws": draws, "over": {"xi": [1.5, 2.0][:values]}}
    settings["experiments"]["third"] |= {"problems": ["over"], "repeats": draws * values}
    load(settings)
    settings["experiments"]["third"]["repeats"] += 1
    refused(lambda: load(settings), ConfigError, "third/ssi/over-default", "`draws`")


def test_an_experiment_that_is_left_out_has_no_cells_and_says_so(tmp_path):
    write(tmp_path, paper())
    whole = load_plan(CONFIG, tmp_path)
    patterns = {"*": {}, "second/*": False}
    part = load_plan(CONFIG | {"overrides": {"tiny": {"cells": patterns}}}, tmp_path)
    kept = {path for path, one in whole.cells.items() if one.experiment != "second"}
    assert set(part.cells) == kept != set(whole.cells)
    assert part.missing_of("tiny").keys() - whole.missing_of("tiny").keys() == {"second"}


def test_patterns_say_which_cells_are_made_and_what_changes_in_them(tmp_path):
    write(tmp_path, paper())
    whole = load_plan(CONFIG, tmp_path).cells
    first, last = (cell.short for cell in whole.values() if cell.experiment == "second")
    patterns = {
        "second/*": {"repeats": 1, "params": {"n_components": 2}},
        first: {"params": {"n_components": 1}},
        "third/*": {},
        "third/*-default": False,
    }
    plan = load_plan(CONFIG | {"overrides": {"tiny": {"cells": patterns}}}, tmp_path)
    assert [cell.short for cell in plan.cells.values()] == [first, last]
    for cell in plan.cells.values():
        before = whole[cell.path]
        params = before.params | {"n_components": 1 if cell.short == first else 2}
        assert cell == replace(before, repeats=1, params=params)
    assert plan.describe("tiny")["missing"].keys() >= {"first", "third"}


FILES = ("../x", "/x", "a/b", "a;b", "a b", "", ".x", "$(x)", "{x}", "a'b")


NAMED = {
    "problems": OTHER, "experiments": ("experiments", "first"), "tables": ("tables", "ends"),
    "figures": ("figures", "ends"), "variants": (*SECOND, "runs", 0, "variants", "plain"),
}  # fmt: skip


def called(group, name):
    """Return the paper with a part that is there again, by another name."""
    return changed(paper(), NAMED[group], lambda c, k: c.__setitem__(name, copy.deepcopy(c[k])))


@pytest.mark.parametrize("name", (*FILES, "проба", 'a"b', "end\n"))
@pytest.mark.parametrize("group", ["problems", "experiments", "variants", "tables", "figures"])
def test_names_of_files_are_plain(load, group, name):
    load(called(group, "plain_2"))  # the name alone is what is refused
    refused(lambda: load(called(group, name)), ConfigError, "papers/tiny/experiments.yaml", group)


def test_a_change_of_a_runs_memory_runs_nothing_again(tmp_path):
    settings, specs = paper(), []
    for mem_mb in (None, 3000):
        if mem_mb:
            settings["experiments"]["third"]["runs"][0]["mem_mb"] = mem_mb
        write(tmp_path, settings)
        cells = load_plan(CONFIG, tmp_path).cells.values()
        found = [cell for cell in cells if cell.experiment == "third"]
        assert {cell.mem_mb for cell in found} == {mem_mb}
        specs.append([cell.spec() for cell in found])
    assert specs[0] == specs[1]


def test_given_repeats_are_a_least_number_and_a_quick_run_has_its_own():
    known = {
        cell.short: cell.repeats for cell in load_plan({"papers": ["fedpower"]}).cells.values()
    }
    name, before = next(iter(known.items()))
    for n, quick, repeats in ((before + 3, False, before + 3), (1, False, before),
                              (before + 3, True, before)):  # fmt: skip
        given = {"papers": ["fedpower"], "quick": quick, "repeats": {"fedpower": {name: n}}}
        assert load_plan(given).cells[f"fedpower/{name}"].repeats == repeats
    unknown = {"papers": ["fedpower"], "repeats": {"fedpower": {"no/such/cell": 2}}}
    refused(lambda: load_plan(unknown), ConfigError, "repeats.fedpower")


def test_texts_of_the_command_line_become_values_and_those_of_files_stay():
    """Snakemake reads nested values of --config with YAML's BaseLoader, that is as texts."""
    text = (
        '{tiny: {cells: {"a/*": false, "b/*": {repeats: 3, params: {tol: 1e-8, name: ssi}}}, '
        'note: "FAPS: as printed", list: "[1, 2]", empty: "", none: "~"}}'
    )
    given = {"overrides": yaml.load(text, Loader=yaml.BaseLoader), "paths": {"raw": "2026"}}
    given["repeats"] = {"tiny": {"a/*": "20"}}
    merged = copy.deepcopy(given)
    merged["overrides"]["tiny"]["problems"] = {"p": {"label": "3"}}  # of a file
    found = typed(merged, given)
    tiny = found["overrides"]["tiny"]
    cells = {"a/*": False, "b/*": {"repeats": 3, "params": {"tol": 1e-8, "name": "ssi"}}}
    assert tiny["cells"] == cells and tiny["problems"] == {"p": {"label": "3"}}
    assert [tiny[key] for key in ("note", "list", "empty", "none")] == [
        "FAPS: as printed", "[1, 2]", "", "~",
    ]  # fmt: skip
    assert found["repeats"] == {"tiny": {"a/*": 20}} and found["paths"] == {"raw": "2026"}
    assert typed({"seed": 1}, given) == {"seed": 1}
