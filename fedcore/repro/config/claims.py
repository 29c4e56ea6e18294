"""Read claims files, which say what a paper prints and how each printed item is tested.

The claims file of a paper is ``papers/<paper>/claims.yaml``. An item is a printed number or
statement. A reading is one way to run an item: it can fill in details that the paper leaves open,
and replace printed details. An item with the key ``each`` stands for several items, one for each
entry of ``each``.
"""

from __future__ import annotations

import copy
import csv
import re
import reprlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from fedcore.errors import ConfigError, nearest, require_known
from fedcore.files.schemas import check, rules_of
from fedcore.files.strict_yaml import read_yaml
from fedcore.repro.config.short_forms import merge
from fedcore.words import counted

CHANGES, TESTS = ("fills_in", "replaces"), ("select", "test")  # keys of a reading
LIMITS = ("at_most", "at_least", "between", "equals")
SECTIONS = ("items", "software")
NUMBER = r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?"


def read(path: Path) -> dict[str, Any]:
    """Return the content of a claims file with all short forms expanded; see `written_out`.

    If the file is missing, the result has no items.
    """
    found = read_yaml(path) if path.is_file() else {"items": []}
    return written_out(found, str(path), path.parent)


def by_id(claims: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the items and the software checks of a claims file, keyed by their ids."""
    return {item["id"]: item for section in SECTIONS for item in claims[section]}


def printed_table(path: Path, name: str) -> dict[str, dict[str, float]]:
    """Return a printed table of numbers as ``{row label: {column: number}}``."""
    table = read(path)["tables"][name]
    return {
        table["labels"][row]: dict(zip(table["columns"], map(float, values), strict=True))
        for row, values in table["rows"].items()
    }


def written_out(claims: Mapping[str, Any], where: str, folder: Path = Path()) -> dict[str, Any]:
    """Expand the short forms of a claims file, and check the result.

    Parameters
    ----------
    claims : mapping
    where : str
        Name of the file in error messages.
    folder : path
        The paper's folder, whose subfolder ``printed`` has the points that were read from printed
        panels.

    Returns
    -------
    dict
        The content of the claims file, with the schema's defaults. Each tested item has a list
        ``readings`` of ways to run it. In a claims file, keys such as ``select`` and ``test`` may
        belong directly to the item; these keys make its first reading. Each reading has
        ``fills_in``, ``replaces`` and a mapping ``cells``. Each cell (a tested value) has
        ``select`` and ``test``. If an item lists no cells and no panel, its only cell has an empty
        name.
    """
    lists = {key: list(_each(claims.get(key, []), f"{where}, {key}")) for key in SECTIONS}
    ids = {key: [str(item.get("id")) for item in items] for key, items in lists.items()}
    sound = check({**claims, **lists}, "claims", where, ids)  # before anything is laid over
    for key, items in lists.items():
        lists[key] = [_with_cells(item, sound["tables"], folder, where) for item in items]
    checked = check({**claims, **lists}, "claims", where, ids)
    for name, cause in checked["causes"].items():
        for change in cause["taken_away"]:
            require_known(change, checked["changes"], f"{where}, cause {name}: change")
    seen: set[str] = set()
    for section in SECTIONS:
        for item in checked[section]:
            what = f"{where}, {item['id']}"
            if item["id"] in seen:
                raise ConfigError(f"{what}: two items have this id: rename one")
            seen.add(item["id"])
            item["needs"] = [[need] if isinstance(need, str) else need for need in item["needs"]]
            _check_item(item, checked, what)
            if (item["kind"] == "check") != (section == "software"):
                raise ConfigError(
                    f"{what}: put items of kind 'check', and no others, under 'software'"
                )
    _require_judged(checked, where)
    return checked


def _each(entries: Any, where: str) -> Iterator[dict[str, Any]]:
    """Yield every item, and expand items that have the key ``each``.

    Each entry of ``each`` yields one item. Those keys of the entry that the schema allows in an
    item are merged into the item. The value of any other key of the entry replaces ``{key}`` in the
    item's texts.
    """
    keys = rules_of("claims")["$defs"]["item"]["properties"]
    for entry in _mappings(entries, where):
        common = {key: value for key, value in entry.items() if key != "each"}
        for row in _mappings(entry.get("each", [{}]), where):
            laid = {key: value for key, value in row.items() if key in keys}
            for key in sorted(row.keys() - laid.keys()):
                if f"{{{key}}}" not in str([common, laid]):
                    hint = nearest(key, keys)
                    raise ConfigError(f"{where}: no text uses the key '{key}' of 'each': {hint}")
            yield _filled(merge(common, laid), row, where)


def _mappings(part: Any, where: str) -> list[Mapping[str, Any]]:
    if not isinstance(part, list) or not all(isinstance(one, Mapping) for one in part):
        raise ConfigError(f"{where}: {reprlib.repr(part)} is no list of mappings")
    return part


def _filled(value: Any, known: Mapping[str, Any], where: str) -> Any:
    """Replace every ``{name}`` in the texts of `value` by ``known[name]``.

    If the whole text is ``{name}``, the value ``known[name]`` replaces the text and keeps its own
    type.
    """
    if isinstance(value, Mapping):
        return {key: _filled(item, known, where) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, known, where) for item in value]
    if not isinstance(value, str):
        return value
    for name in re.findall(r"{(\w+)}", value) if known else []:
        require_known(name, known, f"{where}: '{value}' names")
        if value == f"{{{name}}}":
            return copy.deepcopy(known[name])
        value = value.replace(f"{{{name}}}", str(known[name]))
    return value


def _with_cells(
    item: dict[str, Any], tables: Mapping[str, Any], folder: Path, where: str
) -> dict[str, Any]:
    """Return an item in which every reading (way to run it) lists all cells (tested values)."""
    what = f"{where}, {item.get('id')}"
    if "not_run" in item:
        if item.keys() & {"select", "test", "cells", "panel", "readings"}:
            raise ConfigError(f"{what}: an item has a test or 'not_run', not both")
        return item
    item = copy.deepcopy(item)
    own = {key: item.pop(key) for key in (*CHANGES, *TESTS, "cells") if key in item}
    cells, printed = own.pop("cells", {}), {"": item.get("printed")}
    if "row" in item:
        printed = _row(item, cells, tables, what)
        own.setdefault("test", {"number": {}})
    elif "panel" in item:
        cells = _points(folder / "printed" / item["panel"], what)
    cells = {name: _laid(own, cell) for name, cell in (cells or {"": {}}).items()}
    for name, cell in cells.items():
        number = cell.get("test", {}).get("number")
        if number is not None and printed.get(name) is not None:
            number.setdefault("of", printed[name])
    first = {key: own[key] for key in CHANGES if key in own}
    readings, item["readings"] = [first, *item.get("readings", [])], []
    for reading in readings:
        parts = reading.get("cells", {})
        for name in parts:
            require_known(name, cells, f"{what}: a reading has the unknown cell")
        laid = {n: _laid(_laid(c, reading), parts.get(n, {})) for n, c in cells.items()}
        changes = {key: reading[key] for key in CHANGES if key in reading}
        item["readings"].append(changes | {"cells": laid})
    return item


def _laid(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys ``select`` and ``test`` of `under`, with those of `over` merged in.

    If the two tests are of different kinds, the test of `over` replaces the whole test of `under`.
    """
    over = {key: over[key] for key in TESTS if key in over}
    laid = merge({key: under[key] for key in TESTS if key in under}, over)
    if "test" in over and over["test"].keys() != under.get("test", over["test"]).keys():
        laid["test"] = copy.deepcopy(over["test"])
    return laid


def _row(
    item: dict[str, Any], cells: Mapping[str, Any], tables: Mapping[str, Any], what: str
) -> dict[str, str | None]:
    """Return the printed row of an item, keyed by column.

    If the item lacks the keys ``source``, ``kind`` or ``printed``, these keys are added to it.
    """
    name, row = item["row"]
    require_known(name, tables, f"{what}: unknown table")
    table = tables[name]
    require_known(row, table["rows"], f"{what}: {name} has no row")
    printed = dict(zip(table["columns"], table["rows"][row], strict=False))
    for column in cells:
        if printed.get(column) is None:
            raise ConfigError(f"{what}: {name} prints nothing in row {row}, column {column}")
    labels = table["labels"]
    item.setdefault("source", table["source"])
    item.setdefault("kind", "row")
    item.setdefault("printed", "; ".join(f"{labels.get(c, c)} {printed[c]}" for c in cells))
    return printed


def _points(path: Path, what: str) -> dict[str, Any]:
    """Return a cell (tested value) for each point in the CSV file of a printed panel.

    The column ``dy`` contains the error with which ``y`` was read off the panel.
    """
    if not path.is_file():
        raise ConfigError(f"{what}: there is no file {path} with the panel's points")
    cells = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            y, error = line.pop("y"), float(line.pop("dy"))
            keys = {k: float(v) if re.fullmatch(NUMBER, v) else v for k, v in line.items()}
            name = ", ".join(f"{key} = {value}" for key, value in line.items())
            test = {"number": {"of": y, "reading_error": error}}
            cells[name] = {"select": {"where": keys}, "test": test}
    return cells


def _check_item(item: dict[str, Any], checked: Mapping[str, Any], where: str) -> None:
    """Raise `ConfigError` if an item breaks a rule that the schema cannot express."""
    if "cause" in item:
        require_known(item["cause"], checked["causes"], f"{where}: unknown cause")
    for key in ("source", "kind", "printed"):
        if key not in item:
            raise ConfigError(f"{where}: '{key}' is missing")
    if "not_run" in item:
        return
    tried: list[set[str]] = []
    for reading in item["readings"]:
        names = [*reading["fills_in"], *reading["replaces"]]
        for name in names:
            require_known(name, checked["changes"], f"{where}: unknown change")
        for name in reading["fills_in"]:
            if (ground := checked["changes"][name]["ground"]) in ("contradiction", "search"):
                raise ConfigError(
                    f"{where}: '{name}' has the ground '{ground}': list it under 'replaces'"
                )
        if set(names) in tried:
            raise ConfigError(f"{where}: two readings have the same changes: name what differs")
        tried.append(set(names))
        for name, cell in reading["cells"].items():
            _check_cell(cell, item, f"{where}, {name}" if name else where)
    if "cause" in item:
        taken_away = checked["causes"][item["cause"]]["taken_away"]
        if sorted(taken_away) not in [sorted(reading["replaces"]) for reading in item["readings"]]:
            raise ConfigError(
                f"{where}: the item names the cause {item['cause']}, so it needs a reading that "
                f"replaces only {', '.join(taken_away)}"
            )


def _check_cell(cell: Mapping[str, Any], item: Mapping[str, Any], where: str) -> None:
    for key in ("table", "column"):
        if key not in cell.get("select", {}):
            raise ConfigError(f"{where}: 'select' has no {key}")
    if "test" not in cell:
        raise ConfigError(f"{where}: 'test' is missing")
    ((kind, given),) = cell["test"].items()
    limits = [key for key in LIMITS if key in given]
    if len(limits) > 1:
        raise ConfigError(f"{where}: give one limit only, not {' and '.join(limits)}")
    if "between" in given and given["between"][0] > given["between"][1]:
        raise ConfigError(f"{where}: between {given['between']} is empty; swap the two")
    if ({*limits} - {"equals"} or "tolerance" in given) and "because" not in item:
        raise ConfigError(f"{where}: 'because' must say where the limit comes from")
    printed = given.get("of" if kind == "number" else "equals", 1)
    if isinstance(printed, str) and not re.fullmatch(NUMBER, printed):
        raise ConfigError(f"{where}: '{printed}' is no number: write it as in -1.80e-06")
    if kind == "number" and given["scale"] == "relative" and float(printed) == 0:
        raise ConfigError(f"{where}: the printed 0 has no relative tolerance: use another scale")


def _require_judged(checked: Mapping[str, Any], where: str) -> None:
    """Raise `ConfigError` if a printed table's cell is neither tested nor left out for a reason."""
    rows = [item for item in checked["items"] if "row" in item]
    judged = {
        (*item["row"], column)
        for item in rows
        for reading in item["readings"]
        for column in reading["cells"]
    }
    whole = {tuple(item["row"]) for item in rows if "not_run" in item}
    for name, table in checked["tables"].items():
        for row, values in table["rows"].items():
            if len(values) != len(table["columns"]):
                raise ConfigError(
                    f"{where}, tables.{name}.rows.{row}: {counted(len(values), 'cell')} under "
                    f"{counted(len(table['columns']), 'column')}"
                )
            for column, value in zip(table["columns"], values, strict=True):
                said = {row, column} & table["unjudged"].keys() or (name, row) in whole
                if value is not None and not said and (name, row, column) not in judged:
                    raise ConfigError(
                        f"{where}: no item judges the cell {row}, {column} of {name}: add it to "
                        "the cells of an item, or say under 'unjudged' why not"
                    )
