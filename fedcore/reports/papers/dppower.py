"""Tables of the paper `dppower`: the rates of its Table 1, measured.

Nguyen, Ene & Nguyen, *Adaptive power iteration method for differentially private PCA*. The error is
the squared sine of the angle to the top right singular vector of the data, in the last iterate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from fedcore.algorithms import adaptive_power, analyze_gauss
from fedcore.generators.spiked_rows import top_share
from fedcore.history import History
from fedcore.privacy import accounting
from fedcore.privacy.events import Bounded, Event, Gaussian
from fedcore.reports import audits
from fedcore.reports.report import Table
from fedcore.reports.results import Results
from fedcore.reports.rows import Rows, chosen, groups, series
from fedcore.reports.summaries import by_group, summarise, without

NOISY = 0.15  # errors below this are small enough for the theory, which is first order in the noise
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
WITHOUT_ERRORS = ("closed_form", "audit", "audit_replaced")  # no errors to compare with others


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


def method(history: History) -> str:
    """Return the key of a method: the algorithm, and parts that distinguish its settings."""
    params, parts = history.about["params"], [history.about["algorithm"]]
    if "protects" in params:
        parts.append(params["protects"])
    if params.get("calibration") == "paper":
        parts.append("paper")
    if "ratio" in params and "search_share" in params:
        parts.append("tuned")
    return "-".join(parts)


@cache
def errors(results: Results) -> Rows:
    """Return a row per repeat: its last error, that to the population's direction, and ε spent.

    The population's direction is (1, …, 1)/√d for the spiked rows, and unknown for real data.
    """
    rows = []
    compared = [name for name in results.plan["experiments"] if name not in WITHOUT_ERRORS]
    for run in results.runs(*compared):
        spec, final = results.plan["problems"][run.problem], run.history.final
        model = {"gap": 0.75, "kind": "gaussian"} | spec["params"] if "generator" in spec else None
        basis = final["basis" if "basis" in final else "V"][:, :, 0]
        along = (basis.sum(axis=1) ** 2 / basis.shape[1]).astype(float)
        rows += run.rows(
            method=method(run.history),
            n=run.data["n_samples"],
            d=run.data["n_features"],
            kind=model["kind"] if model else None,
            kappa=model["gap"] if model else math.nan,
            sigma_upsilon_squared=sigma_upsilon_squared(model) if model else math.nan,
            epsilon=run.history.about["params"].get("epsilon") or math.inf,
            error=run.last("sin_squared"),
            population_error=1.0 - along if model else math.nan,
            spent=run.last("epsilon") if "epsilon" in run.history.columns else math.inf,
        )
    return rows


def lines(rows: Rows, axis: str) -> Iterator[Line]:
    """Yield the lines of a sweep from the table `errors`, in the order of the plan.

    Parameters
    ----------
    rows : list of dict
    axis : {"n", "d", "ε", "κ", "Υ"}
    """
    experiments, tag, column = SWEEPS[axis]
    rated = ("method", "n", "d", "kappa", "epsilon")
    swept = [
        row | {"x": float(row[column] if column else rate(*(row[name] for name in rated)))}
        for row in rows
        if row["experiment"] in experiments
        and (tag is None or row[tag])
        and (axis != "Υ" or row["kind"] == "sign")
    ]
    for key, group in groups(swept, "method", "kind"):
        x, values = series(group, "x", "error")
        yield Line(**key, x=x, errors=values, exponent=THEORY[axis].get(key["method"], math.nan))


def slopes(rows: Rows) -> Rows:
    """Return slopes of log error along every axis, repeat by repeat, and those of the theory.

    The fit uses points with a median error below `NOISY`; NaN with fewer than two such points.
    """
    found = []
    swept = [(axis, line) for axis in SWEEPS for line in lines(rows, axis)]
    for axis, line in swept:
        if math.isnan(line.exponent):
            continue
        small = np.median(line.errors, axis=0) < NOISY
        x, values = np.log(line.x[small]), np.log(line.errors[:, small])
        fitted = np.polyfit(x, values.T, 1)[0] if small.sum() > 1 else [math.nan] * len(values)
        found += [
            {
                "axis": axis,
                "method": line.method,
                "kind": line.kind,
                "status": rows[0]["status"],
                "points": int(small.sum()),
                "theory": line.exponent,
                "repeat": repeat,
                "slope": float(slope),
            }
            for repeat, slope in enumerate(fitted)
        ]
    return found


def ratios(rows: Rows) -> Rows:
    """Return median errors over that of Analyze Gauss on the same problem at the same ε.

    The paper expects (σ₁Υ)² up to logarithms for the adaptive method at a constant gap. Υ is that
    of the model of the rows; for Gaussian rows it is the expected largest of n.
    """
    unlike = ("variants", "samples_large_epsilon")
    compared = [row for row in rows if row["experiment"] not in unlike]
    found = []
    for key, group in groups(compared, "problem", "epsilon"):
        medians = {row["method"]: row["median"] for row in summarise(group, "error", ["method"])}
        found += [
            {
                "problem": key["problem"],
                "status": group[0]["status"],
                "epsilon": key["epsilon"],
                "method": name,
                "error": error,
                "ratio": error / medians["analyze_gauss"],
                "wins": error < medians["analyze_gauss"],
                "expected": group[0]["sigma_upsilon_squared"],
            }
            for name, error in medians.items()
            if name != "analyze_gauss" and "analyze_gauss" in medians
        ]
    return found


def pairs(rows: Rows) -> Rows:
    """Return the ratio of the errors of two methods for which the paper prints a factor."""
    compared = {  # the worse, the better, and the better one's experiment
        "noisy-power-composed": ("noisy_power-row_by_entries", "noisy_power-entry", "samples"),
        "dn26-composed": ("dn26-row_by_entries", "dn26-entry", "samples_large_epsilon"),
        "unknown-gap": ("adaptive_search", "adaptive_power", "dimension"),
    }
    found = []
    for name, (worse, better, experiment) in compared.items():
        above = chosen(rows, method=worse)
        problem = above[0]["problem"]
        below = chosen(rows, method=better, problem=problem, experiment=experiment)
        medians = [np.median([row["error"] for row in some]) for some in (above, below)]
        found.append(
            {
                "pair": name,
                "problem": problem,
                "status": above[0]["status"],
                "d": above[0]["d"],
                "ratio": float(medians[0] / medians[1]),
            }
        )
    return found


def crossover(table: Rows, rows: Rows) -> Rows:
    """Return the dimension from which the adaptive method beats Analyze Gauss, by kind of rows.

    It is interpolated in logarithms from the ratios at ε = 1 along the sweep over d, and
    extrapolated if all ratios are on one side of 1.
    """
    swept = {row["problem"]: row for row in rows if row["over_d"]}
    methods = ("adaptive_power", "adaptive_power-tuned", "adaptive_power-paper")
    found = []
    for name, kind in product(methods, ("gaussian", "sign")):
        points = sorted(
            (swept[row["problem"]]["d"], row["ratio"])
            for row in chosen(table, method=name, epsilon=1.0)
            if row["problem"] in swept and swept[row["problem"]]["kind"] == kind
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


def constants(steps: int = 10, epsilon: float = 1.0, delta: float = 1e-6) -> Rows:
    """Return the noise of one step under every calibration of Algorithm 1, and its cost.

    ``variance_factor`` is the noise variance of a step over that of Analyze Gauss, ``spent`` the
    accountant's ε of the whole run.
    """
    one: dict[str, Any] = {"n_components": 1, "epsilon": epsilon, "delta": delta}
    sigma = analyze_gauss.noise_multiplier(analyze_gauss.Params(**one))
    found = []
    calibrations: dict[str, dict[str, Any]] = {
        "paper, pseudo-code": {"calibration": "paper"},
        "paper, proof of Lemma 3.1": {"calibration": "paper", "constant": "proof"},
        "tight": {},
    }
    for name, settings in calibrations.items():
        params = adaptive_power.Params(**one, rounds=steps, **settings)
        noise = adaptive_power.calibrate(params)
        events: dict[Event, int] = {Gaussian(noise.multiplier): steps, Bounded(noise.search): steps}
        found.append(
            {
                "calibration": name,
                "steps": steps,
                "epsilon": epsilon,
                "noise": noise.multiplier,
                "search_epsilon": noise.search,
                "margin": (2.0 + noise.query_scale) * math.log(1.0 / 0.05) / noise.search,
                "spent": accounting.epsilon(events, delta),
                "variance_factor": (noise.multiplier / sigma) ** 2,
            }
        )
    return found


def population(rows: Rows) -> Rows:
    """Return median errors to the population's direction, and their ratios to the exact SVD's."""
    sampled = [row for row in rows if row["experiment"] in ("samples", "population")]
    medians = {
        (group["problem"], group["method"]): group["median"]
        for group in summarise(sampled, "population_error", ("problem", "method"))
    }
    return [
        {
            "problem": problem,
            "status": rows[0]["status"],
            "method": name,
            "error": error,
            "ratio": error / medians[problem, "centralized_svd"],
        }
        for (problem, name), error in medians.items()
        if (problem, "centralized_svd") in medians
    ]


def closed_form(results: Results) -> Rows:
    """Return the mean error of Analyze Gauss over its first-order value.

    The latter is ``σ² Σ_{j>1} (1 − q_j) (σ₁² − σⱼ²)⁻²`` with q_j = Σ_a v₁ₐ² vⱼₐ². For noise E of
    equal variances on and off the diagonal, v₁ᵀE v_j has the variance ``σ² (1 − q_j)``. Here v₁ has
    nearly equal entries, so that q_j ≈ 1/d.
    """
    rows = []
    for run in results.runs("closed_form"):
        eigenvalues = run.history.reference["singular_values"] ** 2
        sigma = analyze_gauss.noise_multiplier(run.params)
        expected = sigma**2 * float(np.sum((eigenvalues[0] - eigenvalues[1:]) ** -2.0))
        expected *= 1.0 - 1.0 / len(eigenvalues)
        mean, repeats = run.last("sin_squared").mean(), run.history.repeats
        rows.append(run.row(repeats=repeats, mean=mean, expected=expected, ratio=mean / expected))
    return rows


def lemmas(results: Results) -> Rows:
    """Return filtered rows against Lemma B.1, and ε spent against ε stated, per private run."""
    found = []
    for run in results.runs():
        about = run.history.about
        if "epsilon" not in run.history.columns or "weakened" in about["privacy"]:
            continue
        stated, spent = about["params"]["epsilon"], run.last("epsilon")
        most, bound = math.nan, math.nan
        if run.algorithm == "adaptive_power":
            most = np.nanmax(run["filtered"], axis=1).astype(float)
            bound = lemma_b1(run.history)
        rows = run.rows(
            method=method(run.history),
            stated=stated,
            spent=spent,
            within=spent <= stated * (1.0 + 1e-12),
            filtered=most,
            bound=bound,
            share=most / bound,
        )
        found += rows[:1] if run.experiment in WITHOUT_ERRORS else rows
    return found


def lemma_b1(history: History) -> float:
    """Return ``8 (log(T log n) + 2 log(2/β)) / ε_s``, ε_s of the sparse vector (Lemma B.1)."""
    params = adaptive_power.Params(**history.about["params"])
    n, T = history.about["problem"]["n_samples"], params.rounds
    log = math.log(T * math.log(n)) + 2.0 * math.log(2.0 / params.failure)
    return 8.0 * log / adaptive_power.calibrate(params).search


def rate(name: str, n: int, d: int, kappa: float, epsilon: float) -> float:
    """Return the error of Table 1 for Gaussian rows, without constants and logarithms."""
    top = n * top_share(d, kappa)
    first = d / (epsilon * top * kappa) ** 2
    if name != "adaptive_power":
        return first
    # Corollary 1.1 with Υ² = 1/n.
    factor = min(4.0 * n / top, d) / (top * kappa**2) + 1.0 / (top * kappa**3) + d / (top * kappa)
    return factor / (epsilon**2 * n)


def sigma_upsilon_squared(model: dict[str, Any]) -> float:
    """Return (σ₁Υ)² of rows by the parameters of `fedcore.generators.spiked_rows`."""
    s = top_share(model["n_features"], model["gap"])
    sign = model["kind"] == "sign"
    largest = s / model.get("carriers", 1.0) if sign else 2.0 * s * math.log(model["n_samples"])
    return min(1.0, largest) * model.get("norm", 1.0) ** 4


TABLES = {
    "errors": Table(errors, by_group("error", "experiment", "problem", "method", "variant")),
    "slopes": Table(
        lambda results: slopes(errors(results)),
        by_group("slope", "axis", "method", "kind", "theory"),
    ),
    "ratios": Table(lambda results: ratios(errors(results))),
    "pairs": Table(lambda results: pairs(errors(results))),
    "crossover": Table(lambda results: crossover(ratios(errors(results)), errors(results))),
    "constants": Table(lambda _: constants()),
    "population": Table(lambda results: population(errors(results))),
    "closed_form": Table(closed_form, without("experiment", "algorithm", "variant")),
    "lemmas": Table(lemmas, by_group("spent", "method", "stated")),
    "audits": Table(lambda results: audits.bounds(results, "audit", "audit_replaced")),
}
