"""Claims files: what a paper prints, and how each item is checked.

``papers/<paper>/claims.yaml`` has the printed tables, the claims with their tests, the departures
from the paper's text, and the checks of this software. Its short forms are groups: the keys beside
``items`` are defaults of each item, and ``each`` repeats an item or group for each of its rows.
"""

from __future__ import annotations

import re
import reprlib
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from fedcore.errors import ConfigError, nearest, require_known
from fedcore.files.schemas import check
from fedcore.files.strict_yaml import read_yaml
from fedcore.repro.config.short_forms import merge
from fedcore.words import counted

# Keys of a claim; in a row of `each` they replace those of the claim.
KEYS = (
    "id", "quantity", "source", "kind", "printed", "unchecked", "select", "test", "departures",
    "because", "spread", "readings", "counterfactual", "needs",
)  # fmt: skip
REPLACED = ("test", "unchecked", "counterfactual")  # of one key each, so not merged
NUMBERS = ("limit", "margin", "between", "scale")  # read as numbers after filling
CHOSEN = {"mean", "at_most", "at_least", "between"}  # tests with a margin or limit
NUMBER = r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?"
EMPTY: dict[str, Any] = {"tables": {}, "claims": []}


def read(path: Path) -> dict[str, Any]:
    """Return a claims file with its short forms written out; without claims if missing."""
    return written_out(read_yaml(path) if path.is_file() else EMPTY, str(path))


