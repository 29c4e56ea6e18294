"""Laws of `dppower` that one experiment each was made for: Theorem 1.2 term by term, and dN26.

A law says how an error goes with a rate as problems vary. Its slope is fitted in logarithms, repeat
by repeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from dppower.theory import Model, model_of, to_population
from fedcore.problems.one_direction import top_share
from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Rows

NOISY = 0.15  # errors below this are small enough for the theory, which is first order in the noise


class Law(NamedTuple):
    """A law and the cells that it is fitted to.

    Attributes
    ----------
    experiment, algorithm : str
        Its cells.
    error : callable
        Of a run, shape (repeats,).
    rate : callable
        Of a run and its model, one number.
    over : str, optional
        Algorithm of the same experiment by whose errors the errors are divided.
    variants : tuple of str
        Variant of the algorithm, and of that by whose errors they are divided; by default any.
    problems : tuple of str
        Its problems; by default all of the experiment.
    """

    experiment: str
    algorithm: str
    error: Callable[[Run], np.ndarray]
    rate: Callable[[Run, Model], float]
    over: str | None = None
    variants: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def to_sample(run: Run) -> np.ndarray:
    """Return the error to the singular vector of the rows, shape (repeats,)."""
    return run.last("sin_squared")


def sampling_term(run: Run, model: Model) -> float:
    """Return ``1/(n σ̄₁² κ̄²)`` of Theorem 1.2."""
    return 1.0 / (model["n_samples"] * top(run, model) * model["gap"] ** 2)


def top(run: Run, model: Model) -> float:
    """Return σ̄₁²; the trace is 1."""
    return top_share(model.get("minor", model["n_features"] - 1), model["gap"])


def relative_gap(run: Run, model: Model) -> float:
    """Return σ₁/(σ₁ − σ₂) of the rows."""
    first, second = run.history.reference["singular_values"][:2]
    return float(first / (first - second))


def dimension(run: Run, model: Model) -> float:
    """Return d."""
    return float(model["n_features"])


def moments_rate(run: Run, model: Model) -> float:
    """Return ``d/(σ₁² − σ₂²)²`` of rows A, by the singular values of AᵀA/√d."""
    first, second = run.history.reference["singular_values"][:2]
    return float((first - second) ** -2.0)


def gap(run: Run, model: Model) -> float:
    """Return κ̄."""
    return float(model["gap"])


def samples(run: Run, model: Model) -> float:
    """Return n."""
    return float(model["n_samples"])


def adaptive(
    experiment: str,
    rate: Callable[[Run, Model], float],
    variant: str,
    problems: tuple[str, ...] = (),
) -> Law:
    """Return the law of Algorithm 1's error to the rows' own singular vector."""
    return Law(
        experiment, "adaptive_power", to_sample, rate, variants=(variant,), problems=problems
    )


LAWS = {
    "kappa3-own": adaptive("iid_gap", gap, "own"),
    "noise-top-own": adaptive("iid_top", top, "own"),
    "noise-n-own": adaptive("theorem_1_2", samples, "own", ("iid20_n4", "iid20_n6")),
    "sampling-gap": Law("iid_sampling_gap", "centralized_svd", to_population, sampling_term),
    "sampling-top": Law("iid_sampling_top", "centralized_svd", to_population, sampling_term),
    "dn26-d": Law("dn26_dimension", "dn26", to_sample, dimension),
    "composition": Law(
        "dn26_dimension", "noisy_power", to_sample, dimension, "noisy_power", ("composed", "entry")
    ),
    "dn26-on-moments": Law("squared", "dn26", to_sample, moments_rate),
    "hr13-over-dn26": Law("entry_gap", "noisy_power", to_sample, relative_gap, over="dn26"),
}
EXPERIMENTS = (*(law.experiment for law in LAWS.values()), "small_gap")  # not compared elsewhere


def fitted(
    x: np.ndarray, errors: np.ndarray, over: np.ndarray | None = None
) -> tuple[int, list[float] | list[None]]:
    """Return the number of points with small errors, and slopes over them.

    Parameters
    ----------
    x : ndarray of shape (points,)
    errors : ndarray of shape (repeats, points)
    over : ndarray of shape (repeats, points), optional
        Errors by which they are divided.

    Returns
    -------
    points : int
        Those where every median is below `NOISY`.
    slopes : list
        Of every repeat, of log error, or of that of the ratio, against log x; None with fewer than
        two points.
    """
    small, values = np.median(errors, axis=0) < NOISY, np.log(errors)
    if over is not None:
        small, values = small & (np.median(over, axis=0) < NOISY), values - np.log(over)
    if small.sum() < 2:
        return int(small.sum()), [None] * len(errors)
    return int(small.sum()), np.polyfit(np.log(x[small]), values[:, small].T, 1)[0].tolist()


def laws(results: Results) -> Rows:
    """Return the slope of every law, repeat by repeat."""
    found = []
    for name, law in LAWS.items():
        own, other = ([*({"variant": variant} for variant in law.variants), {}, {}])[:2]
        runs = [
            run
            for run in results.runs(law.experiment, algorithm=law.algorithm, **own)
            if run.problem in (law.problems or (run.problem,))
        ]
        if not runs:
            continue  # the experiment was left out
        rates = np.array([law.rate(run, model_of(results, run)) for run in runs])
        divisors = results.runs(law.experiment, algorithm=law.over, **other) if law.over else ()
        over = _errors(law, divisors) if law.over else None
        points, slopes = fitted(rates, _errors(law, runs), over)
        found += [
            {"law": name, "status": runs[0].status, "points": points}
            | {"repeat": repeat, "slope": slope}
            for repeat, slope in enumerate(slopes)
        ]
    return found


def small_gap(results: Results) -> Rows:
    """Return errors of Algorithm 1 over those of Analyze Gauss, a row per repeat.

    ``ratio`` is for the ε of the whole run, ``own_ratio`` for that of a step of Algorithm 1.
    """
    theirs = {
        (run.problem, run.variant): to_sample(run)
        for run in results.runs("small_gap", algorithm="analyze_gauss")
    }
    found = []
    for run in results.runs("small_gap", algorithm="adaptive_power"):
        error, gap = to_sample(run), model_of(results, run)["gap"]
        own = theirs.get((run.problem, "own")) if run.variant == "paper" else None
        found += run.rows(
            gap=gap,
            error=error,
            ratio=error / theirs[run.problem, "default"],
            own_ratio=math.nan if own is None else error / own,
        )
    return found


def correlation(results: Results) -> Rows:
    """Return the growth of x's products with rows over that of ``|⟨x, v₁⟩|``, a row per repeat.

    From the first step of Algorithm 1 to the last. Of the former few are above the threshold of a
    step, in thresholds of 2^(1/4) for the variant ``tuned``; the rows have norm 1.
    """
    found = []
    for run in results.runs("dimension", algorithm="adaptive_power"):
        if run.variant not in ("tuned", "own"):
            continue
        threshold, along = run["threshold"], np.sqrt(1.0 - run["sin_squared"])
        of_rows = threshold[:, -1] / threshold[:, 1]  # the step that makes record t starts from t−1
        of_top = along[:, -2] / along[:, 0]
        found += run.rows(of_rows=of_rows, of_top=of_top, share=of_rows / of_top)
    return found


def _errors(law: Law, runs: Iterable[Run]) -> np.ndarray:
    """Return the errors of runs on the problems of a law, shape (repeats, problems)."""
    return np.array([law.error(run) for run in runs]).T
