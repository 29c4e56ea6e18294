"""Checks of the published values in a paper's configuration file, under ``published``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fedcore.config.schemas import check
from fedcore.errors import ConfigError


def checked(published: Iterable[Mapping[str, Any]], what: str) -> list[dict[str, Any]]:
    """Return the items of ``published`` with the schema's defaults filled in.

    Parameters
    ----------
    published : iterable of mapping
    what : str
        What the error message calls an item, before its id or, without one, its number.

    Raises
    ------
    ConfigError
        When an item is malformed, accepts an empty interval, or has the id of another item.
    """
    lines: list[dict[str, Any]] = []
    for number, item in enumerate(published, start=1):
        where = f"{what} {item.get('id', number)}"
        line = check(item, "published", where)
        for part in (line, line.get("provided", {}), line.get("otherwise", {})):
            low, high = part.get("accept", {}).get("between", (0, 0))
            if low > high:
                raise ConfigError(f"{where}: between [{low}, {high}] is empty; swap the two")
        if any(line["id"] == other["id"] for other in lines):
            raise ConfigError(
                f"{where}: two published values are called '{line['id']}': rename one"
            )
        lines.append(line)
    return lines
