"""Names of the clients' columns: the same, in the same order, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fedcore.errors import InputError, nearest
from fedcore.words import client


def column_names(client: Any) -> list[Any] | None:
    """Return the column names of a data frame; None for what has none."""
    # A table of Arrow has its columns themselves under `columns`.
    columns = getattr(client, "column_names", getattr(client, "columns", None))
    return None if columns is None else list(columns)


def feature_names(clients: Sequence[Any]) -> list[Any] | None:
    """Return the column names of all clients, in order; None if no client has names.

    Any object with ``.columns`` counts as a data frame. Columns are not reordered: only the owner
    of the data knows whether columns of equal name have equal meaning.

    Raises
    ------
    InputError
        When names or their order differ, or some clients have none.
    """
    names = [column_names(frame) for frame in clients]
    first = names[0]
    for i, own in enumerate(names):
        require_names(own, first, client(i), client(0))
    return first


def require_names(
    own: Sequence[Any] | None, wanted: Sequence[Any] | None, who: str, whose: str
) -> None:
    """Require the same column names in the same order.

    Raises
    ------
    InputError
        When they differ; the message names the first such column.
    """
    if own == wanted:
        return
    if own is None or wanted is None:
        without, having = (who, whose) if own is None else (whose, who)
        raise InputError(
            f"{without} has no column names and {having} has: give data frames to all or to none"
        )
    if len(own) != len(wanted):
        for name in (name for name in wanted if name not in own):
            hint = nearest(str(name), map(str, own))
            raise InputError(
                f"{who} has no column {name!r}, which {whose} has: {hint}", column=name
            )
        for name in (name for name in own if name not in wanted):
            raise InputError(f"{who} has a column {name!r}, which {whose} has not", column=name)
    at = next(j for j, (a, b) in enumerate(zip(own, wanted, strict=True)) if a != b)
    same = sorted(map(str, own)) == sorted(map(str, wanted))
    raise InputError(
        f"column {at} of {who} is {own[at]!r} and of {whose} {wanted[at]!r}: "
        + ("bring the columns into one order" if same else "give all the same columns")
    )
