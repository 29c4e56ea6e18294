"""Print the results of commands, as text for people or as JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import click

from fedcore.words import visible

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def emit(value: Any, text: Callable[[], str], as_json: bool) -> None:
    """Print `value` as JSON if `as_json` is true, and otherwise print the result of `text`."""
    say(json.dumps(plain(value), indent=1, ensure_ascii=False) if as_json else text())


def say(text: Any, *, err: bool = False) -> None:
    """Print a line with control characters escaped, to standard error if `err` is true."""
    click.echo(visible(str(text)), err=err)


def plain(value: Any) -> Any:
    """Convert a value to JSON's types, such as NumPy's numbers to Python's and NaN to null."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
