"""Theorems and lemmas of `dppower` against its runs, see `dppower.tables`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fedcore.algorithms import adaptive_power, analyze_gauss
from fedcore.history import History
from fedcore.privacy import accounting
from fedcore.privacy.events import Bounded, Gaussian
from fedcore.problems.one_direction import top_share
from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Rows, columns

# No errors to compare with others.
WITHOUT_ERRORS = ("closed_form", "audit", "audit_replaced", "audit_gaussian")
FAILURE = 0.05  # β of the theorems
SIZES = (500, 1000, 2000, 4000, 8000)  # rows, for Lemma C.4
Model = dict[str, Any]  # parameters of a problem's generator


def model_of(results: Results, run: Run) -> Model:
    """Return the parameters of a run's problem, with the generator's defaults."""
    return {"gap": 0.75, "kind": "gaussian"} | results.plan["problems"][run.problem]["params"]


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


def constants(steps: int = 10, epsilon: float = 1.0, delta: float = 1e-6) -> Rows:
    """Return the noise of one step under every calibration of Algorithm 1, and its cost.

    ``variance_factor`` is the noise variance of a step over that of Analyze Gauss, ``spent`` the
    accountant's ε of the whole run, and ``spent_tenth`` that with a tenth of all noise.
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
        whole, tenth = (
            accounting.epsilon(
                {Gaussian(part * noise.multiplier): steps, Bounded(noise.search / part): steps},
                delta,
            )
            for part in (1.0, 0.1)
        )
        found.append(
            {
                "calibration": name,
                "steps": steps,
                "epsilon": epsilon,
                "noise": noise.multiplier,
                "search_epsilon": noise.search,
                "margin": (2.0 + noise.query_scale) * math.log(1.0 / 0.05) / noise.search,
                "spent": whole,
                "spent_tenth": tenth,
                "variance_factor": (noise.multiplier / sigma) ** 2,
            }
        )
    return found


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
    """Return filtered rows against Lemma B.1, and ε spent against ε stated, per private run.

    The verdict on the lemma is on the paper's calibration; other runs have NaN. Of ``share_half``
    half of the rows is filtered. A run without ``errors``, such as an audit, has one row only.
    """
    found = []
    for run in results.runs():
        about = run.history.about
        if "epsilon" not in run.history.columns or "weakened" in about["privacy"]:
            continue
        stated, spent = about["params"]["epsilon"], run.last("epsilon")
        name, most, bound = method(run.history), math.nan, math.nan
        if name == "adaptive_power-paper":
            most = np.nanmax(run["filtered"], axis=1).astype(float)
            bound = lemma_b1(run.history)
        errors = run.experiment not in WITHOUT_ERRORS
        rows = run.rows(
            method=name,
            errors=errors,
            stated=stated,
            spent=spent,
            within=spent <= stated * (1.0 + 1e-12),
            filtered=most,
            bound=bound,
            share=most / bound,
            share_half=0.5 * run.data["n_samples"] / bound,
        )
        found += rows if errors else rows[:1]
    return found


def lemma_b1(history: History) -> float:
    """Return ``8 (log(T log n) + 2 log(2/β)) / ε_s``, ε_s of the sparse vector (Lemma B.1)."""
    given = {key: value for key, value in history.about["params"].items() if key != "start"}
    params = adaptive_power.Params(**given)
    n, T = history.about["problem"]["n_samples"], params.rounds
    log = math.log(T * math.log(n)) + 2.0 * math.log(2.0 / params.failure)
    return 8.0 * log / adaptive_power.calibrate(params).search


def rate(name: str, n: int, d: int, kappa: float, epsilon: float) -> float:
    """Return the error of Table 1 for Gaussian rows, without constants and logarithms."""
    top = n * top_share(d - 1, kappa)
    first = d / (epsilon * top * kappa) ** 2
    if name != "adaptive_power":
        return first
    # Corollary 1.1 with Υ² = 1/n.
    factor = min(4.0 * n / top, d) / (top * kappa**2) + 1.0 / (top * kappa**3) + d / (top * kappa)
    return factor / (epsilon**2 * n)


def sigma_upsilon_squared(model: Model) -> float:
    """Return (σ₁Υ)² of rows by the parameters of `fedcore.generators.spiked_rows`."""
    s = top_share(model["n_features"] - 1, model["gap"])
    sign = model["kind"] == "sign"
    largest = s / model.get("carriers", 1.0) if sign else 2.0 * s * math.log(model["n_samples"])
    return min(1.0, largest) * model.get("norm", 1.0) ** 4


