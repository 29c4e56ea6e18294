"""Style of all figures, and axes of a panel: scales, ticks, lines, and what an empty one says."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib import rcParams
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
    MaxNLocator,
    StrMethodFormatter,
)

from fedcore.errors import InputError, require_known
from fedcore.recorder import NOT_RELEASED
from fedcore.reports.curve_styles import (
    COLOURS,
    CYCLE,
    DASHES,
    LINESTYLES,
    distinct_looks,
    of_methods,
)

EMPTY = "Nothing of this panel was run."
BETWEEN = (1.9, 1.9)  # decades: on a shorter axis, 2 and 5 have labels beside the powers of ten
NEAR_ONE, SHORT = (1e-3, 1e4), 1e3  # axes from … to …, and over at most …, have plain numbers

BYTES_LABEL = 50.0  # points from one label of an axis of bytes to the next, at least


class Labels(LogFormatterSciNotation):
    """Labels of a logarithmic axis: powers of ten, and plain numbers on a short axis near 1.

    With a unit, all are numbers of it, such as 20 kB.
    """

    def __init__(self, unit: str = "", minor_thresholds: Any = None) -> None:
        super().__init__(10.0, minor_thresholds=minor_thresholds)
        self.of_unit = EngFormatter(unit=unit) if unit else None

    def __call__(self, x: float, pos: Any = None) -> str:
        """Return the label of a tick, empty where it has none."""
        power = str(super().__call__(x, pos))
        if power and self.of_unit:
            return str(self.of_unit(x))
        low, high = sorted(self.axis.get_view_interval())  # type: ignore[union-attr]
        plain = NEAR_ONE[0] <= low and high <= NEAR_ONE[1] and high <= SHORT * low
        return f"{x:g}" if power and plain else power


def reference_line(
    ax: Axes,
    y: float,
    label: str,
    *,
    colour: str = COLOURS["black"],
    below: bool = False,
    end: Literal["left", "right"] = "left",
) -> None:
    """Draw a horizontal dashed line at `y` with its name on it, at this end.

    With `below`, the name stands under the line and the axes reach further down: for a floor, above
    which the curves end.
    """
    ax.axhline(y, color=colour, linestyle=(0, (4, 3)), linewidth=1.0, zorder=2.5)
    ax.annotate(
        label, (0.01 if end == "left" else 0.99, y), (0, -3 if below else 2),
        xycoords=("axes fraction", "data"), textcoords="offset points",
        fontsize=8, color=colour, va="top" if below else "bottom", ha=end, zorder=4,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],  # over curves, too
    )  # fmt: skip
    if below:
        ax.margins(y=0.12)


def log10_axis(ax: Axes, which: Literal["x", "y"] = "y", unit: str = "") -> None:
    """Make an axis logarithmic, with labels at powers of ten, and between them if they are few."""
    require_known(which, ("x", "y"), "no axis", InputError)
    ax.set(**{f"{which}scale": "log"})
    axis = ax.yaxis if which == "y" else ax.xaxis
    axis.set_major_locator(LogLocator(10.0, numticks=8))
    axis.set_major_formatter(Labels(unit))
    axis.set_minor_locator(LogLocator(10.0, subs=(2.0, 5.0)))
    axis.set_minor_formatter(Labels(unit, minor_thresholds=BETWEEN))
    # Marks that are not seen, as long as the others, keep their labels in one line with theirs.
    size, pad = rcParams["xtick.major.size"], rcParams["xtick.major.pad"]
    axis.set_tick_params(which="minor", length=size, width=0, pad=pad)


def bytes_axis(
    ax: Axes, label: str = "sent up, all clients together", which: Literal["x", "y"] = "x"
) -> None:
    """Label an axis, whose values are bytes, in B, kB, MB, … (powers of 1000)."""
    axis = ax.yaxis if which == "y" else ax.xaxis
    if axis.get_scale() == "log":
        log10_axis(ax, which, "B")
    else:
        axis.set_major_formatter(EngFormatter(unit="B"))
    if axis.get_scale() == "linear":
        box = ax.bbox.transformed(ax.figure.dpi_scale_trans.inverted())
        room = 72.0 * (box.height if which == "y" else box.width) / BYTES_LABEL
        axis.set_major_locator(MaxNLocator(max(int(room), 2), steps=[1, 2, 4, 5, 10]))
    axis.set_label_text(label)


def rounds_axis(ax: Axes, label: str = "communication round") -> None:
    """Make the x-axis one of rounds that begin at 0: linear up to 1, and logarithmic from there."""
    from_zero(ax, 1.0)
    ax.set_xlabel(label)


def from_zero(ax: Axes, first: float) -> None:
    """Make the x-axis linear from 0 to `first`, and logarithmic from there, with plain numbers."""
    ax.set_xscale("symlog", linthresh=first)
    ax.set_xlim(left=0)
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))


def legend(ax: Axes, *others: Axes, outside: bool = True) -> None:
    """Add a legend beside the axes or inside, with curves ordered by their last values.

    It also names curves of `others`. Of those with one label it names the first.
    """

    def end(handle: Any) -> float:
        drawn = isinstance(handle, Line2D)
        return float(np.asarray(handle.get_ydata(), float)[-1]) if drawn else -np.inf

    first: dict[str, Any] = {}
    for one in (ax, *others):
        for handle, label in zip(*one.get_legend_handles_labels(), strict=True):
            first.setdefault(label, handle)
    place: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if outside else {}
    ax.legend(handles=sorted(first.values(), key=end, reverse=True), **place)


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
