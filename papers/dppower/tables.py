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

from dppower import factors as dppower_factors
from dppower import laws as dppower_laws
from dppower.laws import fitted, to_population
from dppower.theory import (
    WITHOUT_ERRORS,
    closed_form,
    coherence,
    constants,
    lemmas,
    method,
    model_of,
    population,
    rate,
    sampling,
    sigma_upsilon_squared,
    theorem_1_1,
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
        "noisy_power-row": -2, "noisy_power-entry": -1, "dn26-entry": -1,
        "private_oja": -2, "dp_pca": -2,
    },
    "d": {"analyze_gauss": 3, "adaptive_power": 2, "adaptive_power-tuned": 2},
    "ε": {"analyze_gauss": -2, "adaptive_power": -2, "adaptive_power-tuned": -2},
    "κ": {"analyze_gauss": 1, "adaptive_power": 1},  # of the error against the rate itself
    "Υ": {"adaptive_power": 1},  # of the error against (σ₁Υ)²
}  # fmt: skip
# For each sweep: its experiments, the tag of its problems, and the column of x.
SWEEPS = {
    "n": (("samples", "samples_large_epsilon"), None, "n"),
    "d": (("samples", "dimension"), "over_d", "d"),
    "ε": (("dimension", "budget"), "over_epsilon", "epsilon"),
    "κ": (("samples", "gap"), "over_kappa", None),
    "Υ": (("dimension", "coherence"), "over_upsilon", "sigma_upsilon_squared"),
}
TRENDS = {  # the method that the adaptive one is compared with, and problems
    "better-with-d": ("analyze_gauss", ("gauss20_n5", "gauss1000")),
    "better-than-naive": ("noisy_power-row", ("gauss1000",)),
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
    """
    rows = []
    others = (*WITHOUT_ERRORS, *dppower_laws.EXPERIMENTS, "factors")
    compared = [name for name in results.plan["experiments"] if name not in others]
    for run in results.runs(*compared):
        drawn = "generator" in results.plan["problems"][run.problem]
        model = model_of(results, run) if drawn else None
        rows += run.rows(
            method=method(run.history),
            n=run.data["n_samples"],
            d=run.data["n_features"],
            kind=model["kind"] if model else None,
            kappa=model["gap"] if model else math.nan,
            sigma_upsilon_squared=sigma_upsilon_squared(model) if model else math.nan,
            epsilon=run.history.about["params"].get("epsilon") or math.inf,
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
    """Return comparisons of the adaptive method with another at ε = 1, repeat by repeat.

    ``ratio`` is that of the errors, and for two problems the last one's over the first one's; the
    claim holds if it is below 1.
    """
    errors = {
        (row["method"], row["problem"], row["repeat"]): row["error"]
        for row in rows
        if row["experiment"] not in UNLIKE and row["epsilon"] == 1.0
    }
    found = []
    for trend, (other, problems) in TRENDS.items():
        for repeat in sorted({i for *key, i in errors if key == ["adaptive_power", problems[0]]}):
            both = (
                [errors.get((name, problem, repeat), math.nan) for problem in problems]
                for name in ("adaptive_power", other)
            )
            over = [ours / theirs for ours, theirs in zip(*both, strict=True)]
            ratio = float(over[-1] / over[0] if len(over) > 1 else over[0])
            found.append(
                {"trend": trend, "status": rows[0]["status"], "repeat": repeat}
                | {"ratio": ratio, "holds": flags(ratio < 1.0, ratio)}
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
        by_group("slope", "axis", "method", "kind", "theory"),
    ),
    "ratios": Table(
        lambda results: ratios(errors(results)),
        by_group("ratio", "problem", "epsilon", "method", "expected"),
    ),
    "trends": Table(lambda results: trends(errors(results)), by_group("ratio", "trend")),
    "pairs": Table(
        lambda results: pairs(errors(results)), by_group(("ratio", "exponent"), "pair", "problem")
    ),
    "crossover": Table(lambda results: crossover(ratios(errors(results)), errors(results))),
    "constants": Table(lambda _: constants()),
    "population": Table(
        lambda results: population(errors(results)),
        by_group(("error", "ratio", "share", "share_d"), "problem", "method"),
    ),
    "sampling": Table(lambda results: sampling(errors(results)), by_group(("slope", "share"), "d")),
    "theorem_1_1": Table(theorem_1_1, by_group("share", "problem", "room", "bound")),
    "coherence": Table(
        lambda _: coherence(), by_group(("slope", "share", "slope_heavy", "share_heavy"), "status")
    ),
    "closed_form": Table(closed_form, without("experiment", "algorithm", "variant")),
    "lemmas": Table(lemmas, by_group("spent", "method", "stated")),
    "laws": Table(dppower_laws.laws, by_group("slope", "law", "points")),
    "factors": Table(dppower_factors.factors, by_group("slope", "row", "factor", "points")),
    "small_gap": Table(dppower_laws.small_gap, by_group("ratio", "problem", "gap")),
    "correlation": Table(dppower_laws.correlation, by_group("share", "problem")),
    "audits": Table(lambda results: audits.bounds(results, "audit", "audit_replaced")),
    "audits_gaussian": Table(lambda results: audits.bounds(results, "audit_gaussian")),
}
