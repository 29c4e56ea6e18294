"""Claims files: short forms come out as if written in full; what is wrong ends in a sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedcore.config import claims
from fedcore.config.strict_yaml import parse_yaml, read_yaml
from fedcore.errors import ConfigError

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "config/claims").glob("*.yaml"))
SCHEMA = ROOT / "workflow/schemas/claims.schema.yaml"

ALONE = """
- {id: alone, quantity: q, source: s, kind: number, printed: "5",
   select: {table: t, column: c}, test: {one_run: "{printed}"}}
"""


def written(text, **more):
    given = {"tables": {}, "claims": []} | parse_yaml(text, "text") | more
    return claims.written_out(given, "c.yaml")


def items(text, **more):
    return written("{}", claims=parse_yaml(text, "text"), **more)["claims"]


# ------------------------------------------------------ short forms


def test_an_item_by_itself_gets_its_defaults():
    (found,) = items(ALONE)
    assert found == {
        "id": "alone", "quantity": "q", "source": "s", "kind": "number", "printed": "5",
        "select": {"table": "t", "column": "c", "where": {}}, "test": {"one_run": "5"},
        "departures": [], "spread": True, "readings": [], "needs": [],
    }  # fmt: skip


def test_an_item_needs_problems_or_one_of_several():
    (found,) = items(ALONE.replace("id: alone", "id: alone, needs: [mnist, [seed_1, seed_2]]"))
    assert found["needs"] == [["mnist"], ["seed_1", "seed_2"]]


GROUPS = """
- source: Table 1
  kind: number
  quantity: rounds of {method}
  select: {table: counts, where: {rule: kkt}}
  each:
    - {method: A, rounds: "337", share: "0.5"}
    - method: B
      rounds: "2"
      share: x
      because: why
      readings: [{departures: [code], select: {where: {b: 2}}}]
  items:
    - id: table1-{method}
      select: {where: {method: "{method}"}, column: rounds}
      printed: "{rounds}"
      test: {mean: {of: "{printed}", margin: 0.1}}
      because: chosen
    - each: [{n: 1, limit: "1e-6"}, {n: 2, limit: 5}]
      id: table1-{method}-{n}
      printed: "{share} for {n}"
      select: {where: {n: "{n}"}, column: "c{n}"}
      test: {at_most: {limit: "{limit}"}}
      because: theory