def theorem_1_1(results: Results) -> Rows:
    """Return errors of Algorithm 1 over B of Theorem 1.1, a row per repeat.

    All constants are 1, and ``K = log(Tn/βδ)``. ``room`` is κ over the right side of the theorem's
    condition. The columns with ``random`` are those of a random direction, of error 1 − 1/d.
    """
    rows = []
    for run in results.runs("theorem_1_1"):
        p, (first, second) = run.params, run.history.reference["singular_values"][:2] ** 2
        n, d = run.data["n_samples"], run.data["n_features"]
        kappa, T = (first - second) / first, p.rounds
        K = math.log(T * n / (FAILURE * p.delta))
        top = math.sqrt(sigma_upsilon_squared(model_of(results, run)))  # σ₁Υ
        noise = math.sqrt(min(4.0 * n / first, d)) / math.sqrt(kappa) + 1.0 / kappa + math.sqrt(d)
        bound = noise / (p.epsilon * first) * math.sqrt(T) * K * top
        bound = (bound + K * T * d * (1.0 + kappa / 2.0) ** -T) ** 2
        error, drawn = run.last("sin_squared"), 1.0 - 1.0 / d
        rows += run.rows(
            room=kappa * p.epsilon * first / (4.0 * (K * top + K**2)),
            bound=bound,
            error=error,
            error_random=drawn,
            share=error / bound,
            share_random=drawn / bound,
            norm_share=1.0 / ((1.0 + bound) * np.sqrt(1.0 - error)),
            norm_share_random=1.0 / ((1.0 + bound) * math.sqrt(1.0 - drawn)),
        )
    return rows


def theorem_1_2(n: int, d: int, kappa: float, epsilon: float) -> tuple[float, float]:
    """Return the sum of Theorem 1.2, and that with ``σ̄₁² = 1/d``, which Section 1.1 compares."""
    s, private = top_share(d - 1, kappa), (epsilon * n * kappa) ** -2.0
    terms = (d + 1.0 / kappa) * private / s + 1.0 / (n * s * kappa**2) + (n * s * kappa) ** -2.0
    return terms, d / (n * kappa**2) + (d**2 + d / kappa) * private


def population(rows: Rows) -> Rows:
    """Return errors to the population's direction, a row per repeat.

    ``ratio`` is that over the exact SVD's error on the same rows; ``share`` and ``share_d`` are
    those over the two sums of `theorem_1_2`.
    """
    sampled = [row for row in rows if row["experiment"] in ("samples", "population")]
    found = []
    for row in sampled:
        exact = [
            other["population_error"]
            for other in sampled
            if (other["problem"], other["method"]) == (row["problem"], "centralized_svd")
        ]
        if exact:
            error = row["population_error"]
            sums = theorem_1_2(row["n"], row["d"], row["kappa"], row["epsilon"])
            found.append(
                {name: row[name] for name in ("problem", "status", "method", "repeat")}
                | {"error": error, "ratio": error / exact[0]}
                | {"share": error / sums[0], "share_d": error / sums[1]}
            )
    return found


def sampling(rows: Rows) -> Rows:
    """Return the slope in n of the exact SVD's error to the population, by draws of the rows.

    ``share`` is the error with more rows over ``1/(n σ̄₁² κ̄²)``.
    """
    drawn = [row for row in rows if row["experiment"] == "sampling"]
    sizes = sorted({row["n"] for row in drawn})
    if len(sizes) < 2:
        return []
    few, many = (columns(drawn, "population_error", n=n)[0] for n in (sizes[0], sizes[-1]))
    d, kappa = drawn[0]["d"], drawn[0]["kappa"]
    slopes = np.log(many / few) / math.log(sizes[-1] / sizes[0])
    shares = many * sizes[-1] * top_share(d - 1, kappa) * kappa**2
    return [
        {"status": drawn[0]["status"], "d": d, "repeat": i, "slope": float(a), "share": float(b)}
        for i, (a, b) in enumerate(zip(slopes, shares, strict=True))
    ]


def coherence(repeats: int = 20, d: int = 20, kappa: float = 0.75) -> Rows:
    """Return ‖U‖_∞ of Gaussian rows against Lemma C.4, a row per draw.

    ``slope`` is that against ``√(log n / n)``, ``share`` the largest matrix's ‖U‖_∞ over the bound
    of the lemma's proof. The columns with ``heavy`` are those with a first row 50 times as long.
    """
    rng, found = np.random.default_rng(0), []
    scale = np.sqrt(np.r_[1.0, np.full(d - 1, 1.0 - kappa)])
    n = np.array(SIZES, float)
    log = math.log(n[-1] ** 2 / FAILURE)
    bound = math.sqrt(5.0 * log / (n[-1] - 2.0 * math.sqrt(n[-1] * log)))
    for repeat in range(repeats):
        row: dict[str, Any] = {"status": "synthetic", "repeat": repeat}
        drawn = [rng.standard_normal((size, d)) * scale for size in SIZES]
        for suffix, factor in (("", 1.0), ("_heavy", 50.0)):
            largest = []
            for rows in drawn:
                rows[0] *= factor
                largest.append(float(np.abs(np.linalg.svd(rows, full_matrices=False)[0]).max()))
            x = 0.5 * np.log(np.log(n) / n)
            row[f"slope{suffix}"] = float(np.polyfit(x, np.log(largest), 1)[0])
            row[f"share{suffix}"] = largest[-1] / bound
        found.append(row)
    return found
