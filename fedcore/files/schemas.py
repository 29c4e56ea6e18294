"""Find the JSON schemas of ``workflow/schemas``, and check configuration files against them."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

from fedcore.errors import ConfigError, nearest
from fedcore.files.strict_yaml import read_yaml

FORMATS = FormatChecker(formats=())
# JSON Schema takes 2.0 for an integer, which `range` refuses; YAML has NaN, which nothing can use.
TYPES = Draft202012Validator.TYPE_CHECKER.redefine_many(
    {
        "integer": lambda _, value: isinstance(value, int) and not isinstance(value, bool),
        "number": lambda _, value: (
            isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        ),
    }
)
Validator = extend(Draft202012Validator, type_checker=TYPES)


@FORMATS.checks("address", raises=ValueError)
def _is_address(text: Any) -> bool:
    """Return whether a text is an http or https URL, or raise ValueError if it cannot be parsed."""
    if not isinstance(text, str):
        return True  # the type check reports it
    if not re.fullmatch("[!-~]+", text):  # an address has no blanks and is ASCII
        return False
    parts = urlsplit(text)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0


def check(
    config: Mapping[str, Any], schema: str, what: str, names: Mapping[str, Sequence[str]] = {}
) -> dict[str, Any]:
    """Check a configuration against a schema, and return it with the schema's default values.

    Parameters
    ----------
    config : mapping
    schema : str
        Name of the schema, as in its file's name ``<schema>.schema.yaml``.
    what : str
        What error messages call the configuration, such as the name of its file.
    names : mapping of str to sequence of str
        Mapping from the key of a list to the names of the list's items. Messages use these names
        instead of item numbers.
    """
    rules = rules_of(schema)
    if not isinstance(config, Mapping):
        raise ConfigError(f"{what} is a {type(config).__name__}, not a mapping of keys")
    for place, wrong in _unfit(config, ()):
        raise ConfigError(f"{what}, {_place(place)}: {wrong}")
    filled = copy.deepcopy(dict(config))
    _fill_defaults(filled, rules, rules)
    error = best_match(Validator(rules, format_checker=FORMATS).iter_errors(filled))
    if error is None:
        return filled
    message = error.message
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        patterns = error.schema.get("patternProperties", {})
        unknown = next(
            key
            for key in sorted(set(error.instance) - set(known))
            if not any(re.search(pattern, key) for pattern in patterns)
        )
        message = f"unknown key '{unknown}': {nearest(unknown, known)}"
    elif error.validator == "format":
        message = (
            f"{error.instance!r} is not an address: give one with https:// or http://, in ASCII "
            "and without blanks (%XX stands for other letters)"
        )
    elif error.validator == "type" and error.validator_value == "boolean":
        message = f"{error.instance!r} is neither true nor false (in --config: True or False)"
    raise ConfigError(f"{what}, {_place(error.absolute_path, names)}: {message}")


def _place(path: Iterable[Any], names: Mapping[str, Sequence[str]] = {}) -> str:
    path = list(path)
    if len(path) > 1 and path[0] in names:
        path[:2] = [names[path[0]][path[1]]]
    return ".".join(str(part) for part in path) or "top level"


def _unfit(value: Any, at: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Yield the place and the fault of each value that no configuration file may contain."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            if not isinstance(key, str):
                yield at, f"the key {key!r} is not text; put it in quotes"
            elif not key.isprintable():
                yield at, f"the key {key!r} holds control characters"
            else:
                yield from _unfit(item, (*at, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _unfit(item, (*at, i))
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield at, f"{value} is not a finite number"
    elif not (value is None or isinstance(value, int | str)):
        yield at, f"{value!r} is a {type(value).__name__}; put it in quotes"


@cache
def rules_of(name: str) -> dict[str, Any]:
    """Return the schema ``<name>.schema.yaml``, which is cached and must not be changed."""
    file = f"{name}.schema.yaml"
    return read_yaml(find_shipped(f"schemas/{file}", f"workflow/schemas/{file}"))


def _fill_defaults(value: Any, rules: Mapping[str, Any], root: Mapping[str, Any]) -> None:
    """Insert the schema's defaults for absent keys at every level, and follow each ``$ref``."""
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


def find_shipped(in_wheel: str, in_checkout: str) -> Path:
    """Return the path of a file in the installed package, or beside the package in a checkout."""
    spec = find_spec(__name__.partition(".")[0])
    assert spec is not None and spec.origin is not None
    package = Path(spec.origin).resolve().parent
    candidates = (package / in_wheel, package.parent / in_checkout)
    for path in candidates:
        if path.is_file():
            return path
    raise ConfigError(f"no file at {' or '.join(map(str, candidates))}: install fedcore again")