"""
CODE = {"code": {"what": "w", "ground": "ours", "because": "b"}}


def test_groups_rows_and_names():
    found = {item["id"]: item for item in items(GROUPS.lower(), departures=CODE)}
    assert list(found) == ["table1-a", "table1-a-1", "table1-a-2", "table1-b", "table1-b-1",
                           "table1-b-2"]  # fmt: skip
    first, last = found["table1-a"], found["table1-b-2"]
    assert (first["quantity"], first["printed"], first["source"]) == (
        "rounds of a",
        "337",
        "table 1",
    )
    assert first["select"]["where"] == {"rule": "kkt", "method": "a"}
    assert first["test"] == {"mean": {"of": "337", "margin": 0.1, "absolute": False}}
    assert last["printed"] == "x for 2"
    # Where a column is selected a number keeps its type, within a text it is text; a limit is one.
    assert last["select"] == {"table": "counts", "where": {"rule": "kkt", "n": 2}, "column": "c2"}
    assert [found[f"table1-b-{n}"]["test"]["at_most"]["limit"] for n in (1, 2)] == [1e-6, 5]
    # A reading selects all that its item does, and what differs; a row lays over its group.
    (reading,) = last["readings"]
    assert reading["select"]["where"] == {"rule": "kkt", "n": 2, "b": 2}
    assert last["because"] == "theory"  # an item's own lies over a row of its group


@pytest.mark.parametrize("given", ["[a, b]", "[]", "{a: b}", "null"])
@pytest.mark.parametrize("key", ["quantity", "source", "printed", "because", "column", "where"])
def test_a_list_is_no_word_of_a_text(key, given):
    row = {key: "of {name} here"}
    select = {"table": "t", "column": row.pop("column", "c"), "where": {"w": row.pop("where", "x")}}
    item = {
        "id": "a", "quantity": "q", "source": "s", "kind": "number", "printed": "5",
        "because": "b", "select": select, "test": {"one_run": "5"},
    } | row  # fmt: skip
    text = "[{each: [{name: %s}], items: []}]"
    (group,) = parse_yaml(text % "word", "text")
    assert len(written("{}", claims=[group | {"items": [item]}])["claims"]) == 1
    (group,) = parse_yaml(text % given, "text")
    with pytest.raises(ConfigError, match="name"):
        written("{}", claims=[group | {"items": [item]}])


@pytest.mark.parametrize("wrong", ["text", 5, ["a"] * 400, None])
@pytest.mark.parametrize("key", ["claims", "items", "each"])
def test_one_wrong_entry_is_named_and_not_all_that_stand_beside_it(key, wrong):
    (entry,) = parse_yaml(ALONE, "text")
    many = [{"id": f"number-{i}"} for i in range(400)]
    for part in ([*many, wrong], {"a": many}):
        given = part if key == "claims" else [{**entry, key: part}]
        with pytest.raises(ConfigError) as found:
            written("{}", claims=given)
        assert len(str(found.value)) < 300 and "number-8" not in str(found.value)


@pytest.mark.parametrize("given", [[], {}, {"a": "b"}, [["a"]], ["a", {"b": "c"}], [1, [2]]])
@pytest.mark.parametrize("filled", [True, False])
def test_rows_are_asked_for_by_values_and_lists_of_values(given, filled):
    (entry,) = parse_yaml(ALONE, "text")
    entry["select"]["where"] = {"w": "{name}" if filled else given}
    for value in ("a", 1, 2.5, True, None, ["a", 1, None]):
        one = {**entry, "select": {**entry["select"], "where": {"w": value}}}
        assert written("{}", claims=[one])["claims"][0]["select"]["where"] == {"w": value}
    with pytest.raises(ConfigError, match=r"where\.w"):
        written("{}", claims=[{"each": [{"name": given}], "items": [entry]}])


def test_a_test_replaces_a_test_and_unchecked_replaces_both():
    common = """
- {source: s, quantity: q, kind: number, printed: "5", select: {table: t, column: c},
   test: {one_run: "5"}, items: [
     {id: a}, {id: b, test: {equals: "5"}},
     {id: c, unchecked: {verdict: not run, because: "no data: x"}}]}
"""
    a, b, c = items(common)
    assert (a["test"], b["test"]) == ({"one_run": "5"}, {"equals": "5"})
    assert "test" not in c and "select" not in c
    group = """
- {source: s, quantity: q, kind: number, printed: "5",
   unchecked: {verdict: not run, because: "no data: x"},
   each: [{id: a}, {id: b, select: {table: t, column: c}, test: {equals: "5"}}]}
"""
    a, b = items(group)
    assert "unchecked" in a and "unchecked" not in b


TABLE = """
tables:
  table4:
    source: Table 4
    caption: Rounds and errors
    columns: [rounds, error]
    labels: {ssi: SSI, rounds: Iterations}
    rows: {ssi: ["337", "1.80e-06"], faps: ["55", null]}
claims:
  - each: [{m: ssi}, {m: faps}]
    id: table4-{m}-rounds
    select: {table: t, where: {method: "{m}"}, column: rounds}
    test: {one_run: "{printed}"}
  - {id: table4-ssi-error, unchecked: {verdict: not run, because: "not built: x"}}
