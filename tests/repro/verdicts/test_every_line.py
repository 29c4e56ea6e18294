"""Every line of papers/*/claims.yaml can hold and can fail: each is judged on tables made for it.

The tables hold what would have come out as printed, or a planted fault: another printed number,
methods that are swapped, values three times worse, repeats that failed, a counterfactual that
passes as well. Lines of the last full run are held in `test_verdicts`.
"""

from __future__ import annotations

import re
from copy import deepcopy
from itertools import product
from pathlib import Path

import pytest

from fedcore.reports import tables
from fedcore.repro.config import claims
from fedcore.repro.verdicts import claim_tests, verdicts
from fedcore.repro.verdicts.counterfactuals import shifted

FILES = sorted(Path(__file__).parents[3].glob("papers/*/claims.yaml"))
AGREES = ("reproduced", "holds with a departure", "passes")
REPEATS = 20


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Leave out how many more repeats would decide, which takes most of the time."""
    monkeypatch.setattr(claim_tests, "_needed", lambda decides, n: 1)


def lines(path):
    """Yield (departures, item) for every item with a check, and for each of its readings alone."""
    found = claims.read(path)
    for section in ("claims", "software"):
        for item in found[section]:
            for reading in ({}, *item["readings"]) if "test" in item else ():
                yield found["departures"], section, deepcopy(item | reading | {"readings": []})


def as_printed(test):
    """Return a value per repeat that agrees with the print, or keeps the limit."""
    ((kind, given),) = test.items()
    spread = [i / (REPEATS - 1) - 0.5 for i in range(REPEATS)]
    if kind == "holds":
        return [True] * REPEATS
    if kind == "between":
        return [(given[0] + given[1]) / 2] * REPEATS
    if kind in ("at_most", "at_least"):
        limit, within = float(given["limit"]), kind == "at_most"
        return [limit * (0.9 if (limit > 0) == within else 1.1)] * REPEATS
    x = float(given["of"] if kind == "mean" else given)
    if kind == "equals":
        return [x] * REPEATS
    if kind == "one_run":
        return [x * (1 + 0.2 * s) for s in spread]
    margin = given["margin"] * (1.0 if given["absolute"] else abs(x))
    return [x + 0.5 * margin * s for s in spread]


def worse(test):
    """Return values that must not pass: swapped, or far beyond what is printed."""
    ((kind, given),) = test.items()
    if kind == "holds":
        return [False] * REPEATS
    if kind == "between":
        return [given[1] + 3 * (given[1] - given[0])] * REPEATS
    if kind in ("at_most", "at_least"):
        sign = 1 if kind == "at_most" else -1
        limit = float(given["limit"])
        return [limit + sign * (2 * abs(limit) + 1e-30)] * REPEATS
    x = float(given["of"] if kind == "mean" else given)
    return [3 * y if x else y + 3 for y in as_printed(test)]


def rows_of(select, values, group=None):
    """Return the rows that `select` chooses, with these values over the repeats."""
    free = {select["each"]: ["x", "y"]} if "each" in select else {}
    free |= {select["each"]: [group]} if group else {}
    where = free | {k: v if isinstance(v, list) else [v] for k, v in select["where"].items()}
    parsed = [
        [tables.parse(v) if isinstance(v, str) else v for v in given] for given in where.values()
    ]
    for chosen in product(*parsed):
        named = dict(zip(where, chosen, strict=True)) | {"status": "synthetic"}
        for i, value in enumerate(values):
            yield named | {"repeat": i}, {select["column"]: value}


def judged(folder, departures, section, item, values, counter=None):
    """Return the verdict on one item, on tables with these values and those that must not pass."""
    select, other = item["select"], item.get("counterfactual", {}).get("select")
    parts, group = [(select, values)], None
    if other is not None:
        parts.append((other, worse(item["test"]) if counter is None else counter))
        if select.get("each") not in select["where"]:  # one group alone must not pass
            group = other["where"].get(select.get("each"))
    made = {}
    for part, given in parts:
        for named, value in rows_of(part, given, group):
            table = made.setdefault(part["table"], {})
            row = table.setdefault(str(sorted(named.items())), named)
            row |= value
    for name, table in made.items():
        columns = dict.fromkeys(column for row in table.values() for column in row)
        rows = [{column: row.get(column) for column in columns} for row in table.values()]
        file = folder / "mf" / f"{name}.tsv"
        file.parent.mkdir(exist_ok=True)
        file.write_text(tables.text(rows, name), encoding="utf-8")  # thousands of them, unsynced
    given = {"departures": departures, "claims": [], "software": []} | {section: [item]}
    (found,) = verdicts.judge("mf", given, folder, not_run={}, surrogate=False)
    return found


def failing(path, folder, plant):
    """Return ids of the lines whose verdict a fault does not turn; `plant` gives what to judge."""
    left = []
    for line in lines(path):
        item = line[2]
        for fault in plant(item):
            found = judged(folder, *line[:2], fault[0], *fault[1:])
            if found.verdict in AGREES:
                left.append((item["id"], item["departures"], fault[1:2]))
    return left


each_paper = pytest.mark.parametrize("path", FILES, ids=lambda path: path.parent.name)


@each_paper
def test_every_line_holds_on_what_is_printed_and_its_counterfactual_turns_it(path, tmp_path):
    for line in lines(path):
        found = judged(tmp_path, *line, as_printed(line[2]["test"]))
        assert found.verdict in AGREES, (found.id, found.verdict, found.readings)
        assert found.turned is True, (found.id, found.counterfactual)
        expected = "passes" if line[1] == "software" else "holds with a departure"
        expected = expected if line[2]["departures"] or line[1] == "software" else "reproduced"
        assert found.verdict == expected


@each_paper
def test_every_printed_number_shifted_by_half_turns_its_verdict(path, tmp_path):
    def plant(item):
        ((kind, given),) = item["test"].items()
        if kind in ("one_run", "equals", "mean"):
            for number in shifted(given["of"] if kind == "mean" else given):
                test = {kind: given | {"of": number} if kind == "mean" else number}
                yield item | {"test": test}, as_printed(item["test"])

    assert failing(path, tmp_path, plant) == []


@each_paper
def test_every_line_turns_when_methods_are_swapped_or_values_are_far_worse(path, tmp_path):
    assert failing(path, tmp_path, lambda item: [(item, worse(item["test"]))]) == []


@each_paper
def test_no_line_holds_where_its_counterfactual_holds_too(path, tmp_path):
    def plant(item):
        if "select" in item.get("counterfactual", {}):
            yield item, as_printed(item["test"]), as_printed(item["test"])

    assert failing(path, tmp_path, plant) == []


@each_paper
def test_no_line_holds_where_repeats_failed(path, tmp_path):
    """All but two of them, or all."""
    for gone in (REPEATS, REPEATS - 2):

        def plant(item, gone=gone):
            kept = as_printed(item["test"])[: REPEATS - gone]
            yield item, [*kept, *[None] * gone]

        left = failing(path, tmp_path, plant)
        # A range of two runs may hold a print, and the page shows how many have no result.
        assert [line for line in left if gone == REPEATS] == []
        tests = {item["id"]: item["test"] for _, _, item in lines(path)}
        assert {next(iter(tests[name])) for name, _, _ in left} <= {"one_run"}


@each_paper
def test_a_cell_is_tested_against_the_number_that_is_printed_in_it(path):
    for item in claims.read(path)["claims"]:
        ((kind, given),) = item.get("test", {"holds": "every"}).items()
        number = re.fullmatch(claims.NUMBER, item["printed"])
        if item["kind"] == "cell" and number and kind in ("one_run", "equals", "mean"):
            assert str(given["of"] if kind == "mean" else given) == item["printed"], item["id"]


@each_paper
def test_ratios_and_counts_of_the_ledger_are_exact(path, tmp_path):
    """What is printed as text is compared to its digits: 1.95 would do for 2."""

    ledgers = ("ledger", "communication", "misalignments")

    def plant(item):
        ((kind, given),) = item["test"].items()
        if kind == "equals" and item["select"]["table"] in ledgers:
            yield item, [float(given) * (1 - 1e-6) - 1e-6] * REPEATS

    left = [name for name, *_ in failing(path, tmp_path, plant)]
    assert left == ["two-communications"] * (
        "factorization" in path.parent.name
    )  # a number of rounds
