"""Columns of data frames with a name each, and no name twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from fedcore.errors import InputError
from fedcore.problems.names import column_names
from fedcore.words import client


def require_distinct(matrix: Any, who: str) -> None:
    """Require that no two columns of a data frame have one name; other matrices have no names.

    Raises
    ------
    InputError
        With the name of the first such column.
    """
    columns = column_names(matrix) or []
    for name, times in Counter(columns).items():
        if times > 1:
            at = [i for i, known in enumerate(columns) if known == name]
            raise InputError(
                f"{who} has {times} columns named {name!r}, at positions "
                f"{', '.join(map(str, at))}: rename or drop all but one"
            )


def require_distinct_each(clients: Iterable[Any]) -> None:
    """Require it of the frames of all clients."""
    for i, matrix in enumerate(clients):
        require_distinct(matrix, client(i))
