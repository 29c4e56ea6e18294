"""Tables of the paper `factorization`, from the histories of its cells.

Philippenko, Scaman & Massoulié (AAAI 2025). The tables have a row per repeat where there are
repeats. The loss is ``F = ½‖S − U Vᵀ‖²_F`` throughout. The authors' code plots the same, although
the captions say ‖·‖² (log10 2 = 0.301 more).
"""

from __future__ import annotations

from operator import attrgetter

import numpy as np
from scipy.stats import binomtest

from fedcore.algorithms.yd2021 import READINGS, iterations_of_theory
from fedcore.history import History
from fedcore.reports.report import Table
from fedcore.reports.results import Results, Run, last
from fedcore.reports.rows import Rows, reached
from fedcore.reports.summaries import by_group, without

PROBABILITIES = (0.001, 0.003, 0.01, 0.05, 0.1, 0.2)
RESOLUTION = 1e-27  # of ‖S‖₂²: an excess loss below it drowns in the rounding of V

POWER = attrgetter("params.power")
TAGS = ("log10_threshold", "printed_log10_threshold")
SHOWN = without("experiment", "algorithm", "variant", *TAGS)


def sizes(results: Results) -> Rows:
    """Table 1: features d, rank r, samples n and clients N of every data set."""
    return [
        run.row(
            d=run.data["n_features"],
            r=run.params.n_components,
            n=run.data["n_samples"],
            N=run.data["n_clients"],
        )
        for run in results.runs("fig1")
    ]


def spectra(results: Results) -> Rows:
    """Figure 1: singular values numbered from 1, down to the numerical rank.

    The authors plot values above 1e−14. On w8a and MNIST these include zeros that rounding has
    raised to 1e−13. Here the limit is ``max(n, d) · eps · σ₁``, as for `numpy.linalg.matrix_rank`.
    """
    rows = []
    for run in results.runs("fig1"):
        sigma = run.history.reference["singular_values"]
        limit = max(run.data["n_samples"], run.data["n_features"]) * np.finfo(float).eps * sigma[0]
        rows += [run.row(k=k, sigma=s) for k, s in enumerate(sigma[sigma > limit], start=1)]
    return rows


def kappa(results: Results) -> Rows:
    """κ(V) of the text, for both readings of the restarts."""
    return results.table(
        "kappa", alpha=POWER, select=attrgetter("params.select"), kappa=last("kappa")
    )


def communications(results: Results) -> Rows:
    """Table 2: communications until log10(F − ε_min) is at most the threshold; NaN if never.

    ``convention`` is "true" for the Eckart–Young ε_min and "code" for the authors', whose sum
    starts one singular value late. ``order`` says whether the thresholds are the code's or as
    printed. ``iterations`` includes local steps.
    """
    rows = []
    for run in results.runs("table2"):
        method = run.algorithm if run.variant == "default" else f"{run.algorithm}-{run.variant}"
        for order, tag in (("code", "log10_threshold"), ("printed", "printed_log10_threshold")):
            for convention, floor in floors(run.history).items():
                below = run["objective"] <= floor + 10.0 ** run.tags[tag]
                rows += run.rows(
                    method=method,
                    order=order,
                    convention=convention,
                    log10_threshold=run.tags[tag],
                    rounds=reached(below, run["round"]),
                    iterations=reached(below, run["iteration"]),
                )
    return rows


def theory_counts(results: Results) -> Rows:
    """YD2021 in Table 2: the iteration count of its theory, in both forms of the authors' code."""
    rows = []
    for run in results.runs("table2", algorithm="yd2021"):
        sigma, rank = run.history.reference["singular_values"], run.params.n_components
        for reading in READINGS:
            count = iterations_of_theory(
                sigma[0], sigma[rank - 1], run.data["n_samples"], run.data["n_features"], rank,
                reading=reading, error=10.0 ** run.tags["log10_threshold"],
            )  # fmt: skip
            rows.append(run.row(reading=reading, log10_iterations=np.log10(count)))
    return rows


def exact_errors(results: Results) -> Rows:
    """Loss of the exact solution beside the floor ε_min, from Figures 2 and 3."""
    rows = []
    for run in results.runs("fig2", "fig3"):
        exact, floor = run.last("exact_objective"), floors(run.history)["true"]
        rows += run.rows(
            alpha=run.params.power,
            exact_loss=exact,
            log10_exact=np.log10(exact),
            log10_above_floor=np.log10(exact / floor),
        )
    return rows


