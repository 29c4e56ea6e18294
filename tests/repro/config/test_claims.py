"""Claims files: everything comes out written in full; what is wrong ends in a sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedcore.errors import ConfigError
from fedcore.files.strict_yaml import parse_yaml
from fedcore.repro.config import claims
from refused import refused

ROOT = Path(__file__).parents[3]
FILES = sorted(ROOT.glob("papers/*/claims.yaml"))

CHANGES = """
changes:
  code: {what: as the code, ground: ours, because: b}
  open: {what: as we read it, ground: left open, because: b}
  found: {what: found, ground: search, because: b, tried: 20, searched: {alone: all of it}}
  other: {what: the other page, ground: contradiction, because: b, passages: [one, two]}
causes:
  the-code: {what: the code, because: b, taken_away: [code]}
"""
ALONE = """
- {id: alone, title: t, source: s, kind: number, printed: "5", select: {table: t, column: c},
   test: {number: {}}}
"""


def written(text, folder=Path()):
    return claims.written_out(parse_yaml(text, "text"), "c.yaml", folder)


def items(text, **more):
    given = {"items": parse_yaml(text, "text")} | parse_yaml(CHANGES, "text") | more
    return claims.written_out(given, "c.yaml")["items"]


NUMBER = {"runs": 1, "theory": False, "scale": "relative", "point": 1, "reading_error": 0}


def test_an_item_by_itself_gets_its_defaults():
    (found,) = items(ALONE)
    cell = {
        "select": {"table": "t", "column": "c", "where": {}, "points": []},
        "test": {"number": NUMBER | {"of": "5"}},
    }
    assert found == {
        "id": "alone", "title": "t", "source": "s", "kind": "number", "printed": "5", "needs": [],
        "readings": [{"fills_in": [], "replaces": [], "cells": {"": cell}}],
    }  # fmt: skip


def test_an_item_needs_problems_or_one_of_several():
    (found,) = items(ALONE.replace("id: alone", "id: alone, needs: [mnist, [seed_1, seed_2]]"))
    assert found["needs"] == [["mnist"], ["seed_1", "seed_2"]]


def test_readings_are_laid_over_the_item_and_cells_over_both():
    (found,) = items("""
- id: alone
  title: t
  source: s
  kind: sentence
  printed: p
  select: {table: t, where: {way: own, n: 1}}
  test: {most_runs: {at_most: 1}}
  because: b
  cells: {one: {select: {column: c}}, two: {select: {column: d}, test: {exact: {}}}}
  fills_in: [open]
  readings:
    - {replaces: [code], select: {where: {way: code}}}
    - {fills_in: [open], replaces: [other], cells: {two: {select: {column: e}}}}
""")
    own, code, other = found["readings"]
    assert (own["fills_in"], code["fills_in"], other["replaces"]) == (["open"], [], ["other"])
    assert code["cells"]["one"]["select"]["where"] == {"way": "code", "n": 1}
    assert own["cells"]["one"]["test"] == {
        "most_runs": {"at_most": 1, "probability": 0.5, "every": False}
    }
    assert [r["cells"]["two"]["select"]["column"] for r in found["readings"]] == ["d", "d", "e"]
    assert [r["cells"]["two"]["test"] for r in found["readings"]] == [{"exact": {}}] * 3


def test_each_fills_in_texts_and_lays_keys_over():
    first, last = items("""
- each: [{id: a, n: 1, w: "1"}, {id: b, n: [2, 3], w: x, because: own}]
  title: for {w}
  source: s
  kind: sentence
  printed: p
  because: common
  select: {table: t, column: c, where: {n: "{n}", w: "{w}"}}
  test: {most_runs: {at_least: 1}}
""")
    assert (first["title"], first["because"], last["because"]) == ("for 1", "common", "own")
    wheres = [i["readings"][0]["cells"][""]["select"]["where"] for i in (first, last)]
    assert wheres == [{"n": 1, "w": "1"}, {"n": [2, 3], "w": "x"}]


TABLE = """
tables:
  table4:
    source: Table 4
    caption: Rounds and errors
    columns: [rounds, error, time]
    labels: {error: relative error}
    rows: {ssi: ["337", "1.80e-06", "3.1"], faps: ["55", null, "0.9"]}
    unjudged: {time: seconds of another machine}
