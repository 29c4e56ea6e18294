"""A figure of all clients' scores on the first two components."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from fedcore.reports import plotting
from fedcore.reports.curve_styles import CYCLE

MARKERS = "o^sDvP"
MANY = 20  # clients in a column of the legend


def draw(
    path: str, scores: Mapping[str, np.ndarray], ratios: np.ndarray, note: str = ""
) -> list[Path]:
    """Draw PATH.png and PATH.pdf: a point for each sample, a colour for each client.

    Parameters
    ----------
    path : str
        Without the ending.
    scores : mapping of str to ndarray of shape (n_i, 2 or more)
        Scores by the names of the clients.
    ratios : ndarray of shape (2 or more,)
        Shares of the variance.
    note : str
        What a reader of the figure has to know.
    """
    with plotting.style():
        figure = Figure(figsize=(6.4, 4.6))
        axes = figure.subplots()
        size = 2 if max(map(len, scores.values())) > 1000 else 4
        for i, (name, x) in enumerate(scores.items()):
            axes.plot(
                x[:, 0], x[:, 1], MARKERS[i // len(CYCLE) % len(MARKERS)],
                color=CYCLE[i % len(CYCLE)], markersize=size, alpha=0.5,
                markeredgewidth=0, label=name, rasterized=True,
            )  # fmt: skip
        axes.set_xlabel(f"component 1 ({ratios[0]:.1%} of the variance)")
        axes.set_ylabel(f"component 2 ({ratios[1]:.1%} of the variance)")
        if note:
            figure.supxlabel(note, fontsize=9, x=0.01, ha="left")
        legend = figure.legend(
            loc="outside right upper", markerscale=6 / size, ncols=-(-len(scores) // MANY)
        )
        for handle in legend.legend_handles:
            handle.set_alpha(1.0)  # type: ignore[union-attr]
        return plotting.save(figure, path)
