"""Figures that compare several histories on the same data, against rounds, bytes or ε."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fedcore.errors import InputError, require_known
from fedcore.files import outputs
from fedcore.recorder import NOT_RELEASED
from fedcore.reports import plotting
from fedcore.reports.curve_styles import CYCLE, LINESTYLES, look
from fedcore.reports.measures import OBJECTIVES, Recorded, best, measured, why_left_out

AXES = {
    "iteration": "iterations",
    "round": "communication rounds",
    "bytes_up": "sent up, all clients together",
    "bytes_down": "sent down, all clients together",
    "epsilon": "ε spent",
}
LEDGER = ("round", "bytes_up", "bytes_down", "epsilon")
ROUNDING = 1e-16  # smaller values are drawn at this height
UNEVEN = 20  # ratio of longest to shortest history above which the x-axis becomes logarithmic
LINEAR = ("test_accuracy", "training_accuracy", "captured")


def axes(histories: Mapping[str, Recorded]) -> list[str]:
    """Return the columns of `LEDGER` (rounds, bytes, ε) with over two values in some history.

    If there is no such column, the result is ``iteration`` if this column has more than two values
    in some history, and otherwise ``round``.
    """
    found = [name for name in LEDGER if any(_varies(h, name) for h in histories.values())]
    alone = any(_varies(history, "iteration") for history in histories.values())
    return found or ["iteration" if alone else "round"]


def figure(
    histories: Mapping[str, Recorded],
    against: Sequence[str] | None = (),
    metrics: Sequence[str] | None = (),
    *,
    path: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> Figure:
    """Draw every metric against columns such as rounds or bytes, with a curve per history.

    If all histories have the same known best value of an objective, the figure shows the
    objective's relative excess over this value.

    Parameters
    ----------
    histories : mapping of str to History
        Histories, keyed by the names that the legend shows.
    against : sequence of str, optional
        Columns for the horizontal axes: ``round``, ``bytes_up``, ``bytes_down``, ``epsilon`` or
        ``iteration``. The default is ``round``, or ``iteration`` if only iterations vary.
    metrics : sequence of str, optional
        Metrics to draw. The default is all metrics that every history has.
    path : path-like, optional
        Path where `plotting.save` saves the figure.
    force : bool
        Whether to replace files at `path` that fedcore has not written.
    """
    against, metrics = (() if names is None else list(names) for names in (against, metrics))
    for file in () if path is None else plotting.files(path):
        outputs.require(file, "figure", force=force)
    common = set.intersection(*(set(measured(history)) for history in histories.values()))
    chosen = metrics or sorted(common)
    lacks = any(name not in history.columns for name in chosen for history in histories.values())
    if (lacks or not chosen) and (
        why := why_left_out(history.about for history in histories.values())
    ):
        raise InputError(f"not drawn: {why}")
    if not chosen:
        whose = "has no metric" if len(histories) == 1 else "have no metric in common"
        private = any(history.released is not None for history in histories.values())
        way = "run it with measure=['objective'], or on the command line with --metric objective"
        raise InputError(
            f"nothing to draw: {', '.join(histories)} {whose}{'' if private else f': {way}'}"
        )
    for name in chosen:
        for label, history in histories.items():
            require_known(name, measured(history), f"{label} has no metric", InputError)
    there = [name for name in AXES if any(name in h.columns for h in histories.values())]
    varied = [name for name in axes(histories) if name in ("round", "iteration")]
    across = against or [name for name in varied or ["round"] if name in there] or there[:1]
    for name in across:
        require_known(name, AXES, "unknown axis", InputError)
        require_known(name, there, f"{', '.join(histories)}: no column", InputError)
    drawn = _looks(histories)
    with plotting.style():
        figure = Figure(figsize=(4.5 * len(across), 4.0 * len(chosen)))
        grid = figure.subplots(len(chosen), len(across), squeeze=False)
        for row, metric in zip(grid, chosen, strict=True):
            for ax, axis in zip(row, across, strict=True):
                _panel(ax, histories, metric, axis, drawn)
        curves, _ = grid[-1, -1].get_legend_handles_labels()
        curves.sort(key=lambda line: line.get_ydata()[-1], reverse=True)
        grid[-1, -1].legend(handles=curves)
    if path is not None:
        plotting.save(figure, path, histories.values())
    plotting.show(figure)
    return figure


def _looks(histories: Mapping[str, Recorded]) -> Mapping[str, Mapping[str, Any]]:
    """Return ``color`` and ``linestyle`` of each history.

    A history has the colour and line of its algorithm. If two histories share an algorithm, all
    histories get colours and lines by their order.
    """
    names = {label: str(h.about.get("algorithm")) for label, h in histories.items()}
    if len(set(names.values())) == len(names):
        return {label: look(name) for label, name in names.items()}
    pairs = itertools.cycle(itertools.product(LINESTYLES, CYCLE))
    drawn = zip(names, pairs, strict=False)
    return {label: {"color": colour, "linestyle": line} for label, (line, colour) in drawn}


def _panel(
    ax: Axes,
    histories: Mapping[str, Recorded],
    metric: str,
    axis: str,
    drawn: Mapping[str, Mapping[str, Any]],
) -> None:
    """Draw one metric of all histories against one of their columns, such as rounds."""
    limit = _common_best(histories.values(), metric)
    excess = limit is not None and limit > 0 and metric in OBJECTIVES
    linear = metric in LINEAR or any(np.any(h.columns[metric] < 0) for h in histories.values())
    if not linear:
        plotting.log10_axis(ax, "y")
    for label, history in histories.items():
        if axis in history.columns:  # there is no ε of a run without privacy
            values = history.columns[metric]
            values = values / limit - 1 if excess else values
            _curves(ax, history, axis, values, label, drawn[label], None if linear else ROUNDING)
    if not ax.lines:
        plotting.leave_empty(ax, "no finite value")
    if linear and limit is not None:
        plotting.reference_line(ax, limit, "at best")
    _stretch(ax, histories, axis)
    _name(ax, histories, metric, axis, excess=excess)


def _curves(
    ax: Axes,
    history: Recorded,
    axis: str,
    values: np.ndarray,
    label: str,
    drawn: Mapping[str, Any],
    floor: float | None,
) -> None:
    """Draw a history: median and band of its repeats, or a curve per repeat if x-values differ."""
    held = history.columns[axis].astype(float)
    held[history.columns["iteration"] < 0] = np.nan  # of a repeat that ended early
    values = np.where(np.isnan(held) | ~np.isfinite(values), np.nan, values)
    if np.isnan(values).all():
        return
    alike = np.all(np.isnan(held) | (held == np.nanmax(held, axis=0)), axis=0).all()
    every = [list(range(len(held)))] if alike else [[i] for i in range(len(held))]
    for number, rows in enumerate(every):
        name = label if number == 0 else f"_{label} {number}"  # in the legend there is one of them
        plotting.curve(ax, held[rows], values[rows], label=name, floor=floor, **drawn)


def _name(
    ax: Axes, histories: Mapping[str, Recorded], metric: str, axis: str, *, excess: bool
) -> None:
    """Label axes and set the title, which also names the data in the first column of panels."""
    if axis.startswith("bytes"):
        plotting.bytes_axis(ax, AXES[axis])
    else:
        ax.set_xlabel(AXES[axis])
        if axis != "epsilon" and ax.get_xscale() == "linear":
            ax.locator_params("x", integer=True)
    one, *_ = histories.values()
    units = one.units.get(metric, ("", ""))[0]
    with_units = metric if units in ("", "1") else f"{metric} ({units})"
    ax.set_ylabel(f"{metric} over the best possible, less 1" if excess else with_units)
    if any(history.released is not None for history in histories.values()):
        ax.set_ylabel(f"{ax.get_ylabel()}\n({NOT_RELEASED})")
    every = {str(h.about.get("problem", {}).get("name", "")) for h in histories.values()}
    data = every.pop() if len(every) == 1 else ""
    place = ax.get_subplotspec()
    first = place is None or place.is_first_col()
    named = f"{metric}, {data}" if first and data else metric
    plotting.title(ax, named, *histories.values())


def _stretch(ax: Axes, histories: Mapping[str, Recorded], axis: str) -> None:
    """Make the x-axis logarithmic above a short linear part if history lengths differ widely."""
    every = [h.columns for h in histories.values() if axis in h.columns]
    held = [columns[axis][columns["iteration"] >= 0] for columns in every]
    ends = [float(values.max()) for values in held if values.max() > 0]
    if len(ends) > 1 and max(ends) > UNEVEN * min(ends):
        first = min(float(values[values > 0].min()) for values in held if values.max() > 0)
        plotting.from_zero(ax, 10.0 ** np.floor(np.log10(first)))  # ticks below would collide


def _varies(history: Recorded, name: str) -> bool:
    if name not in history.columns:
        return False
    kept = history.columns[name][history.columns["iteration"] >= 0]
    return bool(np.ptp(kept) > 0) and len(np.unique(kept)) > 2


def _common_best(histories: Collection[Recorded], metric: str) -> float | None:
    """Return a metric's best possible value; None if unknown or different between histories."""
    found = [best(history, metric) for history in histories]
    known = [values for values in found if values is not None]
    if len(known) < len(found) or np.ptp(np.concatenate(known)) > 1e-9 * abs(known[0][0]):
        return None
    return float(known[0][0])
