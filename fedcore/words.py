"""Words of messages that several layers print."""

from __future__ import annotations

from typing import Any


def counted(number: Any, noun: str, plural: str | None = None) -> str:
    """Return a number and its noun, as in ``1 round``; `plural` is for nouns that take no s."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