"""


def test_printed_cells_are_items_that_say_what_the_table_says():
    first, second, third = written(TABLE)["claims"]
    keys = ("id", "source", "kind", "quantity", "printed")
    assert [first[k] for k in keys] == [
        "table4-ssi-rounds", "Table 4", "cell", "SSI: Iterations", "337",
    ]  # fmt: skip
    assert first["test"] == {"one_run": "337"} and second["test"] == {"one_run": "55"}
    assert second["quantity"] == "faps: Iterations"
    assert (third["printed"], third["kind"]) == ("1.80e-06", "cell")


def test_a_paper_without_a_file_prints_nothing(tmp_path):
    found = claims.read(tmp_path / "none.yaml")
    assert found == {"departures": {}, "tables": {}, "claims": [], "software": []}
    found["claims"].append(1)
    assert claims.read(tmp_path / "none.yaml")["claims"] == []


def test_rows_lay_every_key_of_a_claim():
    assert set(claims.KEYS) == set(read_yaml(SCHEMA)["$defs"]["claim"]["properties"])


# ------------------------------------------------------ what is refused


def refused(function, *args, **more):
    with pytest.raises(ConfigError) as error:
        function(*args, **more)
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("  - {id: table4-ssi-error,", "  - {id: other, kind: cell, source: s, quantity: q, "
         "printed: x,", "the printed cell table4-ssi-error has no claim"),
        ('["55", null]', '["55"]', "tables.table4.rows.faps: 1 cell under 2 columns"),
        ("{id: table4-ssi-error,", '{id: table4-ssi-error, printed: "2",',
         "c.yaml, table4-ssi-error: the printed is '1.80e-06', as a cell of a table"),
        ("{id: table4-ssi-error,", "{id: table4-ssi-error, kind: number,",
         "c.yaml, table4-ssi-error: the kind is 'cell'"),
        ("source: Table 4", "sourse: Table 4", "did you mean 'source'"),
        ("columns: [rounds", "columns: [Rounds", "tables.table4.columns.0: 'Rounds' does not"),
        ('"337"', "337", "tables.table4.rows.ssi.0: 337 is not"),
        ("tables:\n  table4:", "tables:\n  Table 4:", "'Table 4' does not match"),
        ("{m: faps}", "{m: faps, prined: x}", "no text names 'prined' of a row of each: did you "
         "mean 'printed'"),
        ("id: table4-{m}-", "id: table4-{n}-", "'table4-{n}-rounds' names 'n': known: m"),
        ("claims:", "claim: []\nclaims:", "unknown key 'claim': did you mean 'claims'"),
        ('{one_run: "{printed}"}', '{one_run: "x"}', "'x' is no number: write it as in -1.80e-06"),
    ],
)  # fmt: skip
def test_tables_that_cannot_be_read(old, new, words):
    assert TABLE.count(old) == 1
    assert words in refused(written, TABLE.replace(old, new))


def test_a_cell_may_not_hide_among_the_checks_of_this_software():
    check = {"id": "table4-ssi-error", "kind": "check"}
    text = TABLE.replace("  - {id: table4-ssi-error", "software:\n  - {id: table4-ssi-error")
    assert "kind 'check', and no others, are software" in refused(written, text)
    given = parse_yaml(text, "text")
    given["software"][0] |= check
    assert "the kind is 'cell'" in refused(claims.written_out, given, "c.yaml")


def changed(**changes):
    (entry,) = parse_yaml(ALONE, "text")
    for key, value in changes.items():
        entry.pop(key, None)
        entry |= {key: value} if value is not None else {}
    return [entry]


READING = {"departures": ["code"], "select": {"column": "d"}}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"id": "Table 2"}, "does not match"),
        ({"id": "{x}"}, "'{x}' names 'x'"),
        ({"printed": 5}, "alone.printed: 5 is not of type 'string'"),
        ({"printed": None}, "names 'printed'"),
        ({"kind": "tabel"}, "alone.kind: 'tabel' is not one of"),
        (
            {"kind": "check"},
            "c.yaml, alone: items of the kind 'check', and no others, are software",
        ),
        ({"becuase": "x"}, "did you mean 'because'"),
        ({"source": None}, "'source' is a required property"),
        ({"test": {}}, "alone.test: {} should be non-empty"),
        ({"test": {"equals": 1, "one_run": 2}}, "alone.test: "),
        ({"test": {"at_mots": 2}}, "did you mean 'at_most'"),
        ({"test": {"holds": "always"}}, "'always' is not one of"),
        ({"test": {"at_most": {"limit": "x"}}}, "'x' is not of type 'number'"),
        ({"test": {"at_most": {"limit": 1}}}, "'because' must say where the margin or limit is"),
        ({"test": {"mean": {"of": "1", "margin": 0.1}}}, "'because' must say"),
        ({"test": {"mean": {"of": "1"}}}, "'margin' is a required property"),
        ({"test": {"mean": {"of": "1", "margin": 0}}}, "0 is less than or equal to the minimum"),
        ({"test": {"mean": {"of": "0.0", "margin": 1}}, "because": "b"}, "no fraction of 0"),
        ({"test": {"between": [1]}}, "alone.test.between: [1] is too short"),
        ({"test": {"between": [2, 1]}, "because": "b"}, "between [2, 1] is empty; swap the two"),
        ({"test": {"one_run": "94 %"}}, "'94 %' is no number"),
        ({"test": {"one_run": "nan"}}, "'nan' is no number"),
        ({"test": None}, "c.yaml, alone: 'select' and 'test' need each other"),
        ({"test": None, "select": None}, "c.yaml, alone: an item needs 'select' and 'test', or"),
        ({"select": {"table": "../x", "column": "c"}}, "does not match"),
        ({"select": {"table": "x", "colum": "c"}}, "did you mean 'column'"),
        ({"unchecked": {"verdict": "reproduced", "because": "b"}}, "is not one of"),
        ({"unchecked": {"verdict": "not run"}}, "'because' is a required property"),
        ({"needs": "celeba"}, "not of type 'array'"),
        ({"departures": ["cod"]}, "alone: unknown departure 'cod': did you mean 'code'"),
        ({"readings": [READING | {"departures": ["cod"]}]}, "unknown departure 'cod'"),
        ({"readings": [READING | {"departures": []}]}, "alone.readings.0.departures: [] should"),
        ({"readings": [{"select": {"column": "d"}}]}, "'departures' is a required property"),
        ({"readings": [READING, READING]}, "two readings have the same departures"),
        ({"departures": ["code"], "readings": [READING]}, "two readings have the same departures"),
        ({"readings": [READING | {"test": {"at_most": {"limit": 1}}}]}, "'because' must say"),
        ({"readings": [READING | {"test": {"one_run": "x"}}]}, "'x' is no number"),
        ({"readings": 5}, "alone.readings: 5 is not of type 'array'"),
        ({"counterfactual": {"what": "x"}}, "alone.counterfactual: "),
        ({"counterfactual": {"select": {"column": "d"}}}, "'what' is a required property"),
        ({"each": [5]}, "c.yaml, claims: 5 is no item or row, which has keys"),
        ({"each": [{"n": 1}, {"n": 2}]}, "c.yaml, alone: two items have this id: rename one"),
        ({"items": 5}, "c.yaml, claims: 5 is no list of items or rows"),
    ],
)
def test_items_that_cannot_be_read(changes, words):
    found = refused(written, "{}", claims=changed(**changes), departures=CODE)
    assert found.startswith("c.yaml, ") and words in found


def test_an_item_and_a_check_may_not_share_an_id():
    software = changed(kind="check")
    assert "two items have this id" in refused(items, ALONE, software=software)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ground": "contradiction", "passages": ["one"]}, "quote the two passages that exclude"),
        ({"ground": "contradiction"}, "quote the two passages"),
        ({"ground": "authors' code"}, "quote what their code does"),
        ({"ground": "fitted"}, "say how many readings were tried, and on what"),
        ({"ground": "fitted", "tried": 20}, "say how many readings were tried, and on what"),
        ({"ground": "taste"}, "departures.code.ground: 'taste' is not one of"),
        ({"because": ""}, "departures.code.because: '' should be non-empty"),
        ({"what": "a; b"}, "departures.code.what: 'a; b' does not match '^[^;]+$'"),
        ({"tried": 0}, "0 is less than the minimum of 1"),
    ],
)
def test_departures_without_what_their_ground_needs(changes, words):
    departures = {"code": CODE["code"] | changes}
    assert words in refused(written, "{}", departures=departures)


# ------------------------------------------------------ the files of the papers


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_printed_cell_of_a_paper_is_an_item_and_every_departure_is_used(path):
    found = claims.read(path)
    cells = sum(
        cell is not None
        for table in found["tables"].values()
        for cells in table["rows"].values()
        for cell in cells
    )
    assert cells == sum(item["kind"] == "cell" for item in found["claims"])
    readings = [r for s in ("claims", "software") for i in found[s] for r in (i, *i["readings"])]
    used = {name for reading in readings for name in reading["departures"]}
    assert used == found["departures"].keys()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_item_without_a_check_says_why(path):
    """The words before the colon are counted on the paper's page."""
    known = ("no data", "needs a GPU", "not built", "not comparable")
    for item in claims.read(path)["claims"]:
        if "unchecked" in item:
            assert item["unchecked"]["because"].partition(": ")[0] in known, item["id"]