items:
  - id: table4-{m}
    title: Row of {m}
    row: [table4, "{m}"]
    select: {table: t, where: {method: "{m}"}}
    each:
      - {m: ssi, cells: {rounds: {select: {column: rounds}}, error: {select: {column: error}}}}
      - {m: faps, cells: {rounds: {select: {column: rounds}, test: {exact: {equals: "55"}}}}}
"""


def test_cells_of_a_row_take_what_the_table_prints():
    first, second = written(TABLE)["items"]
    assert [first[key] for key in ("source", "kind", "printed")] == [
        "Table 4", "row", "rounds 337; relative error 1.80e-06",
    ]  # fmt: skip
    cells = first["readings"][0]["cells"]
    assert [cells[name]["test"]["number"]["of"] for name in cells] == ["337", "1.80e-06"]
    assert second["readings"][0]["cells"]["rounds"]["test"] == {"exact": {"equals": "55"}}
    own = "printed: few, select: {column: rounds}, test: {exact: {equals: 5}}, because: b}"
    text = TABLE[: TABLE.index("cells: {rounds: {select: {column: rounds}, test")] + own
    text = text.replace("unjudged: {", "unjudged: {rounds: by the whole row, ")
    _, whole = written(text)["items"]
    assert list(whole["readings"][0]["cells"]) == [""]


def test_points_that_were_read_from_a_panel_are_cells(tmp_path):
    (tmp_path / "printed").mkdir()
    text = """
items:
  - {id: fig, title: t, source: Figure 1, kind: panel, printed: two points, panel: a.csv,
     select: {table: t, column: y}, test: {number: {scale: exponent}}}
