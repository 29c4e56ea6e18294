"""Figures 2 and 3 of `factorization` at the points that were read from print.

``printed/<panel>.csv`` has the points: ``curve``, ``x``, and ``y``, the decimal logarithm of the
loss. The tables here have our loss at the same curves and x, a row per figure or per repeat.
``log10_norm`` is for ‖S − UVᵀ‖², twice the loss, which the captions have.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Rows

PRINTED = Path(__file__).parent / "printed"
DRAWS = 50  # of Φ, joined by lines in Figure 2


def printed_curves(panel: str) -> dict[str, np.ndarray]:
    """Return the points of every curve of a panel: x, y and its reading error, (points, 3)."""
    found: dict[str, list[list[float]]] = {}
    with (PRINTED / f"{panel}.csv").open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            found.setdefault(line["curve"], []).append([float(line[c]) for c in ("x", "y", "dy")])
    return {curve: np.array(points) for curve, points in found.items()}


def printed_points(panel: str) -> dict[str, list[float]]:
    """Return the x of every curve of a panel."""
    curves = printed_curves(panel)
    return {curve: list(dict.fromkeys(points[:, 0].tolist())) for curve, points in curves.items()}


def thinned(points: np.ndarray, count: int = 9) -> np.ndarray:
    """Return points of `printed_curves` that stand evenly along their curve, for drawing."""
    points = points[np.argsort(points[:, 0], kind="stable")]
    steps = np.abs(np.diff(points[:, :2], axis=0)) / np.maximum(np.ptp(points[:, :2], axis=0), 1e-9)
    way = np.r_[0.0, steps.sum(axis=1).cumsum()]
    return points[np.unique([np.abs(way - at).argmin() for at in np.linspace(0, way[-1], count)])]


def figure_2_panel(results: Results, panel: str, problem: str) -> Rows:
    """Figure 2: the loss at the printed κ⁻²(V), on lines that join 50 draws of Φ, as printed.

    A figure has no row for an x outside its draws; an x outside all figures has one without a loss.
    """
    points, rows = printed_points(panel), []
    for run in results.runs("fig2_again", problem=problem):
        x, alpha = run.last("kappa") ** -2, f"alpha{run.params.power}"
        curves = {
            f"{alpha}-gd": np.log10(run.last("objective")),
            f"{alpha}-exact": np.log10(run.last("exact_objective")),
        }
        if run.params.power == 0:
            curves["svd-floor"] = np.full(len(x), log10_floor(run))
        for curve, y in curves.items():
            for at in points.get(curve, []):
                figures = np.array_split(np.arange(len(x)), max(1, len(x) // DRAWS))
                losses = [loss_at(at, x[draws], y[draws]) for draws in figures]
                shown = [k for k, loss in enumerate(losses) if loss is not None] or [0]
                rows += [
                    run.row(repeat=k, curve=curve, x=at, **logarithms(losses[k])) for k in shown
                ]
    return rows


def figure_3_panel(results: Results, panel: str, problem: str) -> Rows:
    """Figure 3: the loss after the printed numbers of steps, by what chose the draw of Φ.

    ``select`` is "final" where the best κ(V) chose it, and "initial" where that of SᵀΦ did. With
    α = 0 they are one.
    """
    points, rows = printed_points(panel), []
    for run in results.runs("fig3", problem=problem):
        alpha, momentum = f"alpha{run.params.power}", run.params.momentum
        curves = {f"{alpha}-{'momentum' if momentum else 'gd'}": run["objective"]}
        if momentum:  # V is that of the plain descent, and so is the exact solution
            curves[f"{alpha}-exact"] = run["exact_objective"]
            if run.params.power == 0:
                floor = np.full(run["objective"].shape, 10.0 ** log10_floor(run))
                curves["svd-floor"] = floor
        selects = (run.params.select,) if run.params.power else ("final", "initial")
        for curve, losses in curves.items():
            for repeat, (steps, loss) in enumerate(zip(run["iteration"], losses, strict=True)):
                for at in points.get(curve, []):
                    y = loss_at(at, steps, np.log10(loss))
                    rows += [
                        run.row(repeat=repeat, select=select, curve=curve, x=at, **logarithms(y))
                        for select in selects
                    ]
    return rows


def logarithms(loss: float | None) -> dict[str, float | None]:
    """Return log10 of the loss, and of the squared norm, which is twice the loss."""
    norm = None if loss is None else loss + float(np.log10(2.0))
    return {"log10_loss": loss, "log10_norm": norm}


def log10_floor(run: Run) -> float:
    """Return log10 of ``½ Σ_{i>r} σᵢ²``, the loss of the centralised SVD."""
    tail = run.history.reference["singular_values"][run.params.n_components :]
    return float(np.log10(0.5 * np.sum(tail**2)))


def loss_at(at: float, x: np.ndarray, y: np.ndarray) -> float | None:
    """Return y at an x, on lines that join points in the order of x; None outside them."""
    order = np.argsort(x)
    x, y = x[order], y[order]
    return float(np.interp(at, x, y)) if x[0] <= at <= x[-1] else None
