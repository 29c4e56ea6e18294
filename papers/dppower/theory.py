"""Theorems and lemmas of `dppower` against its runs, see `dppower.tables`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fedcore.algorithms import adaptive_power, analyze_gauss
from fedcore.history import History
from fedcore.privacy import accounting
from fedcore.privacy.events import Bounded, Event, Gaussian
from fedcore.problems.one_direction import top_share
from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Rows

# No errors to compare with others.
WITHOUT_ERRORS = ("closed_form", "audit", "audit_replaced", "audit_gaussian")
FAILURE = 0.05  # β of the theorems
SIZES = (500, 1000, 2000, 4000, 8000)  # rows, for Lemma C.4
Model = dict[str, Any]  # parameters of a problem's generator


def model_of(results: Results, run: Run) -> Model:
    """Return the parameters of a run's problem, with the generator's defaults."""
    return {"gap": 0.75, "kind": "gaussian"} | results.plan["problems"][run.problem]["params"]


def to_population(run: Run) -> np.ndarray:
    """Return the error to (1, …, 1)/√d, the distribution's direction, shape (repeats,)."""
    final = run.history.final
    x = final["basis" if "basis" in final else "V"][:, :, 0]
    return 1.0 - (x.sum(axis=1) ** 2 / x.shape[1]).astype(float)


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


def named(history: History, variant: str) -> str:
    """Return the key of a method, ``adaptive_power-own`` where a step's own ε is laid down."""
    return "adaptive_power-own" if variant.startswith("own") else method(history)


def own(params: adaptive_power.Params) -> tuple[float, float]:
    """Return ε and δ that Algorithm 1 is given: by Lemma 3.1 those of a step, or the whole run's.

    The run's are ``ε′ = 2(Tε² + √(2 log(1/δ) T) ε)`` and ``δ′ = (T + 1) δ``.
    """
    assert params.epsilon is not None
    if params.calibration != "paper":
        return params.epsilon, params.delta
    return adaptive_power.calibrate(params).search, params.delta / (params.rounds + 1)


def step_epsilon(run: Run) -> float | None:
    """Return ε of a run, or of a step where that is what the variant lays down."""
    if run.variant.startswith("own"):
        return round(own(run.params)[0], 6)
    return run.history.about["params"].get("epsilon")


def constants(steps: int = 10, epsilon: float = 1.0, delta: float = 1e-6) -> Rows:
    """Return the noise of one step under every calibration of Algorithm 1, and its cost.

    ``variance_factor`` is the noise variance of a step over that of Analyze Gauss, and ``spent``
    the accountant's ε of the whole run.
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

    The lemma is about the paper's calibration; other runs have NaN. A run without ``errors``, such
    as an audit, has one row only.
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
    if not name.startswith("adaptive_power"):
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

    All constants are 1. ``room`` is κ over the right side of the theorem's condition. ε and δ are
    those that Algorithm 1 is given; the columns with ``whole`` take the run's, by Lemma 3.1.
    """
    rows = []
    for run in results.runs("theorem_1_1"):
        p, (first, second) = run.params, run.history.reference["singular_values"][:2] ** 2
        n, d = run.data["n_samples"], run.data["n_features"]
        kappa, T = float((first - second) / first), p.rounds
        top = math.sqrt(sigma_upsilon_squared(model_of(results, run)))  # σ₁Υ
        epsilon, delta = own(p)
        K = log_term(n, T, delta)
        bound = bound_1_1(n, d, first, kappa, top, epsilon, delta, T)
        whole = bound_1_1(n, d, first, kappa, top, p.epsilon, p.delta, T)
        error = run.last("sin_squared")
        least = np.sqrt(1.0 - error)  # ‖AᵀAx‖/σ₁² is at least this
        rows += run.rows(
            room=kappa * epsilon * first / (4.0 * (K * top + K**2)),
            bound=bound,
            error=error,
            share=error / bound,
            whole_share=error / whole,
            norm_share=1.0 / ((1.0 + bound) * least),
            whole_norm_share=1.0 / ((1.0 + whole) * least),
        )
    return rows


def log_term(n: int, T: int, delta: float) -> float:
    """Return ``K = log(Tn/βδ)`` of Theorem 1.1."""
    return math.log(T * n / (FAILURE * delta))


