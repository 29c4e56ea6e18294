"""A figure of all clients' scores on the first two components."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from fedcore.errors import InputError
from fedcore.estimators import FederatedPCA
from fedcore.reports import plotting
from fedcore.reports.curve_styles import CYCLE

MARKERS = "o^sDvP"
MANY = 20  # clients in a column of the legend


def draw(path: str, model: FederatedPCA, data: Mapping[str, Any]) -> list[Path]:
    """Draw PATH.png and PATH.pdf, with a point for each sample and a colour for each client.

    Parameters
    ----------
    path : str
        Path of the figure; an ending .png or .pdf is ignored.
    model : FederatedPCA
        The fitted estimator.
    data : mapping of str to ndarray of shape (n_i, d)
        Samples of each client, keyed by the client's name.

    Raises
    ------
    InputError
        If the model has only one component.
    """
    if model.n_components_ < 2:
        raise InputError("a figure of scores needs two components, not one: ask for two")
    scores = {name: model.transform(x) for name, x in data.items()}
    ratios, privacy = model.explained_variance_ratio_, model.ledger_.privacy
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
        if privacy is not None:
            note = (
                f"ε = {privacy.epsilon():.3g} covers the components, not the points:\n"
                "these are exact, and each client's own."
            )
            figure.supxlabel(note, fontsize=9, x=0.01, ha="left")
        legend = figure.legend(
            loc="outside right upper", markerscale=6 / size, ncols=-(-len(scores) // MANY)
        )
        for handle in legend.legend_handles:
            handle.set_alpha(1.0)  # type: ignore[union-attr]
        return plotting.save(figure, path)
