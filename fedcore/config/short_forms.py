"""Expand the short forms of a paper's file.

The short forms are problems that share keys (``each``), grids of variants, groups of published
values (``items`` and ``each``), and the sizes of the quick run (``quick``).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import product
from typing import Any

from fedcore.config.strict_yaml import parse_yaml
from fedcore.errors import ConfigError, nearest, require_known

# Keys of a published value; in a row of `each` they replace those of the value.
VALUE = (
    "id", "quantity", "source", "kind", "printed", "select", "statistic", "accept", "because",
    "provided", "otherwise", "needs",
)  # fmt: skip


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the values of `changes`; mappings are merged, other values replaced."""
    merged = copy.deepcopy(dict(base))
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def written_out(paper: Mapping[str, Any], where: str, *, quick: bool) -> dict[str, Any]:
    """Return a paper's file with its short forms expanded.

    Parameters
    ----------
    paper : mapping
        The file, checked against ``paper.schema.yaml``, which describes the forms.
    where : str
        What error messages call the file.
    quick : bool
        Merge every ``quick`` into the mapping that holds it, and leave out parts with
        ``quick: false``; otherwise drop the key ``quick``.

    Raises
    ------
    ConfigError
        When two problems or variants get one name, a ``{name}`` in a published value has no
        value in its rows of ``each``, or a key of a row looks mistyped.
    """
    problems = _named(_problems(paper["problems"]), f"{where}: two problems are")
    skipped = [name for name, spec in problems.items() if quick and spec.get("quick") is False]
    experiments = copy.deepcopy(paper["experiments"])
    for name, experiment in experiments.items():
        for run in experiment["runs"]:
            if isinstance(run.get("variants"), list):
                grid = _grid(run["variants"])
                run["variants"] = _named(grid, f"{where}, experiment {name}: two variants are")
    experiments = _sized(experiments, quick)
    for experiment in experiments.values():
        runs = experiment["runs"] if isinstance(experiment["runs"], list) else []
        for part in (experiment, *runs):  # `quick` may have put anything there
            if isinstance(part, dict) and isinstance(part.get("problems"), list):
                part["problems"] = [name for name in part["problems"] if name not in skipped]
    return {
        **paper,
        "problems": {n: _sized(s, quick and n not in skipped) for n, s in problems.items()},
        "experiments": experiments,
        "published": list(_published(paper["published"], f"{where}, published", {}, {})),
    }


def require_written_out(part: Any, where: str) -> None:
    """Refuse short forms in problems and experiments, such as one within another or in overrides.

    Raises
    ------
    ConfigError
        With the place of the first.
    """
    for key, value in part.items() if isinstance(part, Mapping) else enumerate(part):
        if key in ("each", "quick") or (key == "variants" and isinstance(value, list)):
            form = "a grid" if key == "variants" else f"'{key}'"
            raise ConfigError(
                f"{where}: {form} cannot stand here, be it in another short form or in overrides; "
                "write out what it stands for"
            )
        if isinstance(value, Mapping | list):
            require_written_out(value, f"{where}.{key}")


def _named(pairs: Iterable[tuple[str, dict[str, Any]]], twice: str) -> dict[str, dict[str, Any]]:
    named: dict[str, dict[str, Any]] = {}
    for name, value in pairs:
        if name in named:
            raise ConfigError(f"{twice} called '{name}'; rename one")
        named[name] = value
    return named


def _problems(problems: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every problem; for a problem with ``each``, the problems that ``each`` names."""
    for name, spec in problems.items():
        common = {key: value for key, value in spec.items() if key != "each"}
        for member, changes in spec.get("each", {name: {}}).items():
            yield member, merge(common, changes)


def _grid(axes: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield every combination of one variant from each axis; the last axis changes fastest."""
    for chosen in product(*(axis.items() for axis in axes)):
        changes: dict[str, Any] = {}
        for _, change in chosen:
            changes = merge(changes, change)
        if any(change.get("quick") is False for _, change in chosen):
            changes["quick"] = False
        yield "-".join(name for name, _ in chosen), changes


def _sized(part: Any, quick: bool) -> Any:
    """Return a part of the file with every ``quick`` merged into its mapping, or dropped."""

    def stays(value: Any) -> bool:
        return not (quick and isinstance(value, Mapping) and value.get("quick") is False)

    if isinstance(part, list):
        return [_sized(item, quick) for item in part if stays(item)]
    if not isinstance(part, Mapping):
        return part
    changes = part.get("quick", {}) if quick else {}
    if not isinstance(changes, Mapping):  # for the schema to refuse
        return dict(part)
    whole = merge({key: value for key, value in part.items() if key != "quick"}, changes)
    return {key: _sized(value, quick) for key, value in whole.items() if stays(value)}


def _published(
    entries: Iterable[Mapping[str, Any]],
    where: str,
    common: Mapping[str, Any],
    fillings: Mapping[str, Any],
) -> Iterator[dict[str, Any]]:
    """Yield every published value; for a group, its ``items`` once for every row of ``each``."""
    for entry in entries:
        own = {key: value for key, value in entry.items() if key not in ("each", "items")}
        texts = str([common, entry])
        for row in entry.get("each", [{}]):
            # A key that nothing names is a row's remark, unless it looks like a mistyped one.
            for key in sorted(row.keys() - set(VALUE)):
                if f"{{{key}}}" not in texts and get_close_matches(key, VALUE, cutoff=0.8):
                    raise ConfigError(
                        f"{where}: no text names '{key}' of a row of each: {nearest(key, VALUE)}"
                    )
            value = dict(common)
            for laid in (own, {key: item for key, item in row.items() if key in VALUE}):
                value = merge(value, laid)
                if "accept" in laid:  # it has one key only, so it is replaced and not merged
                    value["accept"] = laid["accept"]
            known = {**fillings, **row}
            if "items" in entry:
                yield from _published(entry["items"], where, value, known)
                continue
            if "printed" in value:
                known["printed"] = _filled(value["printed"], known, where)
            value = _filled(value, known, where)
            other = value.get("otherwise", {})
            if "select" in other:
                other["select"] = merge(value.get("select", {}), other["select"])
            yield value


def _filled(value: Any, known: Mapping[str, Any], where: str, *, number: bool = False) -> Any:
    """Replace every ``{name}``; a text that is only ``{name}`` takes the value with its type.

    Under ``accept`` (`number`) such a value is read as a number.
    """
    if isinstance(value, Mapping):
        return {
            key: _filled(item, known, where, number=number or key == "accept")
            for key, item in value.items()
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