def figure_2(results: Results) -> Rows:
    """Figure 2: κ⁻²(V), the exact loss and the loss after the last step, for every draw of Φ."""
    return results.table(
        "fig2",
        alpha=POWER,
        inverse_kappa_squared=lambda run: [kappa**-2 for kappa in run.last("kappa")],
        exact_loss=last("exact_objective"),
        loss=last("objective"),
    )


def slopes(results: Results) -> Rows:
    """Slope of log10 F after T steps against κ⁻² in the linear part of Figure 2.

    A draw belongs to the linear part if its descent has not reached the exact solution: more than a
    thousandth of its loss is excess. Theory: T steps shrink the slowest direction of F by
    (1 − κ⁻²)^{2T}, so that d log10 F / d κ⁻² → −2T / ln 10 as κ⁻² → 0.
    """
    rows = []
    for run in results.runs("fig2"):
        x, loss = run.last("kappa") ** -2.0, run.last("objective")
        linear = loss > 1.001 * run.last("exact_objective")
        draws = int(linear.sum())
        slope = np.polyfit(x[linear], np.log10(loss[linear]), 1)[0] if draws >= 3 else np.nan
        predicted = -2.0 * run.params.local_steps / np.log(10.0)
        rows.append(
            run.row(
                alpha=run.params.power,
                draws=draws,
                slope=slope,
                predicted=predicted,
                ratio=slope / predicted,
            )
        )
    return rows


def final_errors(results: Results) -> Rows:
    """Figure 3: loss after the last local step and of the exact solution, per repeat."""
    rows = []
    for run in results.runs("fig3"):
        loss, exact = run.last("objective"), run.last("exact_objective")
        rows += run.rows(
            alpha=run.params.power,
            momentum=run.params.momentum,
            log10_loss=np.log10(loss),
            log10_exact=np.log10(exact),
            log10_above_exact=np.log10(loss / exact),
        )
    return rows


def claims(results: Results) -> Rows:
    """Claims of Section 5 that compare two cells, repeat by repeat (V's sketch is shared)."""
    plain = {
        (run.problem, run.params.power): run
        for run in results.runs("fig3")
        if not run.params.momentum
    }
    rows = []
    for problem in results.problems("fig3"):
        zero, one = plain[problem, 0], plain[problem, 1]
        exact0, exact1 = zero.last("exact_objective"), one.last("exact_objective")
        final0, final1 = zero.last("objective"), one.last("objective")
        for claim, holds in (
            ("alpha1-lowers-exact-loss", exact1 < exact0),
            ("alpha1-slows-descent", final1 / exact1 > final0 / exact0),
            ("alpha1-descent-is-best", final1 < final0),
        ):
            rows += one.rows(claim=claim, holds=holds)
    return rows


def bounds(results: Results) -> Rows:
    """Theorems 2 and 3: the share of draws of Φ that exceed the bound, and the allowed share.

    A theorem's bound holds with probability 1 − c·p, c = 3 and 2; the allowed share is c·p.
    ``version`` is "body" for the bound of the statement and "appendix" for that of the proof.
    """
    rows = []
    for run in results.runs("theorems"):
        sigma = run.history.reference["singular_values"]
        r, alpha, d = run.params.n_components, run.params.power, run.data["n_features"]
        kappa_squared, excess = run.last("kappa") ** 2, _excess(run)
        for p in PROBABILITIES:
            for version in ("body", "appendix"):
                for theorem, factor, measured, bound in (
                    (2, 3, kappa_squared, kappa_bound(sigma, r, d, alpha, p, version)),
                    (3, 2, excess, excess_bound(sigma, r, alpha, p, version)),
                ):
                    if bound < RESOLUTION * sigma[0] ** 2:
                        continue  # below the resolution of double precision
                    draws, allowed = len(measured), min(1.0, factor * p)
                    exceeded = int(np.sum(measured >= bound))
                    test = binomtest(exceeded, draws, allowed, alternative="greater")
                    rows.append(
                        run.row(
                            theorem=theorem,
                            version=version,
                            alpha=alpha,
                            p=p,
                            draws=draws,
                            allowed=allowed,
                            exceeded=exceeded / draws,
                            bound=bound,
                            median=np.median(measured),
                            holds=bool(test.pvalue >= 0.001),
                        )
                    )
    return rows


