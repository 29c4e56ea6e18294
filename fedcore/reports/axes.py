"""Axes of a panel: scales, ticks, lines across it, and what is said where nothing was drawn."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import (
    AutoLocator,
    EngFormatter,
    LogFormatterSciNotation,
    LogLocator,
    NullFormatter,
)

from fedcore.errors import InputError, require_known
from fedcore.recorder import NOT_RELEASED
from fedcore.reports.looks import COLOURS

EMPTY = "Nothing of this panel was run."


def reference_line(
    ax: Axes, y: float, label: str, *, colour: str = COLOURS["black"], below: bool = False
) -> None:
    """Draw a horizontal dashed line at `y` with its name on it, at the left end.

    With `below`, the name stands under the line and the axes reach further down: for a floor, above
    which the curves end.
    """
    ax.axhline(y, color=colour, linestyle=(0, (4, 3)), linewidth=1.0, zorder=2.5)
    ax.annotate(
        label, (0.01, y), (0, -3 if below else 2),
        xycoords=("axes fraction", "data"), textcoords="offset points",
        fontsize=8, color=colour, va="top" if below else "bottom", ha="left", zorder=4,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],  # over curves, too
    )  # fmt: skip
    if below:
        ax.margins(y=0.12)


def log10_axis(ax: Axes, which: Literal["x", "y"] = "y") -> None:
    """Make an axis logarithmic, with labels at powers of ten, and between them if they are few."""
    require_known(which, ("x", "y"), "no axis", InputError)
    ax.set(**{f"{which}scale": "log"})
    axis = ax.yaxis if which == "y" else ax.xaxis
    axis.set_major_locator(LogLocator(10.0, numticks=8))
    axis.set_minor_locator(LogLocator(10.0, subs=(2.0, 5.0)))
    axis.set_minor_formatter(LogFormatterSciNotation(10.0, minor_thresholds=(1.9, 1.9)))
    axis.set_tick_params(which="minor", length=0)


def bytes_axis(ax: Axes, label: str = "sent up, all clients together") -> None:
    """Label the x-axis, whose values are bytes, in B, kB, MB, … (powers of 1000)."""
    ax.xaxis.set_major_formatter(EngFormatter(unit="B"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xlabel(label)


def legend(ax: Axes, *others: Axes, outside: bool = True) -> None:
    """Add a legend beside the axes or inside, with curves ordered by their last values.

    It also names curves of `others` whose labels the axes do not have.
    """

    def end(handle: Any) -> float:
        drawn = isinstance(handle, Line2D)
        return float(np.asarray(handle.get_ydata(), float)[-1]) if drawn else -np.inf

    handles, labels = ax.get_legend_handles_labels()
    for other in others:
        for handle, label in zip(*other.get_legend_handles_labels(), strict=True):
            if label not in labels:
                handles.append(handle)
                labels.append(label)
    place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if outside else {}
    ax.legend(handles=sorted(handles, key=end, reverse=True), **place)


def finish(ax: Axes) -> None:
    """Leave no tick between whole numbers where all x are whole, and no panel without a word."""
    held = [np.ravel(line.get_xdata(orig=False)) for line in ax.lines if _in_data(ax, line)]
    held += [
        np.ma.getdata(drawn.get_offsets())[:, 0]
        for drawn in ax.collections
        if isinstance(drawn, PathCollection)
    ]
    if not held and not ax.collections and not ax.texts:
        ax.text(0.5, 0.5, EMPTY, transform=ax.transAxes, ha="center", va="center", fontsize=8)
        ax.tick_params(labelbottom=False)
    values = np.concatenate([np.empty(0), *held])
    values = values[np.isfinite(values)]
    locator = ax.xaxis.get_major_locator()
    if len(values) and (values == np.round(values)).all() and isinstance(locator, AutoLocator):
        locator.set_params(integer=True)


def mark_unreleased(figure: Figure) -> None:
    """Mark the y-axes of private runs as not released."""
    mark = f" ({NOT_RELEASED})"
    for ax in figure.axes:
        if ax.get_gid() == NOT_RELEASED:
            for named in ax.get_shared_y_axes().get_siblings(ax):
                text = named.get_ylabel()
                if text and not text.endswith(mark):
                    named.set_ylabel(text + mark)


def _in_data(ax: Axes, line: Line2D) -> bool:
    """Whether the x of a line are data, and not the two edges of the axes as of `axhline`."""
    return bool(line.get_transform().contains_branch_seperately(ax.transData)[0])
