"""Claims files: what a paper prints, and how each item is checked.

``config/claims/<paper>.yaml`` has the printed tables, the claims with their tests, the departures
from the paper's text, and the checks of this software. Its short forms are groups: the keys beside
``items`` are defaults of each item, and ``each`` repeats an item or group for each of its rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from fedcore.config.schemas import check
from fedcore.config.short_forms import merge
from fedcore.config.strict_yaml import parse_yaml, read_yaml
from fedcore.errors import ConfigError, nearest, require_known

# Keys of a claim; in a row of `each` they replace those of the claim.
KEYS = (
    "id", "quantity", "source", "kind", "printed", "unchecked", "select", "test", "departures",
    "because", "spread", "readings", "counterfactual", "needs",
)  # fmt: skip
REPLACED = ("test", "unchecked", "counterfactual")  # of one key each, so not merged
NUMBERS = ("limit", "margin", "between", "scale")  # read as numbers after filling
EMPTY: dict[str, Any] = {"departures": {}, "tables": {}, "claims": [], "software": []}


def read(path: Path) -> dict[str, Any]:
    """Return a claims file with its short forms written out; one without claims if it is missing.

    Raises
    ------
    ConfigError
        As `written_out`.
    """
    return written_out(read_yaml(path), str(path)) if path.is_file() else dict(EMPTY)


def written_out(claims: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Expand the short forms of a claims file and check it.

    Parameters
    ----------
    claims : mapping
    where : str
        What error messages call the file.

    Returns
    -------
    dict
        ``departures``, ``tables``, ``claims`` and ``software``, with the schema's defaults.

    Raises
    ------
    ConfigError
        When an item is malformed, two have one id, a printed cell has no claim, a departure is not
        declared or has not what its ground needs, or a row of ``each`` looks mistyped.
    """
    tables = claims.get("tables")
    cells = _cells(tables if isinstance(tables, Mapping) else {}, where)
    lists = {
        key: list(_expanded(claims.get(key) or [], f"{where}, {key}", cells, {}, {}))
        for key in ("claims", "software")
    }
    checked = check({**claims, **lists}, "claims", where)
    for name, departure in checked["departures"].items():
        _check_departure(departure, f"{where}, departure {name}")
    seen: set[str] = set()
    for item in (*checked["claims"], *checked["software"]):
        what = f"{where}, {item['id']}"
        if item["id"] in seen:
            raise ConfigError(f"{what}: two items have this id: rename one")
        seen.add(item["id"])
        _check_item(item, checked["departures"], what)
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
        labels = table.get("labels") or {}
        for row, values in (table.get("rows") or {}).items():
            columns = table.get("columns") or []
            if len(values) != len(columns):
                raise ConfigError(
                    f"{where}, tables.{name}.rows.{row}: {len(values)} cells under "
                    f"{len(columns)} columns"
                )
            for column, printed in zip(columns, values, strict=True):
                if printed is not None:
                    cells[f"{name}-{row}-{column}"] = {
                        "source": table.get("source"),
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
    names = [*item["departures"], *(n for r in item["readings"] for n in r["departures"])]
    for name in names:
        require_known(name, departures, f"{where}: unknown departure")
    if "unchecked" in item:
        return
    for test in (item["test"], *(r["test"] for r in item["readings"] if "test" in r)):
        low, high = test.get("between", (0, 0))
        if low > high:
            raise ConfigError(f"{where}: between [{low}, {high}] is empty; swap the two")
        if test.keys() & {"mean", "at_most", "at_least", "between"} and "because" not in item:
            raise ConfigError(f"{where}: 'because' must say where the margin or limit comes from")


def _expanded(
    entries: Iterable[Mapping[str, Any]],
    where: str,
    cells: Mapping[str, Mapping[str, str]],
    common: Mapping[str, Any],
    fillings: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """Yield every item; for a group, its ``items`` once for every row of ``each``."""
    for entry in entries:
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
                if "unchecked" in laid:
                    item = {k: v for k, v in item.items() if k not in ("select", "test")}
            known = {**fillings, **row}
            if "items" in entry:
                yield from _expanded(entry["items"], where, cells, item, known)
                continue
            name = _filled(item.get("id", ""), known, where)
            item = {**cells.get(name, {}), **item}
            if "printed" in item:
                known["printed"] = _filled(item["printed"], known, where)
            item = _filled(item, known, where)
            for reading in item.get("readings", []):
                if isinstance(reading, dict) and "select" in reading:
                    reading["select"] = merge(item.get("select", {}), reading["select"])
            yield item


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
        return parse_yaml(found, where) if number and isinstance(found, str) else found
    return re.sub(r"{(\w+)}", lambda name: str(known[name[1]]), value)
