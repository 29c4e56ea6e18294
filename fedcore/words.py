"""Phrases for messages that several modules print."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

EXACT = " (exact, not released)"  # behind what a private run shows to the owner of its data
# A terminal obeys or hides these, or cannot show them; ends of lines and tabs are left.
UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]"
)


def counted(number: Any, noun: str, plural: str | None = None) -> str:
    """Return a number and its noun, as in ``1 round``; `plural` is for irregular nouns."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def few(names: Sequence[str], most: int, noun: str, between: str = " and ") -> str:
    """Return the names as text, or only their number if there are more than `most`.

    >>> few(["a", "b"], 2, "commit"), few(["a", "b", "c"], 2, "commit")
    ('a and b', '3 commits')
    """
    return between.join(names) if len(names) <= most else counted(len(names), noun)


def visible(text: str) -> str:
    r"""Return a text whose control characters are escaped as in JSON.

    >>> print(visible("age\x1b[2J"))
    age\u001b[2J
    """
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def in_line(text: str) -> str:
    r"""Escape control characters in a text as `visible` does, and also tabs and line breaks.

    >>> print(in_line("age\nin years"))
    age\nin years
    """
    return visible(text).replace("\t", r"\t").replace("\n", r"\n")


_NAMES: ContextVar[tuple[Sequence[Any], ...]] = ContextVar("names", default=((), (), ()))


@contextmanager
def named(
    clients: Sequence[str] | None,
    columns: Sequence[object] | None = None,
    rows: Sequence[Any] | None = None,
) -> Iterator[None]:
    """Inside a ``with`` block, let messages name clients, features and rows as the user does.

    Parameters
    ----------
    clients : sequence of str or None
        Names of the clients.
    columns : sequence or None
        Names of the features.
    rows : sequence of ndarray of int or None
        Row numbers in the user's matrix, one array for each client; None if no matrix was split
        into clients.
    """
    token = _NAMES.set((clients or (), columns or (), rows or ()))
    try:
        yield
    finally:
        _NAMES.reset(token)


class ClientName(str):
    """Name of a client in messages, with the client's number."""

    number: int


def client(i: int) -> ClientName:
    """Return a client's name for messages, such as ``client 0`` or ``client 0 ('north.csv')``."""
    names = _NAMES.get()[0]
    found = ClientName(f"client {i} ({names[i]!r})" if i < len(names) else f"client {i}")
    found.number = i
    return found


def feature(i: int) -> str:
    """Return a feature's name for messages, such as ``feature 3`` or ``column 'age'``."""
    names = _NAMES.get()[1]
    return f"column {names[i]!r}" if i < len(names) else f"feature {i}"


def row(who: str, i: int) -> int:
    """Return the number that a client's row `i` has in the user's matrix; `i` if none was split."""
    every = _NAMES.get()[2]
    if isinstance(who, ClientName) and who.number < len(every):
        return int(every[who.number][i])
    return int(i)