def corollary_2(results: Results) -> Rows:
    """Corollary 2's example: κ² and the excess loss of the exact solution on the synthetic data.

    The formula is ``d r² ξ^{4α+2}`` with the singular values λ = 1 and ξ. ``formula_noise`` has
    ξ = 1e−6, as the paper says; this is the standard deviation of the noise. ``formula_sigma`` has
    ξ = σ_{r+1}, the largest singular value of the noise.
    """
    rows = []
    for run in results.runs("theorems", problem="synthetic"):
        rank, exponent = run.params.n_components, 4 * run.params.power + 2
        scale = run.data["n_features"] * rank**2
        rows.append(
            run.row(
                alpha=run.params.power,
                median_kappa_squared=np.median(run.last("kappa") ** 2),
                median_excess=np.median(_excess(run)),
                formula_noise=scale * 1e-6**exponent,
                formula_sigma=scale * run.history.reference["singular_values"][rank] ** exponent,
            )
        )
    return rows


def remarks(results: Results) -> Rows:
    """Remarks 3 and 4: steps to within 1e−9 of the last loss, and its ratio to the exact loss."""
    rows = []
    for run in results.runs("remarks"):
        loss = run.last("objective")
        settled = np.abs(run["objective"] - loss[:, None]) <= 1e-9 * loss[:, None]
        rows += run.rows(
            kappa=last("kappa"),
            steps=np.argmax(settled, axis=1),
            loss_over_exact=loss / run.last("exact_objective"),
        )
    return rows


def kappa_bound(sigma: np.ndarray, r: int, d: int, alpha: int, p: float, version: str) -> float:
    """Theorem 2: with probability 1 − 3p, κ(V)² is below this.

    ``p⁻² (9 r² (σ₁/σ_r)^{2(2α+1)} + 4 r (d + ln(2/p)) (σ_{r+1}/σ_r)^e)`` with e = 2α in the
    statement ("body") and 2(2α + 1) at the end of the proof ("appendix").
    """
    exponent = {"body": 2 * alpha, "appendix": 2 * (2 * alpha + 1)}[version]
    head = 9 * r**2 * (sigma[0] / sigma[r - 1]) ** (2 * (2 * alpha + 1))
    tail = 4 * r * (d + np.log(2 / p)) * (sigma[r] / sigma[r - 1]) ** exponent
    return float((head + tail) / p**2)


def excess_bound(sigma: np.ndarray, r: int, alpha: int, p: float, version: str) -> float:
    """Theorem 3: with probability 1 − 2p, min_U ‖S − U Vᵀ‖²_F − Σ_{i>r} σᵢ² is below this.

    ``2 r c Σ_{i>r} σᵢ² (σ₁² − σᵢ²)/σ_r² (σᵢ/σ_r)^{4α}`` with ``c = p⁻¹ (ln p⁻² + r ln 2)`` in the
    statement ("body") and ``p⁻² (ln p⁻¹ + r ln 2)`` in the proof ("appendix").
    """
    tail = sigma[r:] ** 2
    constant = {
        "body": (np.log(p**-2) + r * np.log(2)) / p,
        "appendix": (np.log(1 / p) + r * np.log(2)) / p**2,
    }[version]
    ratio = (sigma[0] ** 2 - tail) / sigma[r - 1] ** 2 * (tail / sigma[r - 1] ** 2) ** (2 * alpha)
    return float(2 * r * constant * np.sum(tail * ratio))


def floors(history: History) -> dict[str, float]:
    """ε_min = ½ Σ_{i>r} σᵢ², and the authors' code's, which also leaves out σ_{r+1}."""
    squared = history.reference["singular_values"] ** 2
    rank = history.about["params"]["n_components"]
    return {
        "true": 0.5 * float(np.sum(squared[rank:])),
        "code": 0.5 * float(np.sum(squared[rank + 1 :])),
    }


def _excess(run: Run) -> np.ndarray:
    """Excess loss of the exact solution as in the theorems, with ‖·‖² instead of ½‖·‖²."""
    return 2.0 * run.last("exact_excess")


TABLES = {
    "sizes": Table(sizes, SHOWN),
    "spectra": Table(spectra, SHOWN),
    "kappa": Table(kappa, by_group("kappa", "problem", "status", "alpha", "select")),
    "communications": Table(
        communications,
        by_group("rounds", "method", "problem", "status", "order", "log10_threshold", "convention"),
    ),
    "theory_counts": Table(theory_counts, SHOWN),
    "exact_errors": Table(exact_errors, without(*TAGS, "algorithm")),
    "figure_2": Table(figure_2, SHOWN),
    "slopes": Table(slopes, SHOWN),
    "final_errors": Table(final_errors, without(*TAGS, "experiment", "algorithm")),
    "claims": Table(claims, SHOWN),
    "bounds": Table(bounds, SHOWN),
    "corollary_2": Table(corollary_2, SHOWN),
    "remarks": Table(remarks, by_group("steps", "problem", "status", "algorithm", "variant")),
}
