"""Colour and line style (look) of each algorithm in all figures.

An algorithm may declare a look, such as ``look=("blue", "dashed")``; otherwise its name determines
the look. If a look changes, the workflow draws figures again, but runs no experiment again.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from fedcore import algorithms
from fedcore.algorithms import Algorithm
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
LINES: dict[str, Any] = {
    "solid": "-",
    "dashed": "--",
    "dash-dotted": "-.",
    "dotted": ":",
    "long-dashed": (0, (12, 1)),  # so long that a smooth curve looks solid
}
LINESTYLES = list(LINES.values())[:4]
# Lines that tell runs of one colour apart in the interactive plots.
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


def look(algorithm: str) -> dict[str, Any]:
    """Return ``color`` and ``linestyle`` of an algorithm, the same in every figure.

    If an algorithm declares no look or is not installed, its name determines the look.

    Examples
    --------
    >>> look("power_gd")
    {'color': '#0072B2', 'linestyle': '-'}
    """
    known = algorithms.get(algorithm) if algorithm in algorithms.names() else None
    if known is None or known.look is None:
        rest, hue = divmod(zlib.crc32(algorithm.encode()), len(CYCLE))
        return {"color": CYCLE[hue], "linestyle": LINESTYLES[rest % len(LINESTYLES)]}
    require_look(known)
    colour, line = known.look
    return {"color": COLOURS[colour], "linestyle": LINES[line]}


def require_look(algorithm: Algorithm) -> None:
    """Raise `InputError` if an algorithm declares a look that is not in `COLOURS` and `LINES`."""
    if algorithm.look is None:
        return
    where = f"algorithm '{algorithm.name}', look={algorithm.look} of its ALGORITHM: unknown"
    colour, line = algorithm.look
    require_known(colour, COLOURS, f"{where} colour", InputError)
    require_known(line, LINES, f"{where} line", InputError)


def distinct_looks(algorithms: Sequence[str]) -> list[dict[str, str]]:
    """Return ``colour`` and ``dash`` (one of `DASHES`) for runs of these algorithms in one plot.

    Each run has the colour of its algorithm. If all runs use one algorithm, up to six runs have
    different colours. Up to six runs of the same colour have different dashes.

    Examples
    --------
    >>> distinct_looks(["ssi", "fedpower"])
    [{'colour': '#0072B2', 'dash': 'solid'}, {'colour': '#0072B2', 'dash': 'dash'}]
    """
    colours = [str(look(algorithm)["color"]) for algorithm in algorithms]
    single = len(set(algorithms)) == 1
    if single:
        first = CYCLE.index(colours[0]) if colours[0] in CYCLE else 0
        colours = [CYCLE[(first + i) % len(CYCLE)] for i in range(len(colours))]
    earlier: Counter[str] = Counter()
    found = []
    for i, colour in enumerate(colours):
        dash = DASHES[(earlier[colour] + (i if single else 0)) % len(DASHES)]
        found.append({"colour": colour, "dash": dash})
        earlier[colour] += 1
    return found


def of_methods(plan: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """Return the colour and dash of each method that the runs (cells) in `plan` name.

    The tag ``method`` of a cell names its method, and `distinct_looks` chooses the looks. A method
    has the same look in all experiments, on the run's web pages and in the run's notebook.
    """
    cells = plan["cells"].values()
    methods = {c["tags"]["method"]: c["algorithm"] for c in cells if c["tags"].get("method")}
    return dict(zip(methods, distinct_looks(list(methods.values())), strict=True))


def words(names: Iterable[str]) -> list[str]:
    """Return each algorithm's colour and line as text; figures are redrawn if a text changes."""
    return [f"{name} {look(name)}" for name in sorted(set(names))]
