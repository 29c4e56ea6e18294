"""Rows of Table 1 of `dppower` factor by factor: slopes of errors against the row's own rate.

Along n, ε, the gap, ‖U‖_∞ or d, all else fixed, the slope of log error against log rate is 1 where
the rate is the law of the error. An upper bound asks for less. As n or ε grows, the error falls at
least as fast as the bound; as d or ‖U‖_∞ grows, or the gap shrinks, it rises at most as fast. Each
factor so goes to where it has no end: at its other end, the bound's constant hides the slope. Where
sampling adds a term without ε, ε shrinks instead, and the error rises at most as fast. Where n is
varied for [HR13, HP14] and [dN26], σ₁ grows as √n and n‖U‖²_∞ stays.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from dppower.laws import fitted, to_sample
from dppower.theory import Model, model_of, to_population
from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Rows


class Cells(NamedTuple):
    """Cells of one experiment: a variant, on all of its problems or on some."""

    experiment: str
    variant: str
    problems: tuple[str, ...] | None = None


class Factor(NamedTuple):
    """One factor of a row, and the cells that vary it.

    Attributes
    ----------
    rate : callable
        Of a run and its model, one number.
    falls : bool
        Whether the error has to fall at least as fast as the rate; if not, to rise at most as fast.
    cells : tuple of Cells
    """

    rate: Callable[[Run, Model], float]
    falls: bool
    cells: tuple[Cells, ...]


def coherence(model: Model) -> float:
    """Return n‖U‖²_∞ without logarithms, 1/h where a share h of the rows carries the top."""
    return float(1.0 / model.get("carriers", 1.0))


def hr13(run: Run, model: Model) -> float:
    """Return ``n‖U‖²_∞ σ₁/(ε²(σ₁ − σ₂)³)``, with the singular values of the rows."""
    first, second = run.history.reference["singular_values"][:2]
    return float(coherence(model) * first / (run.params.epsilon**2 * (first - second) ** 3))


def dn26(run: Run, model: Model) -> float:
    """Return ``nd‖U‖²_∞/(ε²(σ₁ − σ₂)²)``, with the singular values of the rows."""
    first, second = run.history.reference["singular_values"][:2]
    scale = run.params.epsilon * (first - second)
    return float(coherence(model) * model["n_features"] / scale**2)


def lkjo22_sampling(run: Run, model: Model) -> float:
    """Return ``d/(nκ̄²)``, the term that falls least as n grows."""
    return float(model["n_features"] / (model["n_samples"] * model["gap"] ** 2))


def lkjo22_privacy(run: Run, model: Model) -> float:
    """Return ``d²/(ε²n²κ̄²)``, the term that rises most as d grows, or ε or κ̄ shrinks."""
    scale = run.params.epsilon * model["n_samples"] * model["gap"]
    return float((model["n_features"] / scale) ** 2)


FACTORS = {  # by row: the algorithm, and factors
    "hr13": ("noisy_power", {
        "n and σ": Factor(hr13, True, (Cells("samples", "entry"),)),
        "ε": Factor(hr13, True, (
            Cells("samples", "entry", ("gauss20_n6",)),
            Cells("factors", "eps-3"), Cells("factors", "eps-10"),
        )),
        "gap": Factor(hr13, False, (Cells("entry_gap", "entry"),)),
        "‖U‖_∞": Factor(hr13, False, (Cells("factors", "carried"),)),
    }),
    "dn26": ("dn26", {
        "n and σ": Factor(dn26, True, (
            Cells("factors", "eps-100"), Cells("entry_gap", "entry", ("gauss20_n6",)),
        )),
        "ε": Factor(dn26, True, (
            Cells("samples_large_epsilon", "entry", ("gauss20_n65",)),
            Cells("factors", "eps-3"), Cells("factors", "eps-30"),
        )),
        "gap": Factor(dn26, False, (Cells("entry_gap", "entry"),)),
        "‖U‖_∞": Factor(dn26, False, (Cells("factors", "carried"),)),
        "d": Factor(dn26, False, (Cells("dn26_dimension", "composed"),)),
    }),
    "lkjo22-3": ("dp_pca", {
        "n": Factor(lkjo22_sampling, True, (Cells("samples", "default"),)),
        "ε": Factor(lkjo22_privacy, False, tuple(
            Cells("factors", name) for name in ("eps-1", "eps-2", "eps-4")
        )),
        "gap": Factor(lkjo22_privacy, False, (Cells("factors", "eps-4"), Cells("factors", "gap"))),
        "d": Factor(lkjo22_privacy, False, (Cells("factors", "d"),)),
    }),
}  # fmt: skip
GAUSSIAN = {  # on Gaussian rows, by the error to their distribution's direction
    "lkjo22-3": ("dp_pca", {
        "n": Factor(lkjo22_sampling, True, (Cells("gaussian_factors", "n"),)),
        "ε": Factor(lkjo22_privacy, False, tuple(
            Cells("gaussian_factors", name) for name in ("eps-1", "eps-2", "eps-4")
        )),
        "gap": Factor(lkjo22_privacy, False, (
            Cells("gaussian_factors", "eps-4"), Cells("gaussian_factors", "gap"),
        )),
        "d": Factor(lkjo22_privacy, False, (Cells("gaussian_factors", "d"),)),
    }),
}  # fmt: skip


def gaussian_factors(results: Results) -> Rows:
    """Return `factors` of the rows of Table 1 that are about Gaussian rows."""
    return factors(results, GAUSSIAN, to_population)


def factors(
    results: Results,
    table: Mapping[str, tuple[str, Mapping[str, Factor]]] = FACTORS,
    error: Callable[[Run], np.ndarray] = to_sample,
) -> Rows:
    """Return the slope of every factor of every row, repeat by repeat.

    ``excess`` is the power of the rate by which the error is worse than the bound: ``1 − slope``
    where it has to fall, ``slope − 1`` where it may rise.
    """
    found = []
    for row, (algorithm, varied) in table.items():
        for name, (rate, falls, cells) in varied.items():
            runs = [
                run
                for experiment, variant, problems in cells
                for run in results.runs(experiment, algorithm=algorithm, variant=variant)
                if problems is None or run.problem in problems
            ]
            if len(runs) < 2:
                continue  # of these cells some were left out
            rates = np.array([rate(run, model_of(results, run)) for run in runs])
            points, slopes = fitted(rates, np.array([error(run) for run in runs]).T)
            found += [
                {"row": row, "factor": name, "status": runs[0].status, "points": points}
                | {"repeat": repeat, "slope": slope, "excess": excess(slope, falls)}
                for repeat, slope in enumerate(slopes)
            ]
    return found


def excess(slope: float | None, falls: bool) -> float | None:
    """Return the power by which an error is worse than the bound, by its slope against it."""
    if slope is None:
        return None
    return 1.0 - slope if falls else slope - 1.0
