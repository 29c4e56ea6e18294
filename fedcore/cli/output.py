"""What commands print: text for people, or JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

import click

from fedcore.words import visible

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def emit(value: Any, text: Callable[[], str], as_json: bool) -> None:
    """Print `value` as JSON if asked for, otherwise the text."""
    say(json.dumps(plain(value), indent=1, ensure_ascii=False) if as_json else text())


def say(text: Any, *, err: bool = False) -> None:
    """Print a line, on standard error with `err`; no control character reaches the terminal."""
    click.echo(visible(str(text)), err=err)


def plain(value: Any) -> Any:
    """Return a value in JSON's types: NumPy's numbers as Python's, NaN and infinity as null."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | bool | None) else str(value)
