"""Tables of the paper `dppower`: the rates of its Table 1, measured.

Nguyen, Ene & Nguyen, *Adaptive power iteration method for differentially private PCA*. The error is
the squared sine of the angle to the top right singular vector of the data, in the last iterate.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from fedcore.algorithms import adaptive_power, analyze_gauss
from fedcore.generators.spiked_rows import top_share
from fedcore.history import History
from fedcore.privacy import accounting
from fedcore.privacy.events import Bounded, Event, Gaussian
from fedcore.reports import audits
from fedcore.reports.report import Table
from fedcore.reports.results import Results
from fedcore.reports.rows import status
from fedcore.reports.summaries import by_group

Rows = list[dict[str, Any]]

NAMES = {
    "analyze_gauss": "Analyze Gauss",
    "adaptive_power": "adaptive",
    "adaptive_power-paper": "adaptive, paper's constants",
    "adaptive_power-tuned": "adaptive, tuned",
    "noisy_power-row": "noisy power, rows",
    "noisy_power-entry": "noisy power, entries",
    "noisy_power-row_by_entries": "noisy power, rows by entries",
    "dn26-entry": "dN26, entries",
    "dn26-row_by_entries": "dN26, rows by entries",
    "private_oja": "private Oja",
    "dp_pca": "DP-PCA",
    "adaptive_search": "adaptive, κ unknown",
}
NOISY = 0.15  # an error below which it falls as the theory says: first order in the noise
AXES = ("n", "d", "ε", "κ", "Υ")
# Exponents of Table 1 at a constant gap and σ₁² ~ n/d, ‖U‖_∞ ~ Υ ~ n^-½; of ε in any setting.
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


def method(history: History) -> str:
    """Return the key of `NAMES` for what has run."""
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
    """Return a row per run: its last error, also to the population's direction, and what it spent.

    The population's direction is (1, …, 1)/√d for the spiked rows, and unknown for real data.
    """
    rows = []
    for experiment in results.plan["experiments"]:
        for problem, algorithm, variant, history in results.select(experiment):
            if experiment in WITHOUT_ERRORS:
                continue
            basis = history.final["basis" if "basis" in history.final else "V"][:, :, 0]
            along = basis.sum(axis=1) ** 2 / basis.shape[1]
            synthetic = "generator" in results.plan["problems"][problem]
            for repeat, error in enumerate(history.last("sin_squared")):
                rows.append(
                    {
                        "experiment": experiment,
                        "problem": problem,
                        "status": status(history),
                        "algorithm": algorithm,
                        "variant": variant,
                        "method": method(history),
                        "n": history.about["problem"]["n_samples"],
                        "d": history.about["problem"]["n_features"],
                        "kappa": _gap(results, problem),
                        "sigma_upsilon_squared": _expected(results, problem),
                        "epsilon": history.about["params"].get("epsilon") or math.inf,
                        "repeat": repeat,
                        "error": float(error),
                        "population_error": 1.0 - float(along[repeat]) if synthetic else math.nan,
                        "spent": _spent(history, repeat),
                    }
                )
    return rows


def lines(rows: Rows, axis: str) -> Iterator[tuple[str, str, np.ndarray, np.ndarray]]:
    """Yield (method, kind of rows, x, errors of shape (repeats, points)) along an axis of a sweep.

    x is n, d or ε; for κ the rate of Table 1 at that κ, and for Υ (σ₁Υ)² of the model of the rows.
    """
    swept = [row for row in rows if _on_axis(row, axis)]
    for key in dict.fromkeys((row["method"], _kind(row["problem"])) for row in swept):
        some = [row for row in swept if (row["method"], _kind(row["problem"])) == key]
        points: dict[float, list[float]] = {}
        for row in some:
            points.setdefault(_coordinate(row, axis), []).append(row["error"])
        x = np.array(sorted(points))
        yield *key, x, np.array([points[value] for value in x]).T


def slopes(rows: Rows) -> Rows:
    """Return slopes of log error along every axis, repeat by repeat, beside those of the theory.

    Fitted where the median error is below `NOISY`; NaN with fewer than two such points.
    """
    found = []
    for axis in AXES:
        for name, kind, x, values in lines(rows, axis):
            if name not in THEORY[axis]:
                continue
            small = np.median(values, axis=0) < NOISY
            for repeat, value in enumerate(values):
                slope = math.nan
                if small.sum() > 1:
                    slope = float(np.polyfit(np.log(x[small]), np.log(value[small]), 1)[0])
                found.append(
                    {
                        "axis": axis,
                        "method": name,
                        "kind": kind,
                        "status": rows[0]["status"],
                        "points": int(small.sum()),
                        "theory": THEORY[axis][name],
                        "repeat": repeat,
                        "slope": slope,
                    }
                )
    return found


def ratios(rows: Rows, results: Results) -> Rows:
    """Return median errors over that of Analyze Gauss on the same problem at the same ε.

    The paper expects (σ₁Υ)² up to logarithms for the adaptive method at a constant gap; Υ is that
    of the model of the rows, for Gaussian ones the expected largest of n.
    """
    origin = {row["problem"]: row["status"] for row in rows}
    values: dict[tuple[str, float], dict[str, list[float]]] = {}
    for row in rows:
        if row["experiment"] not in ("variants", "samples_large_epsilon"):
            some = values.setdefault((row["problem"], row["epsilon"]), {})
            some.setdefault(row["method"], []).append(row["error"])
    medians = {
        key: {name: float(np.median(some)) for name, some in found.items()}
        for key, found in values.items()
    }
    return [
        {
            "problem": problem,
            "status": origin[problem],
            "epsilon": epsilon,
            "method": name,
            "error": error,
            "ratio": error / found["analyze_gauss"],
            "wins": error < found["analyze_gauss"],
            "expected": _expected(results, problem),
        }
        for (problem, epsilon), found in medians.items()
        for name, error in found.items()
        if name != "analyze_gauss" and "analyze_gauss" in found
    ]


def pairs(rows: Rows) -> Rows:
    """Return how much worse one method is than another where the paper prints the factor."""
    found = []
    large = "samples_large_epsilon"
    for name, first, where, second, elsewhere in (
        (
            "noisy-power-composed",
            "noisy_power-row_by_entries",
            "samples",
            "noisy_power-entry",
            "samples",
        ),
        ("dn26-composed", "dn26-row_by_entries", large, "dn26-entry", large),
        ("unknown-gap", "adaptive_search", "variants", "adaptive_power", "dimension"),
    ):
        above = [r for r in rows if (r["experiment"], r["method"]) == (where, first)]
        below = [
            r["error"]
            for r in rows
            if (r["experiment"], r["method"]) == (elsewhere, second)
            and r["problem"] == above[0]["problem"]
        ]
        found.append(
            {
                "pair": name,
                "problem": above[0]["problem"],
                "status": above[0]["status"],
                "d": above[0]["d"],
                "ratio": float(np.median([r["error"] for r in above]) / np.median(below)),
            }
        )
    return found


def crossover(table: Rows, rows: Rows) -> Rows:
    """Return the dimension from which the adaptive method beats Analyze Gauss, by kind of rows.

    From the ratios at ε = 1 and n = 10⁵, linear in the logarithms; extrapolated where it must be.
    """
    d_of = {row["problem"]: row["d"] for row in rows}
    found = []
    for name in ("adaptive_power", "adaptive_power-tuned", "adaptive_power-paper"):
        for kind in ("gaussian", "sign"):
            points = sorted(
                (d_of[row["problem"]], row["ratio"])
                for row in table
                if row["method"] == name
                and row["epsilon"] == 1.0
                and row["problem"] in DIMENSIONS[kind]
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
    """Return the noise of one step under every calibration of Algorithm 1, and what it costs.

    ``variance_factor``: noise variance of a step over that of Analyze Gauss, the price of T
    releases. ``spent``: ε that the accountant finds for it.
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
        events: dict[Event, int] = {
            Gaussian(noise.multiplier): steps,
            Bounded(noise.search): steps,
        }
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
    """Return median errors to the population's direction over that of the SVD without privacy."""
    medians: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        if row["experiment"] in ("samples", "population"):
            medians.setdefault((row["problem"], row["method"]), []).append(row["population_error"])
    return [
        {
            "problem": problem,
            "status": rows[0]["status"],
            "method": name,
            "error": float(np.median(some)),
            "ratio": float(np.median(some) / np.median(medians[problem, "centralized_svd"])),
        }
        for (problem, name), some in medians.items()
        if (problem, "centralized_svd") in medians
    ]


