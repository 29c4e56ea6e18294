"""Merge the configuration files as Snakemake does, so that later files override earlier ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fedcore.files.strict_yaml import read_yaml
from fedcore.repro.config.papers import CHECKOUT
from fedcore.repro.config.short_forms import merge

CONFIG = Path("config/config.yaml")
REPEATS = "repeats.yaml"  # beside it; `fedcore decide` writes it


def files(checkout: Path = CHECKOUT) -> list[Path]:
    """Return the working directory's configuration files; if there are none, the checkout's."""
    config = CONFIG if CONFIG.is_file() else checkout / CONFIG
    repeats = config.with_name(REPEATS)
    return [config, repeats] if repeats.is_file() else [config]


def read_configuration(changes: Path | None) -> dict[str, Any]:
    """Return the configuration of a run, with the values in the file `changes` merged in.

    If a file cannot be read, the error is that of `read_yaml`.
    """
    found: dict[str, Any] = {}
    for path in files():
        found = merge(found, read_yaml(path))
    return merge(found, read_yaml(changes)) if changes is not None else found