"""
    refused(lambda: written(text, tmp_path), ConfigError, "a.csv")
    (tmp_path / "printed/a.csv").write_text("curve,x,y,dy\nup,1,-2.5,0.1\ndown,0.5,-3,0.2\n")
    (found,) = written(text, tmp_path)["items"]
    first, last = found["readings"][0]["cells"].values()
    assert first["select"]["where"] == {"curve": "up", "x": 1.0}
    assert last["test"]["number"] == NUMBER | {
        "of": "-3", "reading_error": 0.2, "scale": "exponent",
    }  # fmt: skip


def test_a_paper_without_a_file_prints_nothing(tmp_path):
    found = claims.read(tmp_path / "none.yaml")
    assert all(not value for value in found.values())
    found["items"].append(1)
    assert claims.read(tmp_path / "none.yaml")["items"] == []


# ------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("old", "new", "name"),
    [
        ('["55", null, "0.9"]', '["55", null]', "tables.table4.rows.faps"),
        ("columns: [rounds", "columns: [Rounds", "tables.table4.columns.0"),
        ("tables:\n  table4:", "tables:\n  Table 4:", "'Table 4'"),
        (', error: {select: {column: error}}', "", "ssi, error"),
        ("cells: {rounds: {select: {column: rounds}, test", "cells: {error: {test", "error"),
        ("    unjudged: {time: seconds of another machine}\n", "", "time"),
        ("{m: faps,", "{m: faps, prined: x,", "'prined'"),
        ("id: table4-{m}", "id: table4-{n}", "'n'"),
        ('row: [table4, "{m}"]', 'row: [table5, "{m}"]', "'table4'"),
        ("items:", "software:", "'check'"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_read(old, new, name):
    assert TABLE.count(old) == 1
    refused(lambda: written(TABLE.replace(old, new)), ConfigError, name)


READING = {"replaces": ["code"], "select": {"column": "d"}}
FILLS = {"fills_in": ["found"], "select": {"column": "d"}}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"printed": None}, "'printed'"),
        ({"kind": "check"}, "'check'"),
        ({"source": None}, "'source'"),
        ({"test": {}}, "alone.test"),
        ({"test": {"exact": {}, "number": {}}}, "alone.test"),
        ({"test": {"most_runs": {"at_most": 1}}}, "'because'"),
        ({"test": {"most_runs": {"at_most": 1, "at_least": 1}}, "because": "b"}, "at_least"),
        ({"test": {"most_runs": {"probability": 1}}}, "probability"),
        ({"test": {"number": {"of": "0.0"}}}, "0"),
        ({"test": {"exact": {"between": [1]}}}, "between"),
        ({"test": {"exact": {"between": [2, 1]}}, "because": "b"}, "[2, 1]"),
        ({"test": {"number": {"of": "94 %"}}}, "'94 %'"),
        ({"test": None}, "'test'"),
        ({"test": None, "select": None}, "'select'"),
        ({"select": {"table": "../x", "column": "c"}}, "'../x'"),
        ({"select": {"table": "x"}}, "column"),
        ({"not_run": "x"}, "'not_run'"),
        ({"replaces": ["cod"]}, "'cod'"),
        ({"readings": [READING | {"replaces": ["cod"]}]}, "'cod'"),
        ({"readings": [READING, READING]}, "readings"),
        ({"readings": [READING | {"replaces": []}]}, "readings"),
        ({"readings": [FILLS]}, "'found' has the ground 'search': list it under 'replaces'"),
        ({"fills_in": ["other"]}, "'other' has the ground 'contradiction': list"),
        ({"readings": [READING | {"cells": {"x": {}}}]}, "unknown cell"),
        ({"cause": "the-cod"}, "'the-code'"),
        ({"cause": "the-code"}, "names the cause the-code"),
        ({"each": [5]}, "5"),
        ({"each": [{}, {}]}, "alone"),
        ({"cells": 5}, "cells"),
        ({"readings": 5}, "readings"),
    ],
)
def test_items_that_cannot_be_read(changes, name):
    (entry,) = parse_yaml(ALONE, "text")
    entry = {key: value for key, value in (entry | changes).items() if value is not None}
    given = {"items": [entry]} | parse_yaml(CHANGES, "text")
    refused(lambda: claims.written_out(given, "c.yaml"), ConfigError, "c.yaml", name)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"ground": "contradiction", "passages": ["one"]}, "passages"),
        ({"ground": "contradiction"}, "passages"),
        ({"ground": "authors' code"}, "code"),
        ({"ground": "search"}, "tried"),
        ({"ground": "search", "tried": 20}, "searched"),
        ({"because": ""}, "changes.code.because"),
    ],
)
def test_changes_without_what_their_ground_needs(change, name):
    given = {"items": [], "changes": {"code": {"what": "w", "ground": "ours", "because": "b"}}}
    given["changes"]["code"] |= change
    refused(lambda: claims.written_out(given, "c.yaml"), ConfigError, name)


# ------------------------------------------------------ the files of the papers


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)
def test_every_change_and_cause_of_a_paper_is_used_and_every_figure_and_test_is_there(path):
    found = claims.read(path)
    every = [*found["items"], *found["software"]]
    readings = [reading for item in every for reading in item["readings"]]
    used = {name for r in readings for name in (*r["fills_in"], *r["replaces"])}
    assert used == found["changes"].keys()
    assert {item["cause"] for item in every if "cause" in item} == found["causes"].keys()
    drawn = parse_yaml(path.with_name("experiments.yaml").read_text("utf-8"), "text")["figures"]
    named = [one["figure"] for one in (*every, *found["figures"]) if "figure" in one]
    assert set(named) <= drawn.keys()
    held = [fact["held_by"] for fact in found["facts"] if "held_by" in fact]
    assert [file for file in held if not (ROOT / file).is_file()] == []


def test_the_example_of_the_documentation_can_be_read(tmp_path):
    (example,) = re.findall(
        r"```yaml\n(.*?)```", (ROOT / "docs/judging.md").read_text("utf-8"), re.DOTALL
    )
    (tmp_path / "printed").mkdir()
    (tmp_path / "printed/fig2a.csv").write_text("curve,x,y,dy\nalpha0,0.1,-2.0,0.1\n")
    found = written(example, tmp_path)
    assert len(found["items"]) == 6 and found["facts"] and found["figures"]
