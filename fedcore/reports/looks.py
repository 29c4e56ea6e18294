"""Looks of algorithms in all figures: what a module's docstring says, or else what its name gives.

A docstring says it in a line of its own, ``:look: blue, dashed``, which is no code: a change draws
figures again and runs no cell.
"""

from __future__ import annotations

import inspect
import re
import zlib
from collections.abc import Iterable
from functools import cache
from typing import Any

from fedcore import algorithms
from fedcore.errors import InputError, require_known

# Okabe and Ito's colours, distinct for colour-blind readers; without yellow, too faint on white.
COLOURS = {
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "green": "#009E73",
    "purple": "#CC79A7",
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "black": "#000000",
    "grey": "#767676",
}
CYCLE = list(COLOURS.values())[:6]
LINESTYLES = ("-", "--", "-.", ":")
LINES: dict[str, Any] = {
    "solid": "-",
    "dashed": "--",
    "dash-dotted": "-.",
    "dotted": ":",
    "long-dashed": (0, (12, 1)),  # so long that a smooth curve looks solid
}
FIELD = re.compile(r"^:look:(.*)$", re.MULTILINE)


def look(algorithm: str) -> dict[str, Any]:
    """Return ``colour`` and ``linestyle`` of an algorithm, the same in every figure.

    One that says no look, or that is not here, gets a look from its name.

    Raises
    ------
    InputError
        When the look is no colour of `COLOURS` and line of `LINES`.

    Examples
    --------
    >>> look("power_gd")
    {'colour': '#0072B2', 'linestyle': '-'}
    """
    text = told(algorithm)
    if text is None:
        rest, hue = divmod(zlib.crc32(algorithm.encode()), len(CYCLE))
        return {"colour": CYCLE[hue], "linestyle": LINESTYLES[rest % len(LINESTYLES)]}
    colour, _, line = map(str.strip, text.partition(","))
    where = f"algorithm '{algorithm}', ':look: {text}' of its docstring: unknown"
    require_known(colour, COLOURS, f"{where} colour", InputError)
    require_known(line, LINES, f"{where} line", InputError)
    return {"colour": COLOURS[colour], "linestyle": LINES[line]}


@cache
def told(algorithm: str) -> str | None:
    """Return the look that an algorithm's docstring says, as it stands there; None if it is silent.

    Parameters
    ----------
    algorithm : str
        Name of an algorithm, also of one that is not installed here.
    """
    if algorithm not in algorithms.names():
        return None
    found = FIELD.search(inspect.getdoc(algorithms.REGISTRY.module(algorithm)) or "")
    return found[1].strip() if found else None


def words(names: Iterable[str]) -> list[str]:
    """Return what the looks of algorithms depend on, for the fingerprint of what shows them."""
    return [f"{name} {told(name)}" for name in sorted(set(names))]
