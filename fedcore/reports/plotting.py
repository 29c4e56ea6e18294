"""Figures: panels, curves with bands, and titles that name the status of the data.

    for ax, run in plotting.panels("results/figures/faps/loss", results.runs("fig3")):
        plotting.curve(ax, run["round"], run["objective"], label="FAPS", **look("faps"))
        plotting.title(ax, f"Loss against rounds, {run.label}", run)

Figures need no window system and no global state: pyplot is not imported.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, Literal, TypeVar

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy import special

from fedcore.errors import InputError, nearest, require_known
from fedcore.problems import STATUSES
from fedcore.recorder import NOT_RELEASED
from fedcore.reports import figure_files
from fedcore.reports.axes import (
    algorithm_looks,
    bytes_axis,
    finish,
    from_zero,
    legend,
    log10_axis,
    looks,
    method_looks,
    reference_line,
    rounds_axis,
    style,
)  # fmt: skip
from fedcore.reports.curve_styles import COLOURS, CYCLE, DASHES, LINES, look
from fedcore.reports.figure_files import save, save_or_show

__all__ = [
    "COLOURS", "CYCLE", "algorithm_looks", "bytes_axis", "from_zero", "legend", "log10_axis",
    "look", "looks", "method_looks", "reference_line", "rounds_axis", "save", "style",
]  # fmt: skip

Item = TypeVar("Item")

ZERO = 1e-16  # height of a curve without positive values on a logarithmic axis
# Marks of a curve of one point, by its line style.
POINTS = dict(zip(dict.fromkeys([*DASHES.values(), *LINES.values()]), "os^DvPp", strict=True))
OTHER_POINT = "X"  # of any other style
NOTHING = "Nothing of this figure was run."

Band = Literal[True, False, "range", "95%", "mean"]


def panels(
    path: str | os.PathLike[str] | None,
    items: Iterable[Item | None],
    *,
    columns: int | None = None,
    size: tuple[float, float] = (4.5, 4.0),
    log: str = "y",
    keys: Literal["each", "first", "last", "outside", "none"] = "first",
    **share: Any,
) -> Iterator[tuple[Axes, Item]]:
    """Yield the axes of one panel per item, for the caller to fill; then save the figure.

    An x-axis of whole numbers, such as rounds, has ticks at whole numbers only. A panel that the
    caller leaves empty says so.

    Parameters
    ----------
    path : path-like or None
        As in `save`; None writes no file, and only shows the figure in a notebook.
    items : iterable
        One item per panel; None leaves a place empty. Without any, the figure says that nothing of
        it was run: a configuration may leave problems out.
    columns : int, optional
        Most panels in a row, by default all. Rows are as equal as they can be: with 3, four panels
        stand two by two.
    size : (float, float), default=(4.5, 4.0)
        Width and height of a panel, in inches.
    log : str, default="y"
        Axes that are logarithmic: "", "x", "y" or "xy".
    keys : {"each", "first", "last", "outside", "none"}, default="first"
        Panels that get a legend; "outside" puts one for all panels beside the last.
    **share
        ``sharex`` and ``sharey`` of matplotlib.

    Yields
    ------
    ax : Axes
    item : Any
        Of `items`.

    Raises
    ------
    InputError
        On unknown `keys`.
    """
    require_known(keys, ("each", "first", "last", "outside", "none"), "no legend", InputError)
    shown = list(items)
    if not shown:
        with style():
            figure = Figure(figsize=(size[0], 0.6))  # a line of words, and no empty page
            figure.text(0.5, 0.5, NOTHING, ha="center", va="center")
            figure_files.note_nothing(figure)
            save_or_show(figure, path)
        return
    columns = min(columns or len(shown), len(shown))
    rows = -(-len(shown) // columns)
    columns = -(-len(shown) // rows)
    with style():
        figure = Figure(figsize=(size[0] * columns, size[1] * rows))
        grid = figure.subplots(rows, columns, squeeze=False, **share)
        filled = []
        for ax, item in zip_longest(grid.flat, shown):
            if item is None:
                ax.set_axis_off()
                continue
            for axis in log:
                log10_axis(ax, "x" if axis == "x" else "y")
            yield ax, item
            finish(ax)
            filled.append(ax)
        chosen = {"each": filled, "first": filled[:1], "last": filled[-1:], "outside": filled[-1:]}
        for ax in chosen.get(keys, ()):
            legend(ax, *(filled if keys == "outside" else ()), outside=keys == "outside")
        if share.get("sharey"):
            for ax in grid[:, 1:].flat:
                ax.set_ylabel("")
        save_or_show(figure, path)


def curve(
    ax: Axes,
    x: np.ndarray,
    y: np.ndarray,
    *,
    label: str,
    colour: str | None = None,
    linestyle: str | tuple[float, tuple[float, ...]] = "-",
    band: Band = True,
    floor: float | None = None,
) -> Line2D:
    """Draw the median over repeats and a band around it, or their mean and its confidence interval.

    A repeat that ended early (NaN) counts only where it has a value. On a logarithmic axis (call
    `log10_axis` before), or with `floor`, values below the floor are drawn on a line at the floor,
    which says so.

    Parameters
    ----------
    ax : Axes
    x : ndarray of shape (records,) or (repeats, records)
        The same in all repeats where these have values.
    y : ndarray of shape (repeats, records) or (records,)
    label : str
        Entry in the legend.
    colour, linestyle : str or tuple
        As in `look`; the default colour is the next one of the cycle.
    band : {True, "range", "95%", "mean", False}, default=True
        From the smallest to the largest repeat (True, "range"), or the middle 95 % of them. On a
        logarithmic axis a repeat far away leaves the panel: the axis is that of the lines. With
        "mean", the line is the mean, and the band its 95 % confidence interval by Student's t.
    floor : float, optional
        In units of `y`. On a logarithmic axis the default is the curve's smallest positive value,
        and only values that are not positive are moved.

    Returns
    -------
    Line2D
        The median, or the mean.

    Raises
    ------
    InputError
        When shapes do not fit, x differs between repeats, or there is no value.
    """
    steps, values = _align(x, y, label)
    values = _lift(ax, values, floor, label)
    middle = np.nanmean(values, axis=0) if band == "mean" else np.nanmedian(values, axis=0)
    marker = POINTS.get(linestyle, OTHER_POINT) if len(steps) == 1 else ""
    (line,) = ax.plot(
        steps, middle, label=label, color=colour, linestyle=linestyle, marker=marker, zorder=3
    )
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


def scatter(
    ax: Axes,
    x: np.ndarray,
    y: np.ndarray,
    *,
    label: str,
    colour: str | None = None,
    marker: str = "o",
    size: float = 20.0,
    floor: float | None = None,
) -> PathCollection:
    """Draw points; `floor` is that of `curve`.

    Parameters
    ----------
    ax : Axes
    x, y : ndarray
        Equal shapes; NaN is left out.
    label : str
        Entry in the legend.
    colour, marker : str
    size : float
        Area in points squared.
    floor : float, optional
        In units of `y`.

    Raises
    ------
    InputError
        When the shapes differ or there is no value.
    """
    x, y = np.asarray(x, float), np.asarray(y, float)
    if x.shape != y.shape:
        raise InputError(f"'{label}': x has shape {x.shape}, y has {y.shape}: give as many x as y")
    known = ~(np.isnan(x) | np.isnan(y))
    if not known.any():
        raise InputError(f"'{label}': no value to draw")
    lifted = _lift(ax, y[known], floor, label)
    return ax.scatter(
        x[known], lifted, s=size, c=colour, marker=marker, label=label, alpha=0.75, linewidth=0,
        zorder=3,
    )  # fmt: skip


def title(ax: Axes, text: str, *shown: Any) -> None:
    """Set the title, wrapped to the axes, with marks for data other than the papers'.

    The marks are ``[surrogate data]`` and ``[rebuilt data]`` for histories made with such data, and
    ``[data of unknown origin]`` for a history without a known status. If a history is that of a
    private run, `save` adds "(not released)" to the labels of the y-axis and of those that share
    it: the values there are exact, and the run did not release them. The PNG file of the figure
    names the experiments of all histories, see `fedcore.reports.figure_files`.
    """
    histories = [getattr(one, "history", one) for one in shown]
    figure_files.note_experiments(ax.figure, histories)
    if any(history.released is not None for history in histories):
        ax.set_gid(NOT_RELEASED)
    found = {history.about.get("problem", {}).get("status") for history in histories}
    marks = [f"[{kind} data]" for kind in ("surrogate", "rebuilt") if kind in found]
    if found - set(STATUSES):
        marks.append("[data of unknown origin]")
    spec = ax.get_subplotspec()
    columns = spec.get_gridspec().ncols if spec else 1
    inches = ax.figure.bbox.width / ax.figure.dpi / columns - 0.6  # tick labels stand beside it
    room = max(int(inches * 72.0 / (0.64 * matplotlib.rcParams["font.size"])), 10)
    lines = textwrap.wrap(text, room) or [""]
    for mark in marks:
        if len(lines[-1]) + 1 + len(mark) <= room:
            lines[-1] = f"{lines[-1]} {mark}".lstrip()
        else:
            lines.append(mark)
    ax.set_title("\n".join(lines))


def _align(x: Any, y: Any, label: str) -> tuple[np.ndarray, np.ndarray]:
    """Return x of shape (records,) and y of shape (repeats, records), where there are values."""
    steps, values = np.asarray(x, float), np.atleast_2d(np.asarray(y, float))
    if values.ndim != 2 or steps.shape not in (values.shape, values.shape[1:]):
        raise InputError(
            f"'{label}': x has shape {steps.shape}, y has {values.shape}: give y as (repeats, "
            "records), and x alike or as (records,)"
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
                "as a curve of its own"
            )
        steps = first
    return steps, values


def _lift(ax: Axes, values: np.ndarray, floor: float | None, label: str) -> np.ndarray:
    """Raise values below the floor to it, and draw one line per floor that says so."""
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
        reference_line(ax, floor, text, colour=COLOURS["grey"])
    return np.where(below, floor, values)


def _near(middle: np.ndarray, *ends: np.ndarray) -> np.ndarray:
    """Return a band's ends where they are near the curve, so that few repeats do not hide it.

    Above and below, the axis has at most as many decades more as the curve takes, and at least one.
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
    ranges = {True: (0.0, 100.0), "range": (0.0, 100.0), "95%": (2.5, 97.5)}
    if band not in ranges:
        raise InputError(f"unknown band '{band}': {nearest(str(band), ['range', '95%', 'mean'])}")
    with np.errstate(invalid="ignore"):  # between two values that are infinite
        low, high = np.nanpercentile(values, ranges[band], axis=0)
    return low, high
