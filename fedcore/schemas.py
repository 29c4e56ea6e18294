"""Checking of configuration files against the JSON schemas of ``workflow/schemas``."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import best_match

from fedcore.errors import ConfigError, nearest

FOLDERS = (
    Path(__file__).parent / "schemas",  # in an installed wheel
    Path(__file__).parents[1] / "workflow" / "schemas",  # in a checkout
)

FORMATS = FormatChecker(formats=())


@FORMATS.checks("address", raises=ValueError)
def _is_address(text: Any) -> bool:
    """Whether a text is an address that can be downloaded from; raises where it has no parts."""
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0


def check(config: Mapping[str, Any], schema: str, what: str) -> dict[str, Any]:
    """Return `config` with the schema's defaults filled in.

    Parameters
    ----------
    config : mapping
    schema : str
        Name of a file ``<schema>.schema.yaml``.
    what : str
        What the error message calls the checked object, such as the name of its file.

    Raises
    ------
    ConfigError
        One sentence: where, what is wrong, and for an unknown key the nearest known one.
    """
    rules = _schema(schema)
    filled = copy.deepcopy(dict(config))
    _fill_defaults(filled, rules, rules)
    error = best_match(Draft202012Validator(rules, format_checker=FORMATS).iter_errors(filled))
    if error is None:
        return filled
    where = ".".join(str(part) for part in error.absolute_path) or "top level"
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        unknown = sorted(set(error.instance) - set(known))
        raise ConfigError(
            f"{what}, {where}: unknown key '{unknown[0]}': {nearest(unknown[0], known)}"
        )
    raise ConfigError(f"{what}, {where}: {error.message}")


@cache
def _schema(name: str) -> dict[str, Any]:
    for folder in FOLDERS:
        path = folder / f"{name}.schema.yaml"
        if path.is_file():
            return yaml.safe_load(path.read_text(encoding="utf-8"))
    raise ConfigError(f"schema {name} not found in {' or '.join(map(str, FOLDERS))}")


def _fill_defaults(value: Any, rules: Mapping[str, Any], root: Mapping[str, Any]) -> None:
    """Insert defaults of absent keys, level by level, following ``$ref`` into ``$defs``."""
    if "$ref" in rules:
        rules = root["$defs"][rules["$ref"].rpartition("/")[2]]
    if isinstance(value, dict):
        for key, inner in rules.get("properties", {}).items():
            if key not in value and "default" in inner:
                value[key] = copy.deepcopy(inner["default"])
        for key, item in value.items():
            inner = rules.get("properties", {}).get(key, rules.get("additionalProperties"))
            if isinstance(inner, Mapping):
                _fill_defaults(item, inner, root)
    elif isinstance(value, list) and isinstance(rules.get("items"), Mapping):
        for item in value:
            _fill_defaults(item, rules["items"], root)
