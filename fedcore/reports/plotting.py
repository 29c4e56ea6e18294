"""Draw figures in one style of matplotlib, and write them as PNG and PDF files.

    plt.style.use(["default", plotting.STYLE])
    figure, axes = plt.subplots(1, 2, figsize=(7.2, 3.0))
    for ax, run in zip(axes, runs):
        plotting.curve(ax, run["round"], run["objective"], label=run.label, color="C0")
    plotting.save(figure, "loss", runs, title="Figure 1 of …", line="…", corner="…")

This module does not import pyplot, because figures need no window system and no global state.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

import matplotlib.style
import numpy as np
from matplotlib import rcParams
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.text import Text
from matplotlib.ticker import (
    EngFormatter,
    LogFormatterSciNotation,
    LogLocator,
    MaxNLocator,
    StrMethodFormatter,
)
from PIL import Image
from scipy import special

from fedcore.errors import InputError, nearest
from fedcore.files import atomic
from fedcore.problems import STATUSES
from fedcore.reports import stem
from fedcore.reports.curve_styles import COLOURS, LINES
from fedcore.reports.measures import Recorded
from fedcore.words import visible

STYLE = Path(__file__).with_name("paper.mplstyle")
VARIABLE = "FEDCORE_FIGURES"  # "png" leaves out the PDF, which takes half the time
LINE_CHARACTERS = 116  # most characters of the line beneath a title, on 7.2 inches
WIDEST = 58  # most characters of this line's first column

ZERO = 1e-16  # height of a curve without positive values on a logarithmic axis
# Marks of a curve of one point, by its line style.
POINTS = dict(zip(LINES.values(), "os^Dv", strict=True))
OTHER_POINT = "X"  # of any other style
NOTHING = "Nothing of this figure was run. The notebook begins with the reasons."
BETWEEN = (1.9, 1.9)  # decades: on a shorter axis, 2 and 5 have labels beside the powers of ten
NEAR_ONE, SHORT = (1e-3, 1e4), 1e3  # axes from … to …, and over at most …, have plain numbers
BYTES_LABEL = 50.0  # points from one label of an axis of bytes to the next, at least
EXPERIMENTS, NO_PANEL = "Experiments", "-"  # key and text in the PNG file of an empty figure

Band = Literal[True, False, "95%", "50%", "mean"]


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Return a context in which figures use `STYLE`, whatever the user's settings are."""
    with matplotlib.style.context(["default", STYLE]):
        yield


