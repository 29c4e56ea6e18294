"""Merge the configuration files as Snakemake does, so that later files override earlier ones."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fedcore.cli.options import parsed
from fedcore.files.strict_yaml import read_yaml
from fedcore.repro.config.papers import CHECKOUT
from fedcore.repro.config.short_forms import merge

CONFIG = Path("config/config.yaml")
TYPED = ("overrides", "repeats")  # keys with nested numbers; other nested values are texts
REPEATS = "repeats.yaml"  # beside config.yaml; `fedcore decide` writes it


def files(checkout: Path = CHECKOUT) -> list[Path]:
    """Return the working directory's configuration files; if there are none, the checkout's."""
    config = CONFIG if CONFIG.is_file() else checkout / CONFIG
    repeats = config.with_name(REPEATS)
    return [config, repeats] if repeats.is_file() else [config]


def typed(config: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return `config`, with texts from the command line converted to numbers and truth values.

    `given` has the values of Snakemake's option --config, which reads nested values as texts.
    """
    return {
        **config,
        **{key: _typed(config[key], given[key]) for key in TYPED if key in config and key in given},
    }


def _typed(value: Any, given: Any) -> Any:
    """Return `value`; texts that are also in `given` become numbers or truth values if possible."""
    if isinstance(value, Mapping) and isinstance(given, Mapping):
        return {key: _typed(item, given.get(key)) for key, item in value.items()}
    if value != given:
        return value
    if isinstance(value, list):
        return [_typed(item, item) for item in value]
    found = parsed(value) if isinstance(value, str) else value
    return found if isinstance(found, bool | int | float) and math.isfinite(found) else value


def read_configuration(changes: Path | None) -> dict[str, Any]:
    """Return the configuration of a run, with the values in the file `changes` merged in.

    If a file cannot be read, the error comes from `read_yaml`.
    """
    found: dict[str, Any] = {}
    for path in files():
        found = merge(found, read_yaml(path))
    return merge(found, read_yaml(changes)) if changes is not None else found
