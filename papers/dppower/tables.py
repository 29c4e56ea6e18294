"""Tables of the paper `dppower`: the rates of its Table 1, measured.

Nguyen, Ene & Nguyen, *Adaptive power iteration method for differentially private PCA*. The error is
the squared sine of the angle to the top right singular vector of the data, in the last iterate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from dppower import bounds as dppower_bounds
from dppower import factors as dppower_factors
from dppower import laws as dppower_laws
from dppower.factors import excess
from dppower.laws import NOISY, fitted
from dppower.theory import (
    WITHOUT_ERRORS,
    closed_form,
    coherence,
    constants,
    lemmas,
    model_of,
    named,
    population,
    rate,
    sampling_bound,
    sigma_upsilon_squared,
    step_epsilon,
    theorem_1_1,
    theorem_1_2,
    to_population,
)
from fedcore.repro.tables import audits
from fedcore.repro.tables.report import Table
from fedcore.repro.tables.results import Results
from fedcore.repro.tables.rows import Rows, chosen, flags, groups, series
from fedcore.repro.tables.summaries import by_group, without

# Exponents of Table 1 at a constant gap, σ₁² ~ n/d and ‖U‖_∞ ~ Υ ~ n^-½; that of ε always holds.
THEORY = {
    "n": {
        "analyze_gauss": -2, "adaptive_power": -2, "adaptive_power-paper": -2,
        "adaptive_power-own": -2, "noisy_power-row": -2, "noisy_power-entry": -1,
        "dn26-entry": -1, "private_oja": -2, "dp_pca": -2,
    },
    "d": {
        "analyze_gauss": 3, "adaptive_power": 2, "adaptive_power-own": 2, "adaptive_power-tuned": 2,
    },
    "ε": {
        "analyze_gauss": -2, "adaptive_power": -2, "adaptive_power-own": -2,
        "adaptive_power-tuned": -2,
    },
    # Of the error against the rate itself.
    "κ": {"analyze_gauss": 1, "adaptive_power": 1, "adaptive_power-own": 1},
    "Υ": {"adaptive_power": 1, "adaptive_power-own": 1},  # of the error against (σ₁Υ)²
}  # fmt: skip
FALLING = ("n", "ε")  # axes along which an error falls
# For each sweep: its experiments, the tag of its problems, and the column of x.
SWEEPS = {
    "n": (("samples", "samples_large_epsilon"), None, "n"),
    "d": (("samples", "dimension"), "over_d", "d"),
    "ε": (("dimension", "budget"), "over_epsilon", "epsilon"),
    "κ": (("samples", "gap"), "over_kappa", None),
    "Υ": (("dimension", "coherence"), "over_upsilon", "sigma_upsilon_squared"),
}
# Problems at both ends of the sweep over d, by kind of rows.
ENDS = {"gaussian": ("gauss20_n5", "gauss1000"), "sign": ("sign20", "sign1000")}
RIVALS = {  # method and variant of the adaptive method, and of that which it is compared with
    "own": (("adaptive_power-own", "own"), ("analyze_gauss", "default")),
    "lemma-31": (("adaptive_power-own", "own"), ("analyze_gauss", "whole")),
    "tight": (("adaptive_power", "default"), ("analyze_gauss", "default")),
    "naive-own": (("adaptive_power-own", "own"), ("noisy_power-row", "naive")),
    "naive-tight": (("adaptive_power", "default"), ("noisy_power-row", "row")),
}
# Experiments that vary what is held in the comparisons.
UNLIKE = ("variants", "samples_large_epsilon", "theorem_1_1")


class Line(NamedTuple):
    """Errors of a method along an axis of a sweep.

    Attributes
    ----------
    method, kind : str
        Keys of the method and of the distribution of the rows.
    x : ndarray of shape (points,)
        n, d or ε; for κ the rate of Table 1 at that κ, and for Υ (σ₁Υ)² of the model of the rows.
    errors : ndarray of shape (repeats, points)
    exponent : float
        Slope of Table 1 in logarithms; NaN where it has none.
    """

    method: str
    kind: str
    x: np.ndarray
    errors: np.ndarray
    exponent: float

    @property
    def theory(self) -> np.ndarray:
        """The line with the slope of Table 1 through the last median, shape (points,)."""
        return np.median(self.errors[:, -1]) * (self.x / self.x[-1]) ** self.exponent


@cache
def errors(results: Results) -> Rows:
    """Return a row per repeat: its last error, that to the population's direction, and ε spent.

    The population's direction is (1, …, 1)/√d for the spiked rows, and unknown for real data.
    ``epsilon`` is the run's, but for ``adaptive_power-own`` that of a step, Algorithm 1's own.
    """
    rows = []
    others = (*WITHOUT_ERRORS, *dppower_laws.EXPERIMENTS, "factors", "gaussian_factors")
    compared = [name for name in results.plan["experiments"] if name not in others]
    for run in results.runs(*compared):
        drawn = "generator" in results.plan["problems"][run.problem]
        model = model_of(results, run) if drawn else None
        rows += run.rows(
            method=named(run.history, run.variant),
            n=run.data["n_samples"],
            d=run.data["n_features"],
            kind=model["kind"] if model else None,
            kappa=model["gap"] if model else math.nan,
            sigma_upsilon_squared=sigma_upsilon_squared(model) if model else math.nan,
            epsilon=step_epsilon(run) or math.inf,
            error=run.last("sin_squared"),
            population_error=to_population(run) if model else math.nan,
            spent=run.last("epsilon") if "epsilon" in run.history.columns else math.inf,
        )
    return rows


def lines(rows: Rows, axis: str) -> Iterator[Line]:
    """Yield the lines of a sweep from the table `errors`, in the order of the plan."""
    experiments, tag, column = SWEEPS[axis]
    rated = ("method", "n", "d", "kappa", "epsilon")
    swept = [
        row | {"x": float(row[column] if column else rate(*(row[name] for name in rated)))}
        for row in rows
        if row["experiment"] in experiments
        and (tag is None or row.get(tag))
        and (axis != "Υ" or row["kind"] == "sign")
    ]
    for key, group in groups(swept, "method", "kind"):
        x, values = series(group, "x", "error")
        yield Line(**key, x=x, errors=values, exponent=THEORY[axis].get(key["method"], math.nan))


def slopes(rows: Rows) -> Rows:
    """Return slopes of log error along every axis, repeat by repeat, and those of the theory.

    The fit uses points with a median error below `dppower_laws.NOISY`; None with fewer than two.
    ``excess`` is the share of the theory's exponent by which the error is worse than it, see
    `dppower.factors`.
    """
    found = []
    swept = [(axis, line) for axis in SWEEPS for line in lines(rows, axis)]
    for axis, line in swept:
        if math.isnan(line.exponent):
            continue
        points, exponents = fitted(line.x, line.errors)
        found += [
            {
                "axis": axis,
                "method": line.method,
                "kind": line.kind,
                "status": rows[0]["status"],
                "points": points,
                "theory": line.exponent,
                "repeat": repeat,
                "slope": slope,
                "excess": excess(None if slope is None else slope / line.exponent, axis in FALLING),
            }
            for repeat, slope in enumerate(exponents)
        ]
    return found


def ratios(rows: Rows) -> Rows:
    """Return errors over that of Analyze Gauss on the same problem at the same ε, repeat by repeat.

    The paper expects (σ₁Υ)² up to logarithms for the adaptive method at a constant gap. Υ is that
    of the model of the rows; for Gaussian rows it is the expected largest of n.
    """
    compared = [row for row in rows if row["experiment"] not in UNLIKE]
    found = []
    for key, group in groups(compared, "problem", "epsilon"):
        gauss = {row["repeat"]: row["error"] for row in chosen(group, method="analyze_gauss")}
        for row in group:
            if row["method"] != "analyze_gauss" and row["repeat"] in gauss:
                ratio = row["error"] / gauss[row["repeat"]]
                named = {name: row[name] for name in ("status", "method", "repeat", "error")}
                expected = row["sigma_upsilon_squared"]
                found.append(key | named | {"ratio": ratio, "expected": expected})
    return found


def trends(rows: Rows) -> Rows:
    """Return comparisons of the adaptive method with another over d, repeat by repeat.

    ``ratio`` is that of the errors at the last problem of `ENDS` for the trend ``smaller``, and
    that over the ratio at the first one for ``falls``; a claim holds if it is below 1. It is NaN
    where a median error of the adaptive method is not below `dppower.laws.NOISY`.
    """
    compared = [row for row in rows if row["experiment"] not in UNLIKE]
    found = []
    for (noise, (ours, theirs)), (kind, problems) in product(RIVALS.items(), ENDS.items()):
        errors = {
            (name, problem): {
                row["repeat"]: row["error"]
                for row in chosen(compared, method=name[0], variant=name[1], problem=problem)
            }
            for name, problem in product((ours, theirs), problems)
        }
        at_ends = [errors[ours, problem] for problem in problems]
        if not at_ends[-1]:
            continue  # the experiment was left out
        large = any(np.median(list(e.values())) >= NOISY for e in at_ends if e)
        for repeat in sorted(at_ends[-1]):
            first, last = (
                math.nan
                if large
                else errors[ours, problem].get(repeat, math.nan)
                / errors[theirs, problem].get(repeat, math.nan)
                for problem in problems
            )
            for trend, ratio in (("falls", last / first), ("smaller", last)):
                found.append(
                    {"trend": trend, "noise": noise, "kind": kind, "status": rows[0]["status"]}
                    | {"repeat": repeat, "ratio": ratio, "holds": flags(ratio < 1.0, ratio)}
                )
    return found


def pairs(rows: Rows) -> Rows:
    """Return the ratio of the errors of two methods, and it as a power of d, repeat by repeat.

    Both are None in a repeat of which the better one has no run.
    """
    samples, large = "samples", "samples_large_epsilon"
    compared = {  # the worse and the better, each with its experiment
        "noisy-power-composed": (
            "noisy_power-row_by_entries",
            samples,
            "noisy_power-entry",
            samples,
        ),
        "dn26-composed": ("dn26-row_by_entries", large, "dn26-entry", large),
        "unknown-gap": ("adaptive_search", "variants", "adaptive_power", "dimension"),
    }
    found = []
    for name, (worse, its_own, better, experiment) in compared.items():
        above = chosen(rows, method=worse, experiment=its_own)
        if not above:
            continue  # the experiment was left out
        problem, d = above[0]["problem"], above[0]["d"]
        below = {
            row["repeat"]: row["error"]
            for row in chosen(rows, method=better, problem=problem, experiment=experiment)
        }
        for row in above:
            other = below.get(row["repeat"])
            ratio = None if other is None else row["error"] / other
            named = {key: row[key] for key in ("problem", "status", "repeat", "d")}
            exponent = None if ratio is None else math.log(ratio) / math.log(d)
            found.append({"pair": name, **named, "ratio": ratio, "exponent": exponent})
    return found


def crossover(table: Rows, rows: Rows) -> Rows:
    """Return the dimension from which the adaptive method beats Analyze Gauss, by kind of rows.

    It is interpolated in logarithms from the ratios at ε = 1 along the sweep over d, and
    extrapolated if all ratios are on one side of 1.
    """
    swept = {row["problem"]: row for row in rows if row.get("over_d")}
    methods = ("adaptive_power", "adaptive_power-tuned", "adaptive_power-paper")
    found = []
    for name, kind in product(methods, ("gaussian", "sign")):
        points = sorted(
            (swept[key["problem"]]["d"], float(np.median([row["ratio"] for row in group])))
            for key, group in groups(chosen(table, method=name, epsilon=1.0), "problem")
            if key["problem"] in swept and swept[key["problem"]]["kind"] == kind
        )
        if len(points) < 2:
            continue
        d, ratio = np.log(np.array(points)).T
        inside = ratio.min() < 0 < ratio.max()
        if inside:
            i = max(int(np.argmax(ratio < 0)), 1)
            d, ratio = d[i - 1 : i + 1], ratio[i - 1 : i + 1]
        slope, offset = np.polyfit(d, ratio, 1)
        found.append(
            {
                "method": name,
                "kind": kind,
                "status": rows[0]["status"],
                "dimension": math.exp(-offset / slope) if slope < 0 else math.inf,
                "extrapolated": not inside,
            }
        )
    return found


TABLES = {
    "errors": Table(errors, by_group("error", "experiment", "problem", "method", "variant")),
    "slopes": Table(
        lambda results: slopes(errors(results)),
        by_group(("slope", "excess"), "axis", "method", "kind", "theory"),
    ),
    "ratios": Table(
        lambda results: ratios(errors(results)),
        by_group("ratio", "problem", "epsilon", "method", "expected"),
    ),
    "trends": Table(
        lambda results: trends(errors(results)), by_group("ratio", "trend", "noise", "kind")
    ),
    "pairs": Table(
        lambda results: pairs(errors(results)), by_group(("ratio", "exponent"), "pair", "problem")
    ),
    "crossover": Table(lambda results: crossover(ratios(errors(results)), errors(results))),
    "constants": Table(lambda _: constants()),
    "population": Table(
        lambda results: population(errors(results)),
        by_group(("error", "ratio"), "problem", "method"),
    ),
    "theorem_1_1": Table(theorem_1_1, by_group("share", "problem", "variant", "room", "bound")),
    "theorem_1_2": Table(theorem_1_2, by_group("share", "problem", "bound")),
    "sampling_bound": Table(sampling_bound, by_group("share", "problem", "bound")),
    "coherence": Table(lambda _: coherence(), by_group(("slope", "share"), "status")),
    "bounds": Table(lambda _: dppower_bounds.bounds()),
    "privacy": Table(lambda _: dppower_bounds.privacy()),
    "mechanism": Table(lambda _: dppower_bounds.mechanism()),
    "closed_form": Table(closed_form, without("experiment", "algorithm", "variant")),
    "lemmas": Table(lemmas, by_group("spent", "method", "stated")),
    "laws": Table(dppower_laws.laws, by_group("slope", "law", "points")),
    "factors": Table(dppower_factors.factors, by_group("slope", "row", "factor", "points")),
    "gaussian_factors": Table(
        dppower_factors.gaussian_factors, by_group("slope", "row", "factor", "points")
    ),
    "small_gap": Table(
        dppower_laws.small_gap, by_group(("ratio", "own_ratio"), "problem", "variant", "gap")
    ),
    "correlation": Table(dppower_laws.correlation, by_group("share", "problem", "variant")),
    "audits": Table(lambda results: audits.bounds(results, "audit", "audit_replaced")),
    "audits_gaussian": Table(lambda results: audits.bounds(results, "audit_gaussian")),
}