def test_the_example_of_the_readme_can_be_read():
    text = (ROOT / "config/README.md").read_text(encoding="utf-8")
    (example,) = [part for part in text.split("```")[1::2] if "departures:" in part]
    found = written(example.removeprefix("yaml"))["claims"]
    assert [item["id"] for item in found] == [
        "table4-ssi-rounds", "table4-ssi-seconds", "table4-faps-rounds", "table4-faps-seconds",
        "fig2a-faps-first",
    ]  # fmt: skip
    assert found[2]["readings"][0]["select"]["where"] == {"algorithm": "faps", "variant": "server"}
    schema = read_yaml(SCHEMA)["$defs"]["test"]["properties"]
    assert all(f"`{name}" in text for name in schema)


@pytest.fixture(scope="module")
def judged():
    """Items with a test, by ``<paper>/<id>``."""
    return {
        f"{path.stem}/{item['id']}": item
        for path in FILES
        for item in claims.read(path)["claims"]
        if "test" in item
    }


def test_what_is_said_of_all_cases_must_hold_in_each_of_them(judged):
    """Runs of several cases that are counted together may outvote one of them."""
    together = [
        name
        for name, item in judged.items()
        if "in all cases" in item["printed"].lower() and "each" not in item["select"]
    ]
    assert together == ["fedrep/a2-scaffold-rate"]  # "in all cases besides FEMNIST": of one case


