"""Tables of the paper `factorization`, from the histories of its cells.

Philippenko, Scaman & Massoulié (AAAI 2025). The tables have a row per repeat where there are
repeats. The loss is ``F = ½‖S − U Vᵀ‖²_F`` throughout. The authors' code plots the same, although
the captions say ‖·‖² (log10 2 = 0.301 more).
"""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from factorization.operations import operations
from factorization.panels import figure_2_panel, figure_3_panel
from factorization.theory import (
    LARGEST,
    TEN,
    bounds,
    draws,
    excess,
    kappa_order,
    log5,
    log5_order,
    printed_draws,
    restarts,
    theorem_1,
)
from fedcore.algorithms.yd2021 import READINGS, iterations_of_theory
from fedcore.history import History
from fedcore.repro.tables.report import Table
from fedcore.repro.tables.results import Results, Run, last
from fedcore.repro.tables.rows import Rows, chosen, flags, known, reached
from fedcore.repro.tables.summaries import by_group, without

CLOSE = 0.01  # log10 of the loss over the exact loss that a figure over ten decades does not show

POWER = attrgetter("params.power")
TAGS = ("log10_threshold", "printed_log10_threshold")
AT_X = by_group("log10_loss", "problem", "status", "curve", "x")
AT_STEP = by_group("log10_loss", "problem", "status", "select", "curve", "x")
SHOWN = without("experiment", "algorithm", "variant", *TAGS)


