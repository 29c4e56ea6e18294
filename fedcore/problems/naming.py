"""Names of clients and columns in errors, which count both."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from fedcore.errors import InputError


@contextmanager
def named(
    clients: Sequence[str] | None,
    columns: Sequence[object] | None = None,
    rows: Sequence[np.ndarray] | None = None,
) -> Iterator[None]:
    """Name clients and columns in the errors that are raised inside.

    Parameters
    ----------
    clients : sequence of str or None
        ``client 0`` becomes ``client 0 ('north.csv')``.
    columns : sequence or None
        ``feature 0`` becomes ``column 'age'``.
    rows : sequence of ndarray of int or None
        Of clients that were groups of rows of one matrix: ``at row 2`` becomes the row in it.

    Raises
    ------
    InputError
        The one that was raised inside, with the names.
    """
    try:
        yield
    except InputError as error:
        said = _with_names(str(error), clients or (), columns or (), rows or ())
        if said == str(error):
            raise
        raise type(error)(said) from error


def _with_names(
    sentence: str, clients: Sequence[str], columns: Sequence[object], rows: Sequence[np.ndarray]
) -> str:
    labels, names = dict(enumerate(clients)), dict(enumerate(columns))

    def client(found: re.Match[str]) -> str:
        label = labels.get(int(found[1]))
        return found[0] if label is None else f"{found[0]} ({label!r})"

    def feature(found: re.Match[str]) -> str:
        name = names.get(int(found[1]))
        return found[0] if name is None else f"column {name!r}"

    def row(found: re.Match[str]) -> str:
        own, at = dict(enumerate(rows)).get(int(found[2]), ()), int(found[3])
        return f"{found[1]}{own[at] if at < len(own) else at}"

    sentence = re.sub(r"(\bclient (\d+) ha\w+ \S+ at row )(\d+)\b", row, sentence)
    sentence = re.sub(r"\bclient (\d+)\b", client, sentence)
    return re.sub(r"\bfeature (\d+)\b", feature, sentence)
