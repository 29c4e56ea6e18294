"""Words of messages that several layers print."""

from __future__ import annotations

import re
from typing import Any

# A terminal obeys or hides these, or cannot show them; ends of lines and tabs are left.
UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def counted(number: Any, noun: str, plural: str | None = None) -> str:
    """Return a number and its noun, as in ``1 round``; `plural` is for nouns that take no s."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def visible(text: str) -> str:
    r"""Return a text with control characters as escapes, which JSON reads, too.

    >>> print(visible("age\x1b[2J"))
    age\u001b[2J
    """
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
