"""Expand the short forms in a paper's ``experiments.yaml``.

One short form is the key ``each``, for problems that share keys. The other short form is a list
under ``variants``, which stands for a grid: all combinations of one variant from each entry (axis)
of the list.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Any

from fedcore.errors import ConfigError


def merge(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of `base`, updated with `changes`, in which nested mappings are merged."""
    merged = copy.deepcopy(dict(base))
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(merged.get(key), Mapping):
            merged[key] = merge(merged[key], value)
        else:
            merged[key] = copy.deepcopy(value)
    return merged


def written_out(paper: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the content of a paper's ``experiments.yaml`` with all short forms expanded."""
    problems = _named(_problems(paper["problems"]), f"{where}: two problems are")
    experiments = copy.deepcopy(paper["experiments"])
    for name, experiment in experiments.items():
        for run in experiment["runs"]:
            if isinstance(run.get("variants"), list):
                grid = _grid(run["variants"])
                run["variants"] = _named(grid, f"{where}, experiment {name}: two variants are")
    return {**paper, "problems": problems, "experiments": experiments}


def require_written_out(part: Any, where: str) -> None:
    """Raise `ConfigError` if a problem or experiment still contains a short form."""
    for key, value in part.items() if isinstance(part, Mapping) else enumerate(part):
        if key == "each" or (key == "variants" and isinstance(value, list)):
            form = "a grid" if key == "variants" else f"'{key}'"
            raise ConfigError(
                f"{where}: {form} is not allowed in another short form or in overrides: "
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
    """Yield every problem with its name, and expand problems that have the key ``each``."""
    for name, spec in problems.items():
        common = {key: value for key, value in spec.items() if key != "each"}
        for member, changes in spec.get("each", {name: {}}).items():
            yield member, merge(common, changes)


def _grid(axes: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all combinations of one variant from each axis; the last axis varies fastest."""
    for chosen in product(*(axis.items() for axis in axes)):
        changes: dict[str, Any] = {}
        for _, change in chosen:
            changes = merge(changes, change)
        yield "-".join(name for name, _ in chosen), changes
