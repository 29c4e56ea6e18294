"""Words of messages that several layers print."""

from __future__ import annotations

from typing import Any


def counted(number: Any, noun: str) -> str:
    """Return a number and its noun, as in ``1 round`` and ``2 rounds``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