def sizes(results: Results) -> Rows:
    """Table 1: features d, rank r, samples n and clients N of every data set.

    ``svd_over_floor`` is the loss of the centralised SVD over ε_min (Proposition 1).
    """
    return [
        run.row(
            d=run.data["n_features"],
            r=run.params.n_components,
            n=run.data["n_samples"],
            N=run.data["n_clients"],
            svd_over_floor=float(run.last("objective")[0]) / floors(run.history)["true"],
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
    """κ(V) of the text and log₅ of the excess of ‖S − U Vᵀ‖², for both readings of the restarts."""
    return results.table(
        "kappa",
        alpha=POWER,
        select=attrgetter("params.select"),
        kappa=last("kappa"),
        kappa_squared=lambda run: run.last("kappa") ** 2,
        kappa_order=kappa_order,
        log5_excess=lambda run: log5(excess(run)),
        log5_order=log5_order,
    )


def communications(results: Results) -> Rows:
    """Table 2: communications until log10(F − ε_min) is at most the threshold; NaN if never.

    ``convention`` is "true" for the Eckart–Young ε_min, "code" for the authors', whose sum starts
    one singular value late, and "none" for F itself, without ε_min. ``order`` says whether the
    thresholds are the code's or as printed. ``iterations`` includes local steps, ``rounds_at_once``
    counts all sketches as one communication, and ``log10_excess`` is log10(F − ε_min) at the end.
    """
    rows = []
    for run in results.runs("table2"):
        method = run.algorithm if run.variant == "default" else f"{run.algorithm}-{run.variant}"
        spared = getattr(run.params, "samples", 1) - 1
        for order, tag in (("code", "log10_threshold"), ("printed", "printed_log10_threshold")):
            for convention, floor in (floors(run.history) | {"none": 0.0}).items():
                below = run["objective"] <= floor + 10.0 ** run.tags[tag]
                above = run.last("objective") - floor
                rounds = reached(below, run["round"])
                rows += run.rows(
                    method=method,
                    order=order,
                    convention=convention,
                    log10_threshold=run.tags[tag],
                    rounds=rounds,
                    rounds_at_once=rounds - spared,
                    iterations=reached(below, run["iteration"]),
                    log10_excess=np.log10(np.where(above > 0, above, np.nan)),
                    diverged=run.diverged,
                )
    return rows


def fewer(results: Results) -> Rows:
    """Table 2: whether one draw with α = 0 needs fewer communications than WK2023, by repeat.

    ``holds`` is None where neither method reaches the error, or WK2023 diverges.
    """
    rows = communications(results)
    ours = {_key(row): row["rounds"] for row in chosen(rows, method="power_exact-one-draw")}
    return [
        {name: value for name, value in row.items() if name not in ("method", "iterations")}
        | {
            "ours": ours[_key(row)],
            "holds": _fewer(ours[_key(row)], row["rounds"], row["diverged"]),
        }
        for row in chosen(rows, method="wk2023")
        if _key(row) in ours
    ]


def _fewer(ours: float, theirs: float, lost: bool) -> bool | None:
    if lost or (np.isnan(ours) and np.isnan(theirs)):
        return None
    return bool(np.nan_to_num(ours, nan=np.inf) < np.nan_to_num(theirs, nan=np.inf))


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("problem", "order", "convention", "repeat"))


def ledger(results: Results) -> Rows:
    """Communication of the power methods from the ledger, a row per cell.

    ``blocks_per_exchange`` is the number of scalars sent, up and down, over Ndr(α + 1), and
    ``rounds_of_one`` the rounds over those of the same cell with one draw of Φ. LocalPower makes
    α + 1 rounds and draws nothing.
    """
    rows = []
    for run in results.runs("many_draws", "fig2", "table2", "costs"):
        if not run.algorithm.startswith(("power_", "local_power")):
            continue
        block = run.data["n_clients"] * run.data["n_features"] * run.params.n_components
        sent = run.last("scalars_up") + run.last("scalars_down")
        powers = run.algorithm != "local_power"
        alpha = run.params.power if powers else run.params.rounds - 1
        rows.append(
            run.row(
                alpha=alpha,
                samples=run.params.samples if powers else 1,
                rounds=_same(run.last("round")),
                blocks_per_exchange=_same(sent) / (block * (alpha + 1)),
            )
        )
    names = ("experiment", "algorithm", "problem", "alpha")
    for row in rows:
        one = chosen(rows, samples=1, **{name: row[name] for name in names})
        row["rounds_of_one"] = row["rounds"] / one[0]["rounds"] if one else None
    return rows


def _same(values: np.ndarray) -> float:
    """Return the value that all repeats share; NaN if they differ."""
    return float(values[0]) if (values == values[0]).all() else np.nan


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
    """Figure 2: κ⁻²(V), the exact loss and the loss after the last step, for every draw of Φ.

    ``recovered`` says whether the last two look like one in the figure.
    """
    return results.table(
        "fig2",
        alpha=POWER,
        inverse_kappa_squared=lambda run: [kappa**-2 for kappa in run.last("kappa")],
        exact_loss=last("exact_objective"),
        loss=last("objective"),
        recovered=_recovered,
    )


def slopes(results: Results) -> Rows:
    """Slope of log10 F after T steps against κ⁻² in the linear part of Figure 2, per ten draws.

    A draw belongs to the linear part if its descent has not reached the exact solution: more than a
    thousandth of its loss is excess. Theorem 1's rate (1 − κ⁻²)^T has the slope −T / ln 10 as
    κ⁻² → 0. The slowest direction of F shrinks by (1 − κ⁻²)^{2T}, so that −2T / ln 10 is
    ``predicted`` for ``excess_slope``, that of F above the exact solution. ``explained`` is the
    share of the variance of log10 F that κ⁻² accounts for. All of less than three draws are None.
    """
    rows = []
    for run in results.runs("fig2"):
        x, loss, exact = (run.last(name) for name in ("kappa", "objective", "exact_objective"))
        x, linear = x**-2.0, loss > 1.001 * exact
        for repeat, group in enumerate(np.array_split(np.arange(len(x)), max(1, len(x) // TEN))):
            part = group[linear[group]]
            slope, above = (
                np.polyfit(x[part], np.log10(y[part]), 1)[0] if len(part) >= 3 else None
                for y in (loss, loss - exact)
            )
            explained = None
            if len(part) >= 3:
                explained = np.corrcoef(x[part], np.log10(loss[part]))[0, 1] ** 2
            rows.append(
                run.row(
                    repeat=repeat,
                    alpha=run.params.power,
                    draws=len(part),
                    slope=slope,
                    explained=explained,
                    excess_slope=above,
                    predicted=-2.0 * run.params.local_steps / np.log(10.0),
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
            select=run.params.select,
            log10_loss=np.log10(loss),
            log10_exact=np.log10(exact),
            log10_above_exact=np.log10(loss / exact),
            recovered=_recovered,
        )
    return rows


def _recovered(run: Run) -> np.ndarray:
    above = np.log10(run.last("objective") / run.last("exact_objective"))
    return flags(above <= CLOSE, above, failed=run.diverged)


def claims(results: Results) -> Rows:
    """Sentences that compare cells, repeat by repeat; the cells of a repeat share the sketch of V.

    A repeat in which one of the cells failed has None, or false if the sentence praises that cell.
    So has one in which neither descent arrives, where their steps are compared.
    """
    rows = []
    for problem in results.problems("fig2"):
        zero, one = (_only(results, "fig2", problem, power=power) for power in (0, 1))
        exacts = zero.last("exact_objective"), one.last("exact_objective")
        holds = flags(exacts[1] < exacts[0], *exacts)
        rows += one.rows(claim="alpha1-lowers-exact-loss", select=None, holds=holds)
    for problem in results.problems("fig3"):
        for select in ("final", "initial"):
            rows += _figure_3_claims(results, problem, select)
    single = {run.problem: run for run in results.runs("many_draws") if run.params.power == 0}
    for problem in results.problems("kappa"):
        zero, one = (
            _only(results, "kappa", problem, power=0),
            _only(results, "kappa", problem, power=1, select="final"),
        )
        low, high = zero.last("kappa"), one.last("kappa")
        holds = flags(high > low, low, high)
        rows += zero.rows(claim="alpha1-raises-kappa", select="final", holds=holds)
        if problem in single:
            holds = flags(low < np.nanmedian(single[problem].last("kappa")), low)
            rows += zero.rows(claim="several-draws-lower-kappa", select="final", holds=holds)
    return rows


def _figure_3_claims(results: Results, problem: str, select: str) -> Rows:
    """Sentences on Figure 3; of α = 1, with the draw of Φ that `select` has chosen.

    The exact solution is the best if it is below every descent by more than `CLOSE`.
    """
    of_alpha: list[dict[str, Any]] = [{"power": 0}, {"power": 1, "select": select}]
    runs = list(results.runs("fig3", problem=problem))
    if not any(run.params.power and run.params.select == select for run in runs):
        return []
    plain, fast = (
        [_only(results, "fig3", problem, momentum=momentum, **params) for params in of_alpha]
        for momentum in (False, True)
    )
    exact0, exact1 = (run.last("exact_objective") for run in plain)
    final0, final1 = (run.last("objective") for run in plain)
    fast0, fast1 = (run.last("objective") for run in fast)
    best0, best1 = np.fmin(final0, fast0), np.fmin(final1, fast1)
    ends = (exact0, exact1, final0, final1, fast0, fast1)
    lower = flags(exact1 < exact0, exact0, exact1)
    rows = plain[1].rows(claim="alpha1-lowers-exact-loss", select=select, holds=lower)
    shown = exact1 * 10.0**CLOSE
    for claim, holds, failed in (
        ("alpha1-descent-is-best", final1 < np.fmin(exact0, best0), plain[1].diverged),
        ("alpha0-descent-is-best", best0 < best1, plain[0].diverged & fast[0].diverged),
        ("alpha1-exact-is-best", shown < np.fmin(best0, best1), False),
        ("momentum-is-faster-alpha0", _faster(fast[0], plain[0]), fast[0].diverged),
        ("momentum-is-faster-alpha1", _faster(fast[1], plain[1]), fast[1].diverged),
    ):
        holds = flags(holds, *ends, failed=failed)
        rows += plain[1].rows(claim=claim, select=select, holds=holds)
    steps0, steps1 = map(_steps, plain)
    arrives = np.where(np.isfinite(np.fmin(steps0, steps1)), 1.0, np.nan)
    holds = flags(steps0 < steps1, *ends, arrives, failed=plain[0].diverged)
    return [*rows, *plain[1].rows(claim="alpha1-takes-more-steps", select=select, holds=holds)]


def _only(results: Results, experiment: str, problem: str, **params: Any) -> Run:
    """Return the run of an experiment on a problem that has these parameters."""
    (run,) = (
        run
        for run in results.runs(experiment, problem=problem)
        if all(getattr(run.params, name) == value for name, value in params.items())
    )
    return run


def _steps(run: Run) -> np.ndarray:
    """Steps until a descent comes within 1 % of the exact loss; infinite if it never does."""
    near = run["objective"] <= 1.01 * run.last("exact_objective")[:, None]
    return np.nan_to_num(reached(near, run["iteration"]), nan=np.inf)


def _faster(run: Run, other: Run) -> np.ndarray:
    """Whether a descent comes within 1 % of the exact loss in fewer steps, or else ends lower."""
    steps, others = _steps(run), _steps(other)
    lower = run.last("objective") < other.last("objective")
    return np.where(np.isinf(steps) & np.isinf(others), lower, steps < others)


def corollary_2(results: Results) -> Rows:
    """Corollary 2's example: κ² and the excess loss of the exact solution on the synthetic data.

    The formula is ``d r² ξ^{4α+2}`` with the singular values λ = 1 and ξ. ``formula_noise`` has
    ξ = 1e−6, as the paper says; this is the standard deviation of the noise. ``formula_sigma`` has
    ξ = σ_{r+1}, the largest singular value of the noise.
    """
    rows = []
    for run in results.runs("many_draws", problem="synthetic"):
        rank, exponent = run.params.n_components, 4 * run.params.power + 2
        scale = run.data["n_features"] * rank**2
        rows.append(
            run.row(
                alpha=run.params.power,
                median_kappa_squared=np.median(run.last("kappa") ** 2),
                median_excess=np.median(excess(run)),
                formula_noise=scale * 1e-6**exponent,
                formula_sigma=scale * run.history.reference["singular_values"][rank] ** exponent,
            )
        )
    return rows


def remarks(results: Results) -> Rows:
    """Remarks 3 and 4: steps to within 1e−9 of the last loss, and its ratio to the exact loss.

    Of the U at the end, if it is known, ``rank_share`` is the mean rank of the clients' Uᵢ over the
    number of columns, ``stacked_share`` that of the stacked U, ``zeros`` the share of zeros, and
    ``size_share`` ‖U‖_F over that without a penalty from the same start.
    """
    rows = []
    plain = {run.problem: run.last("client_size") for run in results.runs("remarks") if _free(run)}
    for run in results.runs("remarks"):
        loss = run.last("objective")
        settled = np.abs(run["objective"] - loss[:, None]) <= 1e-9 * loss[:, None]
        of_u = {
            "rank_share": run.last("client_rank") / run.params.n_components,
            "stacked_share": run.last("stacked_rank") / run.params.n_components,
            "zeros": run.last("client_zeros"),
            "size_share": run.last("client_size") / plain.get(run.problem, np.nan),
        }
        rows += run.rows(
            kappa=last("kappa"),
            steps=reached(settled, np.indices(settled.shape)[1]),
            loss_over_exact=loss / run.last("exact_objective"),
            **{name: known(share, run.diverged) for name, share in of_u.items()},
        )
    return rows


def _free(run: Run) -> bool:
    """Whether a run holds its U and has no penalty."""
    return run.algorithm == "power_prox" and run.params.strength == 0


def floors(history: History) -> dict[str, float]:
    """ε_min = ½ Σ_{i>r} σᵢ², and the authors' code's, which also leaves out σ_{r+1}."""
    squared = history.reference["singular_values"] ** 2
    rank = history.about["params"]["n_components"]
    return {
        "true": 0.5 * float(np.sum(squared[rank:])),
        "code": 0.5 * float(np.sum(squared[rank + 1 :])),
    }


TABLES = {
    "sizes": Table(sizes, SHOWN),
    "spectra": Table(spectra, SHOWN),
    "kappa": Table(kappa, by_group("kappa", "problem", "status", "alpha", "select")),
    "communications": Table(
        communications,
        by_group("rounds", "method", "problem", "status", "order", "log10_threshold", "convention"),
    ),
    "fewer": Table(fewer, SHOWN),
    "ledger": Table(ledger, without(*TAGS)),
    "operations": Table(
        operations,
        by_group(("ratio", "multiply_adds"), "method", "side", "part"),
    ),
    "theory_counts": Table(theory_counts, SHOWN),
    "panel_2a": Table(partial(figure_2_panel, panel="fig2a", problem="synthetic_exact"), AT_X),
    "panel_2b": Table(partial(figure_2_panel, panel="fig2b", problem="synthetic"), AT_X),
    "panel_3a": Table(partial(figure_3_panel, panel="fig3a", problem="synthetic"), AT_STEP),
    "panel_3b": Table(partial(figure_3_panel, panel="fig3b", problem="w8a"), AT_STEP),
    "panel_3c": Table(partial(figure_3_panel, panel="fig3c", problem="mnist"), AT_STEP),
    "panel_3d": Table(partial(figure_3_panel, panel="fig3d", problem="celeba"), AT_STEP),
    "exact_errors": Table(exact_errors, without(*TAGS, "algorithm")),
    "figure_2": Table(figure_2, SHOWN),
    "slopes": Table(slopes, by_group("slope", "problem", "status", "alpha", "predicted")),
    "final_errors": Table(final_errors, without(*TAGS, "experiment", "algorithm")),
    "claims": Table(claims, without("algorithm", "variant", *TAGS)),
    "bounds": Table(bounds, SHOWN),
    "draws": Table(draws, by_group(LARGEST, "problem", "status", "alpha")),
    "printed_draws": Table(lambda _: printed_draws()),
    "restarts": Table(
        restarts, by_group(("kappa_squared", "excess"), "problem", "status", "alpha")
    ),
    "theorem_1": Table(theorem_1, without("algorithm", *TAGS)),
    "corollary_2": Table(corollary_2, SHOWN),
    "remarks": Table(
        remarks,
        by_group(
            ("steps", "rank_share", "stacked_share", "zeros", "size_share"),
            "problem",
            "status",
            "algorithm",
            "variant",
        ),
    ),
}
