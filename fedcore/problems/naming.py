"""Names of clients and columns in errors, which count both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fedcore.errors import InputError


@contextmanager
def named(clients: Sequence[str] | None, columns: Sequence[object] | None = None) -> Iterator[None]:
    """Name clients and columns in the errors that are raised inside.

    Parameters
    ----------
    clients : sequence of str or None
        ``client 0`` becomes ``client 0 ('north.csv')``.
    columns : sequence or None
        ``feature 0`` becomes ``column 'age'``.

    Raises
    ------
    InputError
        The one that was raised inside, with the names.
    """
    try:
        yield
    except InputError as error:
        said = _with_names(str(error), clients or (), columns or ())
        if said == str(error):
            raise
        raise type(error)(said) from error


def _with_names(sentence: str, clients: Sequence[str], columns: Sequence[object]) -> str:
    labels, names = dict(enumerate(clients)), dict(enumerate(columns))

    def client(found: re.Match[str]) -> str:
        label = labels.get(int(found[1]))
        return found[0] if label is None else f"{found[0]} ({label!r})"

    def feature(found: re.Match[str]) -> str:
        name = names.get(int(found[1]))
        return found[0] if name is None else f"column {name!r}"

    return re.sub(r"\bfeature (\d+)\b", feature, re.sub(r"\bclient (\d+)\b", client, sentence))