def test_a_bound_that_must_hold_in_every_run_names_what_breaks_it(judged):
    """Flags turned round say nothing of how near a bound is."""
    bare = [
        name
        for name, item in judged.items()
        if item["test"] == {"holds": "every"} and "counterfactual" not in item
    ]
    assert bare == []


def test_less_noise_than_the_papers_refutes_no_sentence_against_algorithm_1(judged):
    """This project's accountant favours it: where it is to be the worse one, it has its own."""
    item = judged["dppower/small-gap-iterations"]
    assert item["departures"] == [] and item["select"]["where"]["variant"] == "paper"
    assert ["accountant" in reading["departures"] for reading in item["readings"]] == [True]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_reason_sends_readers_to_a_table_or_figure_of_the_same_artefact(path):
    """Where an item has no check, what is named in its place is made, and shows the same."""
    made = read_yaml(ROOT / "config/papers" / path.name)
    for item in claims.read(path)["claims"]:
        reason = item.get("unchecked", {}).get("because", "")
        for kind, name in re.findall(r"\b(table|figure)s? `?([a-z0-9_]+)`", reason):
            caption = made[f"{kind}s"][name]
            number = re.match(r"(Figure|Table) \d", item["source"])
            if number and re.search(r"(Figure|Table) \d", str(caption)):
                assert number[0] in str(caption), f"{item['id']}: {kind} {name} is {caption}"