def written_out(claims: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Expand the short forms of a claims file and check it.

    Returns
    -------
    dict
        ``departures``, ``tables``, ``claims`` and ``software``, with the schema's defaults; each
        of an item's ``needs`` is a list of problems or experiments, one of which is enough.
    """
    around = check({**claims, "claims": [], "software": []}, "claims", where)
    cells = _cells(around["tables"], where)
    lists = {
        key: list(_expanded(claims.get(key) or [], f"{where}, {key}", cells, {}, {}))
        for key in ("claims", "software")
    }
    ids = {
        key: [str(item.get("id", f"{key}.{i}")) for i, item in enumerate(items)]
        for key, items in lists.items()
    }
    checked = check({**claims, **lists}, "claims", where, ids)
    for name, departure in checked["departures"].items():
        _check_departure(departure, f"{where}, departure {name}")
    seen: set[str] = set()
    for section in ("claims", "software"):
        for item in checked[section]:
            what = f"{where}, {item['id']}"
            if item["id"] in seen:
                raise ConfigError(f"{what}: two items have this id: rename one")
            seen.add(item["id"])
            if (item["kind"] == "check") != (section == "software"):
                raise ConfigError(f"{what}: items of the kind 'check', and no others, are software")
            for key in ("kind", "printed"):
                of_cell = cells.get(item["id"], item)[key]
                if item[key] != of_cell:
                    raise ConfigError(f"{what}: the {key} is '{of_cell}', as a cell of a table")
            _check_item(item, checked["departures"], what)
            item["needs"] = [[need] if isinstance(need, str) else need for need in item["needs"]]
    missing = [name for name in cells if name not in seen]
    if missing:
        raise ConfigError(
            f"{where}: the printed cell {missing[0]} has no claim: add an item with this id"
        )
    return checked


def _cells(tables: Mapping[str, Any], where: str) -> dict[str, dict[str, str]]:
    """Return what the printed tables say of each of their cells, by the id of its claim."""
    cells = {}
    for name, table in tables.items():
        labels, columns = table["labels"], table["columns"]
        for row, values in table["rows"].items():
            if len(values) != len(columns):
                raise ConfigError(
                    f"{where}, tables.{name}.rows.{row}: {counted(len(values), 'cell')} under "
                    f"{counted(len(columns), 'column')}"
                )
            for column, printed in zip(columns, values, strict=True):
                if printed is not None:
                    cells[f"{name}-{row}-{column}"] = {
                        "source": table["source"],
                        "kind": "cell",
                        "quantity": f"{labels.get(row, row)}: {labels.get(column, column)}",
                        "printed": printed,
                    }
    return cells


def _check_departure(departure: Mapping[str, Any], where: str) -> None:
    ground = departure["ground"]
    if ground == "contradiction" and len(departure["passages"]) < 2:
        raise ConfigError(f"{where}: quote the two passages that exclude each other")
    if ground == "authors' code" and not departure["passages"]:
        raise ConfigError(f"{where}: quote what their code does")
    if ground == "fitted" and not {"tried", "searched"} <= departure.keys():
        raise ConfigError(f"{where}: say how many readings were tried, and on what")


def _check_item(item: Mapping[str, Any], departures: Mapping[str, Any], where: str) -> None:
    if ("unchecked" in item) == bool(item.keys() & {"select", "test"}):
        raise ConfigError(f"{where}: an item needs 'select' and 'test', or else 'unchecked'")
    if "unchecked" in item:
        return
    if not {"select", "test"} <= item.keys():
        raise ConfigError(f"{where}: 'select' and 'test' need each other")
    tried: list[set[str]] = []
    for reading in (item, *item["readings"]):
        names = reading["departures"]
        for name in names:
            require_known(name, departures, f"{where}: unknown departure")
        if set(names) in tried:
            raise ConfigError(f"{where}: two readings have the same departures: name what differs")
        tried.append(set(names))
        if "test" in reading:
            _check_test(reading["test"], where)
            if reading["test"].keys() & CHOSEN and "because" not in item:
                raise ConfigError(f"{where}: 'because' must say where the margin or limit is from")


def _check_test(test: Mapping[str, Any], where: str) -> None:
    ((kind, given),) = test.items()
    if kind == "between" and given[0] > given[1]:
        raise ConfigError(f"{where}: between {given} is empty; swap the two")
    if kind not in ("one_run", "mean", "equals"):
        return
    printed = given["of"] if kind == "mean" else given
    if isinstance(printed, str) and not re.fullmatch(NUMBER, printed):
        raise ConfigError(f"{where}: '{printed}' is no number: write it as in -1.80e-06")
    if kind == "mean" and float(printed) == 0 and not given.get("absolute"):
        raise ConfigError(f"{where}: no fraction of 0 is a margin: add 'absolute: true'")


def _require_list(part: Any, where: str) -> None:
    if not isinstance(part, list):
        raise ConfigError(f"{where}: {reprlib.repr(part)} is no list of items or rows")
    for one in part:
        if not isinstance(one, Mapping):
            raise ConfigError(f"{where}: {reprlib.repr(one)} is no item or row, which has keys")


def _expanded(
    entries: Any,
    where: str,
    cells: Mapping[str, Mapping[str, str]],
    common: Mapping[str, Any],
    fillings: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """Yield every item; for a group, its ``items`` once for every row of ``each``."""
    _require_list(entries, where)
    for entry in entries:
        _require_list(entry.get("each", []), where)
        own = {key: value for key, value in entry.items() if key not in ("each", "items")}
        texts = str([common, entry])
        for row in entry.get("each", [{}]):
            # A key that nothing names is a row's remark, unless it looks like a mistyped one.
            for key in sorted(row.keys() - set(KEYS)):
                if f"{{{key}}}" not in texts and get_close_matches(key, KEYS, cutoff=0.8):
                    raise ConfigError(
                        f"{where}: no text names '{key}' of a row of each: {nearest(key, KEYS)}"
                    )
            item = dict(common)
            for laid in (own, {key: value for key, value in row.items() if key in KEYS}):
                item = merge(item, laid)
                item |= {key: laid[key] for key in REPLACED if key in laid}
                gone = ["select", "test"] * ("unchecked" in laid) + ["unchecked"] * ("test" in laid)
                item = {key: value for key, value in item.items() if key not in gone or key in laid}
            known = {**fillings, **row}
            if "items" in entry:
                yield from _expanded(entry["items"], where, cells, item, known)
                continue
            name = _filled(item.get("id", ""), known, where)
            item = {**cells.get(str(name), {}), **item}
            what = f"{where}, {name}" if name else where
            if "printed" in item:
                known["printed"] = _filled(item["printed"], known, what)
            item = _filled(item, known, what)
            yield _with_selections(item)


def _with_selections(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item whose readings and counterfactual select all that it selects, and more."""
    selected, readings = item.get("select"), item.get("readings")
    parts = list(readings) if isinstance(readings, list) else []
    for part in (*parts, item.get("counterfactual")):
        own = part.get("select") if isinstance(part, dict) else None
        if isinstance(selected, Mapping) and isinstance(own, Mapping):
            part["select"] = merge(selected, own)
    return item


def _filled(value: Any, known: Mapping[str, Any], where: str, *, number: bool = False) -> Any:
    """Replace every ``{name}``; a text that is only ``{name}`` takes the value with its type."""
    if isinstance(value, Mapping):
        return {
            key: _filled(item, known, where, number=key in NUMBERS) for key, item in value.items()
        }
    if isinstance(value, list):
        return [_filled(item, known, where, number=number) for item in value]
    if not isinstance(value, str):
        return value
    for name in re.findall(r"{(\w+)}", value):
        require_known(name, known, f"{where}: '{value}' names")
    alone = re.fullmatch(r"{(\w+)}", value)
    if alone:
        found = known[alone[1]]
        if number and isinstance(found, str) and re.fullmatch(NUMBER, found):
            return float(found)  # YAML takes 1e-6 for text
        return found
    return re.sub(r"{(\w+)}", lambda name: _word(known[name[1]], name[1], where), value)


def _word(value: Any, name: str, where: str) -> str:
    if value is None or isinstance(value, list | Mapping):
        raise ConfigError(
            f"{where}: a text names '{name}', which is {value}: give a word or number"
        )
    return str(value)