def closed_form(results: Results) -> Rows:
    """Mean error of Analyze Gauss over its first-order value.

    ``σ² Σ_{j>1} (1 − q_j) (σ₁² − σⱼ²)⁻²``, as v₁ᵀE v_j has the variance ``σ² (1 − q_j)`` with q_j =
    Σ_a v₁ₐ² vⱼₐ² for an E of equal variances on and off the diagonal. Here v₁ has nearly equal
    entries, so that q_j = 1/d.
    """
    rows = []
    for problem, _, _, history in results.select("closed_form"):
        eigenvalues = history.reference["singular_values"] ** 2
        sigma = analyze_gauss.noise_multiplier(analyze_gauss.Params(**history.about["params"]))
        expected = sigma**2 * float(np.sum((eigenvalues[0] - eigenvalues[1:]) ** -2.0))
        expected *= 1.0 - 1.0 / len(eigenvalues)
        mean = float(np.mean(history.last("sin_squared")))
        rows.append(
            {
                "problem": problem,
                "status": status(history),
                "repeats": history.repeats,
                "mean": mean,
                "expected": expected,
                "ratio": mean / expected,
            }
        )
    return rows


def lemmas(results: Results) -> Rows:
    """Rows that sat out against Lemma B.1, and ε spent against ε stated, for every private run."""
    found = []
    for experiment in results.plan["experiments"]:
        for problem, algorithm, variant, history in results.select(experiment):
            if "epsilon" not in history.columns or "weakened" in history.about["privacy"]:
                continue
            stated = history.about["params"]["epsilon"]
            for repeat in range(1 if experiment in WITHOUT_ERRORS else history.repeats):
                spent = _spent(history, repeat)
                row = {
                    "experiment": experiment,
                    "problem": problem,
                    "status": status(history),
                    "method": method(history),
                    "variant": variant,
                    "repeat": repeat,
                    "stated": stated,
                    "spent": spent,
                    "within": bool(spent <= stated * (1.0 + 1e-12)),
                    "filtered": math.nan,
                    "bound": math.nan,
                    "share": math.nan,
                }
                if algorithm == "adaptive_power":
                    most = float(np.nanmax(history["filtered"][repeat]))
                    bound = lemma_b1(history)
                    row |= {"filtered": most, "bound": bound, "share": most / bound}
                found.append(row)
    return found