def bound_1_1(
    n: int, d: int, first: float, kappa: float, top: float, epsilon: float, delta: float, T: int
) -> float:
    """Return B of Theorem 1.1 with constants 1; `first` is σ₁² and `top` is σ₁Υ."""
    K = log_term(n, T, delta)
    noise = math.sqrt(min(4.0 * n / first, d)) / math.sqrt(kappa) + 1.0 / kappa + math.sqrt(d)
    bound = noise / (epsilon * first) * math.sqrt(T) * K * top
    return (bound + K * T * d * (1.0 + kappa / 2.0) ** -T) ** 2


def sampling_bound_of(n: int, d: int, top: float, kappa: float) -> float:
    """Return ``(G/(nσ̄₁²κ̄))²`` of Theorem C.3 with constants 1, G of Lemma C.2; `top` is σ̄₁²."""
    log = math.log(d / FAILURE)
    G = max(math.sqrt(n * top * log), math.log(n / FAILURE) * log)
    return (G / (n * top * kappa)) ** 2


def theorem_1_2(results: Results) -> Rows:
    """Return errors of Algorithm 1 to the distribution's direction over the bound of Theorem 1.2.

    The bound is ``2(sampling + B)`` by Lemma C.6, with the logarithms of the proof and constants 1:
    that of Theorem C.3, and B of Theorem 1.1 for ``σ₁² = nσ̄₁²/L²``, ``κ = κ̄``, ``Υ² = log(n/β)/n``
    (Lemma C.4) and ``L² = log(n/β)``.
    """
    rows = []
    for run in results.runs("theorem_1_2", algorithm="adaptive_power"):
        model = model_of(results, run)
        n, d, kappa = (model[name] for name in ("n_samples", "n_features", "gap"))
        top, log = top_share(model.get("minor", d - 1), kappa), math.log(n / FAILURE)
        first = n * top / log
        epsilon, delta = own(run.params)
        private = bound_1_1(
            n, d, first, kappa, math.sqrt(first * log / n), epsilon, delta, run.params.rounds
        )
        bound = 2.0 * (sampling_bound_of(n, d, top, kappa) + private)
        error = to_population(run)
        rows += run.rows(bound=bound, error=error, share=error / bound)
    return rows


def sampling_bound(results: Results) -> Rows:
    """Return errors of the rows' own singular vector over the bound of Theorem C.3, by draws."""
    rows = []
    for run in results.runs("iid_sampling_gap", "iid_sampling_top"):
        model = model_of(results, run)
        n, d, kappa = (model[name] for name in ("n_samples", "n_features", "gap"))
        bound = sampling_bound_of(n, d, top_share(model.get("minor", d - 1), kappa), kappa)
        error = to_population(run)
        rows += run.rows(bound=bound, error=error, share=error / bound)
    return rows


def population(rows: Rows) -> Rows:
    """Return errors to the population's direction, a row per repeat.

    ``ratio`` is that over the exact SVD's error on the same rows.
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
            found.append(
                {name: row[name] for name in ("problem", "status", "method", "repeat")}
                | {"error": error, "ratio": error / exact[0]}
            )
    return found


def coherence(repeats: int = 100, d: int = 20, kappa: float = 0.75) -> Rows:
    """Return ‖U‖_∞ of Gaussian rows against Lemma C.4, a row per draw.

    ``slope`` is that against ``√(log n / n)``, ``share`` the largest matrix's ‖U‖_∞ over the bound
    of the lemma's proof.
    """
    rng, found = np.random.default_rng(0), []
    scale = np.sqrt(np.r_[1.0, np.full(d - 1, 1.0 - kappa)])
    n = np.array(SIZES, float)
    log = math.log(n[-1] ** 2 / FAILURE)
    bound = math.sqrt(5.0 * log / (n[-1] - 2.0 * math.sqrt(n[-1] * log)))
    x = 0.5 * np.log(np.log(n) / n)
    for repeat in range(repeats):
        drawn = (rng.standard_normal((size, d)) * scale for size in SIZES)
        largest = [
            float(np.abs(np.linalg.svd(rows, full_matrices=False)[0]).max()) for rows in drawn
        ]
        found.append(
            {"status": "synthetic", "repeat": repeat}
            | {"slope": float(np.polyfit(x, np.log(largest), 1)[0]), "share": largest[-1] / bound}
        )
    return found
