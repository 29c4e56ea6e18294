"""Style of all figures: colours, lines, fonts and grid."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import matplotlib
from cycler import cycler

from fedcore.reports.curve_styles import CYCLE, DASHES, LINESTYLES, distinct_looks, of_methods


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Set fonts, grid, colours and layout of figures made inside; ignore the user's settings."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "axes.axisbelow": True,
                "axes.grid": True,
                "axes.labelsize": 10,
                "axes.prop_cycle": cycler(color=CYCLE),
                "axes.spines.right": False,
                "axes.spines.top": False,
                "axes.titlelocation": "left",
                "axes.titlesize": 11,
                "axes.titleweight": "bold",
                "figure.constrained_layout.use": True,
                "figure.figsize": (5.6, 3.8),
                "font.family": "DejaVu Sans",
                "font.size": 10,
                "grid.alpha": 0.3,
                "grid.linewidth": 0.6,
                "legend.fontsize": 9,
                "legend.edgecolor": "none",
                "legend.framealpha": 0.75,  # over curves it stays legible
                "lines.linewidth": 1.8,
                "pdf.fonttype": 42,
                "svg.hashsalt": "fedcore",
                "xtick.labelsize": 9,
                "ytick.labelsize": 9,
            }
        )
        yield


def looks(names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return ``colour`` and ``linestyle`` of the names in a figure, as `plotting.curve` takes them.

    Unlike those of `look`, they are not of the algorithms: names of one algorithm differ.
    """
    count = len(CYCLE)
    return {
        name: {"colour": CYCLE[i % count], "linestyle": LINESTYLES[i // count % len(LINESTYLES)]}
        for i, name in enumerate(names)
    }


def algorithm_looks(names: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return ``colour`` and ``linestyle`` of algorithms that all figures of a notebook show.

    Colours are those of the algorithms, and those of one colour differ in their lines, as in the
    interactive plots.
    """
    algorithms = list(names)
    return {
        name: {"colour": look["colour"], "linestyle": DASHES[look["dash"]]}
        for name, look in zip(algorithms, distinct_looks(algorithms), strict=True)
    }


def method_looks(plan: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return ``color`` and ``linestyle`` of a plan's methods, as the pages of its run show them."""
    return {
        name: {"color": look["colour"], "linestyle": DASHES[look["dash"]]}
        for name, look in of_methods(plan).items()
    }