def lemma_b1(history: History) -> float:
    """Return ``8 (log(T log n) + 2 log(2/β)) / ε_s``, ε_s of the sparse vector (Lemma B.1)."""
    params = adaptive_power.Params(**history.about["params"])
    n, T = history.about["problem"]["n_samples"], params.rounds
    log = math.log(T * math.log(n)) + 2.0 * math.log(2.0 / params.failure)
    return 8.0 * log / adaptive_power.calibrate(params).search


WITHOUT_ERRORS = ("closed_form", "audit", "audit_replaced")  # no errors to compare with others
DIMENSIONS = {
    "gaussian": ("gauss20_n5", "gauss100", "gauss1000"),
    "sign": ("sign20", "sign100", "sign1000"),
}
SWEEPS = {
    "n": ("samples", "samples_large_epsilon"),
    "d": ("samples", "dimension"),
    "ε": ("dimension", "budget"),
    "κ": ("samples", "gap"),
    "Υ": ("dimension", "coherence"),
}


def _on_axis(row: dict[str, Any], axis: str) -> bool:
    if row["experiment"] not in SWEEPS[axis] or row["method"] not in NAMES:
        return False
    problem = row["problem"]
    if axis == "d":
        return any(problem in names for names in DIMENSIONS.values()) and row["epsilon"] == 1.0
    if axis == "ε":
        return problem == "gauss100"
    if axis == "Υ":
        return problem in ("sign100", "carried100", "heavy100")
    return axis == "n" or problem in ("gauss20_n5", "gap20", "gap5")


def _kind(problem: str) -> str:
    signs = (*DIMENSIONS["sign"], "carried100", "heavy100")
    return "sign" if problem in signs else "gaussian"


def _coordinate(row: dict[str, Any], axis: str) -> float:
    if axis == "Υ":
        return row["sigma_upsilon_squared"]
    if axis != "κ":
        return float(row[{"n": "n", "d": "d", "ε": "epsilon"}[axis]])
    return rate(row["method"], row["n"], row["d"], row["kappa"], row["epsilon"])


def rate(name: str, n: int, d: int, kappa: float, epsilon: float) -> float:
    """Return the error of Table 1 for Gaussian rows, without constants and logarithms."""
    top = n * top_share(d, kappa)
    first = d / (epsilon * top * kappa) ** 2
    if name != "adaptive_power":
        return first
    # Corollary 1.1 with Υ² = 1/n.
    factor = min(4.0 * n / top, d) / (top * kappa**2) + 1.0 / (top * kappa**3) + d / (top * kappa)
    return factor / (epsilon**2 * n)


def _expected(results: Results, problem: str) -> float:
    """(σ₁Υ)² of the model of the rows, NaN for real data."""
    spec = results.plan["problems"][problem]
    if "generator" not in spec:
        return math.nan
    params = spec["params"]
    s = top_share(params["n_features"], params.get("gap", 0.75))
    if params.get("kind") == "sign":
        return min(1.0, s / params.get("carriers", 1.0)) * params.get("norm", 1.0) ** 4
    return min(1.0, 2.0 * s * math.log(params["n_samples"])) * params.get("norm", 1.0) ** 4


def _gap(results: Results, problem: str) -> float:
    spec = results.plan["problems"][problem]
    return spec["params"].get("gap", 0.75) if "generator" in spec else math.nan


def _spent(history: History, repeat: int) -> float:
    return float(history.last("epsilon")[repeat]) if "epsilon" in history.columns else math.inf


TABLES = {
    "errors": Table(errors, by_group("error", "experiment", "problem", "method", "variant")),
    "slopes": Table(
        lambda results: slopes(errors(results)),
        by_group("slope", "axis", "method", "kind", "theory"),
    ),
    "ratios": Table(lambda results: ratios(errors(results), results)),
    "pairs": Table(lambda results: pairs(errors(results))),
    "crossover": Table(
        lambda results: crossover(ratios(errors(results), results), errors(results))
    ),
    "constants": Table(lambda _: constants()),
    "population": Table(lambda results: population(errors(results))),
    "closed_form": Table(closed_form),
    "lemmas": Table(lemmas, by_group("spent", "method", "stated")),
    "audits": Table(lambda results: audits.bounds(results, "audit", "audit_replaced")),
}