def files(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """Return the paths of a figure's PNG and PDF files; `path` may end in .png or .pdf."""
    bare = stem(os.fspath(path))
    return Path(f"{bare}.png"), Path(f"{bare}.pdf")


def save(
    figure: Figure,
    path: str | os.PathLike[str],
    shown: Iterable[Any] | None = None,
    *,
    title: str = "",
    line: str = "",
    corner: str = "",
) -> list[Path]:
    """Write a figure as PNG and PDF; each file is written completely or not at all.

    If the environment variable FEDCORE_FIGURES is "png", as in the quick run, no PDF is written.

    Parameters
    ----------
    figure : Figure
    path : path-like
        Path of the files; an ending .png or .pdf is ignored.
    shown : iterable of Run or History, optional
        The runs or histories in the figure. If `shown` is empty, the figure contains only the
        sentence that nothing was run, and the PNG file has a mark that `shows_nothing` reads.
    title, line, corner : str
        Texts above the figure, beneath the title, and at the lower right of the figure. `line` may
        have several lines, and a tab splits a line into two columns.

    Returns
    -------
    list of pathlib.Path
        The files that were written. The files contain no date. The same figure therefore has the
        same bytes, if the library versions are the same.
    """
    empty = shown is not None and not list(shown)
    if empty:
        figure.clear()
        figure.set_size_inches(4.5, 0.6)
        figure.text(0.5, 0.5, NOTHING, ha="center", va="center")
    else:
        _frame(figure, title, line, corner)
    for text in figure.findobj(Text):  # fonts lack control characters, and one stops the PDF
        if (drawn := visible(text.get_text())) != text.get_text():
            text.set_text(drawn)
    png, pdf = files(path)
    kinds: dict[Path, dict[str, Any]] = {png: {"Software": None}}
    if empty:
        kinds[png][EXPERIMENTS] = NO_PANEL
    if os.getenv(VARIABLE) != "png":
        kinds[pdf] = {"CreationDate": None}
    for file, metadata in kinds.items():
        with style(), atomic.replace(file, summed=True) as temporary:
            figure.savefig(temporary, format=file.suffix[1:], metadata=metadata)
    return list(kinds)


def _frame(figure: Figure, title: str, line: str, corner: str) -> None:
    """Write the three texts outside the panels; the saved image grows to include the texts."""
    figure.draw_without_rendering()  # finds the layout, once for all files
    figure.set_layout_engine("none")
    for legend in figure.legends:  # by itself it moves to the edge of the file
        legend.set_bbox_to_anchor((0.0, 0.0, 1.0, 1.0), figure.transFigure)
    height = figure.get_figheight()
    above = 0.1
    if line:
        left, right, column = _columns(line)
        above += 0.145 * len(left)
        for x, told in ((0.0, left), (column, right)):
            if any(map(str.strip, told)):
                y = 1.0 + (above - 0.04) / height
                figure.text(x, y, "\n".join(told), va="top", fontsize=8.5)
    if title:
        figure.text(
            0.0, 1.0 + above / height, title, va="bottom",
            fontsize=rcParams["figure.titlesize"], fontweight=rcParams["figure.titleweight"],
        )  # fmt: skip
    if corner:
        wrapped = textwrap.fill(corner, LINE_CHARACTERS)
        figure.text(1.0, -0.06 / height, wrapped, va="top", ha="right", color="0.4")


def _columns(text: str) -> tuple[list[str], list[str], float]:
    """Split text at tabs into two columns; return their lines and the second column's position.

    A line without a tab may take the whole width.
    """
    parts = [line.partition("\t") for line in text.splitlines()]
    first = min(6 + max([len(one) for one, tab, _ in parts if tab], default=0), WIDEST)
    left: list[str] = []
    right: list[str] = []
    for one, tab, other in parts:
        here = textwrap.wrap(one, first if tab else LINE_CHARACTERS)
        there = textwrap.wrap(other, LINE_CHARACTERS - first - 3)
        rows = max(len(here), len(there))
        left += here + [" "] * (rows - len(here))
        right += there + [" "] * (rows - len(there))
    return left, right, first / LINE_CHARACTERS


def shows_nothing(file: Path) -> bool:
    """Return whether a PNG file is marked as an empty figure, for which nothing was run."""
    with Image.open(file) as picture:
        text: dict[str, str] = getattr(picture, "text", {})
    return text.get(EXPERIMENTS) == NO_PANEL


def name_curves(figure: Figure, ncols: int) -> None:
    """Add one legend beneath all panels, with each label once, in the order of the panels."""
    named: dict[str, Artist] = {}
    for ax in figure.axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    figure.legend(list(named.values()), list(named), loc="outside lower center", ncols=ncols)


def leave_empty(ax: Axes, why: str) -> None:
    """Leave a panel as an empty frame that shows the reason `why`."""
    ax.text(
        0.5, 0.5, textwrap.fill(why, 28), transform=ax.transAxes, ha="center", va="center",
        color="0.35",
    )  # fmt: skip
    ax.tick_params(which="both", left=False, bottom=False, labelleft=False, labelbottom=False)
    ax.spines[:].set_visible(True)


def show(figure: Figure) -> None:
    """Show a figure in a notebook, and do nothing elsewhere."""
    ipython = sys.modules.get("IPython")  # loaded if this runs in a notebook
    if ipython is not None and ipython.get_ipython() is not None:
        drawn = io.BytesIO()
        with style():
            figure.savefig(drawn)
        ipython.display.display(ipython.display.Image(data=drawn.getvalue(), retina=True))


def curve(
    ax: Axes,
    x: np.ndarray,
    y: np.ndarray,
    *,
    label: str,
    band: Band = True,
    floor: float | None = None,
    **look: Any,
) -> Line2D:
    """Draw the median over repeats with a band, or the mean with its confidence interval.

    A record is a recorded iteration. A repeat that ended early has the value NaN at later records,
    where it is ignored. On a logarithmic axis, or with `floor`, values below the floor are drawn at
    the floor, and a labelled line marks the floor. Call `log10_axis` before `curve` to make an axis
    logarithmic.

    Parameters
    ----------
    ax : Axes
    x : ndarray of shape (records,) or (repeats, records)
        Horizontal position of each record, which must be the same in all repeats with a y-value.
    y : ndarray of shape (repeats, records) or (records,)
        Value at each record, or NaN.
    label : str
        Text of the curve in the legend.
    band : {True, "95%", "50%", "mean", False}, default=True
        With True, the band reaches from the smallest to the largest value of the repeats. With
        "95%" or "50%", the band covers this share of the values, around the median. On a
        logarithmic axis, a band far from its curve is cut off by the axis limits. With "mean", the
        line is the mean, and the band is the mean's 95 % confidence interval by Student's t.
    floor : float, optional
        Smallest value that the curve shows, in units of `y`. On a logarithmic axis, the default is
        the curve's smallest positive value, and only values ≤ 0 are moved to the floor.
    **look
        Arguments of `matplotlib.axes.Axes.plot`, such as ``color``, ``linestyle`` and ``marker``.

    Returns
    -------
    Line2D
        The line of the median or of the mean.

    Raises
    ------
    InputError
        If the shapes of `x` and `y` do not fit, if `x` differs between repeats, if `y` has no
        value, or if `band` or `floor` is invalid.
    """
    steps, values = _align(x, y, label)
    values = _lift(ax, values, floor, label)
    middle = np.nanmean(values, axis=0) if band == "mean" else np.nanmedian(values, axis=0)
    if len(steps) == 1:
        look.setdefault("marker", POINTS.get(look.get("linestyle", "-"), OTHER_POINT))
    (line,) = ax.plot(steps, middle, label=label, **{"zorder": 3} | look)
    ends = _band(values, band)
    if ends is not None and len(values) > 1:
        if len(steps) == 1:
            ax.vlines(steps, *ends, color=line.get_color(), alpha=0.5, linewidth=4, zorder=2)
        else:
            room = ax.dataLim.frozen()
            ax.fill_between(steps, *ends, color=line.get_color(), alpha=0.2, linewidth=0, zorder=2)
            if ax.get_yscale() == "log":
                ax.dataLim.set(room)
                ax.update_datalim([*zip(np.tile(steps, 2), _near(middle, *ends), strict=True)])
    return line


def title(ax: Axes, text: str, *shown: Any) -> None:
    """Set and wrap a panel's title, and mark surrogate or rebuilt data and data of unknown origin.

    The title gets the mark ``[surrogate data]`` or ``[rebuilt data]`` if a history was made with
    surrogate (synthetic) or rebuilt data. The title gets the mark ``[data of unknown origin]`` if a
    history does not state an origin of its data that is in `STATUSES`.
    """
    histories: list[Recorded] = [getattr(one, "history", one) for one in shown]  # of runs, too
    found = {history.about.get("problem", {}).get("status") for history in histories}
    marks = [f"[{kind} data]" for kind in ("surrogate", "rebuilt") if kind in found]
    if found - set(STATUSES):
        marks.append("[data of unknown origin]")
    spec = ax.get_subplotspec()
    columns = spec.get_gridspec().ncols if spec else 1
    inches = ax.figure.bbox.width / ax.figure.dpi / columns - 0.6  # tick labels stand beside it
    room = max(int(inches * 72.0 / (0.64 * rcParams["font.size"])), 10)
    lines = textwrap.wrap(text, room) or [""]
    for mark in marks:
        if len(lines[-1]) + 1 + len(mark) <= room:
            lines[-1] = f"{lines[-1]} {mark}".lstrip()
        else:
            lines.append(mark)
    ax.set_title("\n".join(lines))


class Labels(LogFormatterSciNotation):
    """Tick labels of a logarithmic axis: powers of ten, or plain numbers on a short axis near 1.

    With a unit, all labels are numbers with this unit, such as 20 kB.
    """

    def __init__(self, unit: str = "", minor_thresholds: Any = None) -> None:
        super().__init__(10.0, minor_thresholds=minor_thresholds)
        self.of_unit = EngFormatter(unit=unit) if unit else None

    def __call__(self, x: float, pos: Any = None) -> str:
        """Return the label of a tick at `x`, or an empty text if the tick has no label."""
        power = str(super().__call__(x, pos))
        if power and self.of_unit:
            return str(self.of_unit(x))
        low, high = sorted(self.axis.get_view_interval())  # type: ignore[union-attr]
        plain = NEAR_ONE[0] <= low and high <= NEAR_ONE[1] and high <= SHORT * low
        return f"{x:g}" if power and plain else power


def reference_line(ax: Axes, y: float, label: str, *, color: str = COLOURS["black"]) -> None:
    """Draw a horizontal dashed line at `y`, with `label` above its left end."""
    ax.axhline(y, color=color, linestyle=(0, (4, 3)), linewidth=1.0, zorder=2.5)
    ax.annotate(
        label, (0.01, y), (0, 2), xycoords=("axes fraction", "data"), textcoords="offset points",
        fontsize=8, color=color, va="bottom", ha="left", zorder=4,
        path_effects=[withStroke(linewidth=2.5, foreground="white")],  # over curves, too
    )  # fmt: skip


def log10_axis(ax: Axes, which: Literal["x", "y"] = "y", unit: str = "") -> None:
    """Make an axis logarithmic, with labels at powers of ten; on a short axis, also at 2 and 5."""
    ax.set(**{f"{which}scale": "log"})
    axis = ax.yaxis if which == "y" else ax.xaxis
    axis.set_major_locator(LogLocator(10.0, numticks=8))
    axis.set_major_formatter(Labels(unit))
    axis.set_minor_locator(LogLocator(10.0, subs=(2.0, 5.0)))
    axis.set_minor_formatter(Labels(unit, minor_thresholds=BETWEEN))
    # Marks that are not seen, as long as the others, keep their labels in one line with theirs.
    size, pad = rcParams["xtick.major.size"], rcParams["xtick.major.pad"]
    axis.set_tick_params(which="minor", length=size, width=0, pad=pad)


def bytes_axis(ax: Axes, label: str = "sent up, all clients together") -> None:
    """Label an x-axis of byte counts in B, kB, MB, … (powers of 1000)."""
    axis = ax.xaxis
    if axis.get_scale() == "log":
        log10_axis(ax, "x", "B")
    else:
        axis.set_major_formatter(EngFormatter(unit="B"))
    if axis.get_scale() == "linear":
        box = ax.bbox.transformed(ax.figure.dpi_scale_trans.inverted())
        room = 72.0 * box.width / BYTES_LABEL
        axis.set_major_locator(MaxNLocator(max(int(room), 2), steps=[1, 2, 4, 5, 10]))
    axis.set_label_text(label)


def from_zero(ax: Axes, first: float) -> None:
    """Make the x-axis linear from 0 to `first` and logarithmic above, with plain number labels."""
    ax.set_xscale("symlog", linthresh=first)
    ax.set_xlim(left=0)
    ax.xaxis.set_major_formatter(StrMethodFormatter("{x:,g}"))


def _align(x: Any, y: Any, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Drop recorded iterations (records) at which no repeat has a value.

    Return x of shape (records,), and y of shape (repeats, records).
    """
    steps, values = np.asarray(x, float), np.atleast_2d(np.asarray(y, float))
    if values.ndim != 2 or steps.shape not in (values.shape, values.shape[1:]):
        raise InputError(
            f"'{label}': x has shape {steps.shape}, y has {values.shape}: give y the shape "
            "(repeats, records), and x the same shape or (records,)"
        )
    known = ~np.isnan(values)
    some = known.any(axis=0)
    if not some.any():
        raise InputError(f"'{label}': no value to draw")
    values, known, steps = values[:, some], known[:, some], steps[..., some]
    if steps.ndim == 2:
        first = steps[known.argmax(axis=0), np.arange(steps.shape[1])]
        differ = (known & (steps != first)).any(axis=0)
        if differ.any():
            record = int(np.flatnonzero(differ)[0])
            raise InputError(
                f"'{label}': x differs between the repeats at record {record}: draw each repeat "
                "as a separate curve"
            )
        steps = first
    return steps, values


def _lift(ax: Axes, values: np.ndarray, floor: float | None, label: str) -> np.ndarray:
    """Raise values below the floor to the floor, and mark each floor by one labelled line."""
    logarithmic = ax.get_yscale() == "log"
    if floor is None and not logarithmic:
        return values
    if floor is None:
        floor = float(np.min(values[values > 0], initial=np.inf))
        floor = floor if np.isfinite(floor) else ZERO
        below, text = values <= 0, f"{label}: values ≤ 0 are drawn here"
    else:
        if logarithmic and floor <= 0:
            raise InputError(f"the floor of a logarithmic axis must be above 0, got {floor}")
        below, text = values <= floor, f"values ≤ {floor:.3g} are drawn here"
    if below.any() and all(other.get_text() != text for other in ax.texts):
        reference_line(ax, floor, text, color=COLOURS["grey"])
    return np.where(below, floor, values)


def _near(middle: np.ndarray, *ends: np.ndarray) -> np.ndarray:
    """Return the band's ends, clipped to a range around the curve; axis limits include them.

    The ends are clipped to the range from min/f to f · max of the curve, where f is the larger of
    max/min and 10. Repeats outside this range do not widen the axis.
    """
    both, known = np.concatenate(ends), middle[np.isfinite(middle)]
    if not len(known):
        return both
    factor = max(known.max() / known.min(), 10.0)
    return np.clip(both, known.min() / factor, known.max() * factor)


def _band(values: np.ndarray, band: Any) -> tuple[np.ndarray, np.ndarray] | None:
    if band is False:
        return None
    if band == "mean":
        count = np.maximum((~np.isnan(values)).sum(axis=0), 2)  # one repeat: no spread
        half = special.stdtrit(count - 1, 0.975) * np.nanstd(values, axis=0) / np.sqrt(count - 1)
        mean = np.nanmean(values, axis=0)
        return mean - half, mean + half
    ranges = {True: (0.0, 100.0), "95%": (2.5, 97.5), "50%": (25.0, 75.0)}
    if band not in ranges:
        raise InputError(f"unknown band '{band}': {nearest(str(band), ['95%', '50%', 'mean'])}")
    with np.errstate(invalid="ignore"):  # between two values that are infinite
        low, high = np.nanpercentile(values, ranges[band], axis=0)
    return low, high
