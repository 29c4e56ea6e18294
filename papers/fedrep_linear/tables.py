"""Tables of the paper `fedrep_linear`, from the histories of its cells.

Collins, Hassani, Mokhtari & Shakkottai, *Exploiting shared representations for personalized
federated learning*. Rounds count from the start B⁰, which is round 0. Tables have a row per trial,
so that each claim is judged by the share of the trials, or by their spread. Speeds, Figure 3 and
the starts are in `fedrep_linear_speeds`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from fedcore.metrics.regression import NEW_SAMPLES
from fedcore.repro.tables.report import Table
from fedcore.repro.tables.results import Results, Run
from fedcore.repro.tables.rows import Rows, first, flags, groups
from fedcore.repro.tables.summaries import TWIN, by_group, without
from fedrep_linear.speeds import (
    DISTANCE,
    convergence,
    initialisation,
    panels,
    rising,
    scaling,
    size,
    trajectory,
)
from fedrep_linear.theory import (
    SMALL,
    fresh,
    growths,
    head_operations,
    head_sigma,
    head_steps,
    heterogeneity,
    moments,
    newcomers,
    one_model,
    recovered,
    share,
    shares_alone,
    smallest,
)

TRAINING = ("fig1", "local")  # experiments of Figures 1 and 4
EXACT = 1e-8  # distance at which noise-free data count as solved
NEAR = 4.0  # factor on the error with B* itself
TEN = 10  # rounds after which Figure 7's methods are compared
RANK = 2  # of all problems


def errors(results: Results) -> Rows:
    """Errors after the last round of the methods of Figure 1, a row per trial."""
    measures = (
        DISTANCE,
        "population_error",
        "noisy_population_error",
        "fitted_error",
        "test_error",
        "noisy_test_error",
        "fitted_test_error",
        "fitted_noisy_test_error",
    )
    rows, shared = [], {(run.problem, run.algorithm): run for run in results.runs("fig1")}
    for run in results.runs(*TRAINING):
        best, one = (shared.get((run.problem, f"{name}_linear")) for name in ("fedrep", "fedsgd"))
        power = 0.5 * (head_sigma(run) ** 2).sum(axis=1)
        error, fitted = run.last("population_error"), run.last("fitted_error")
        rows += run.rows(
            **size(run),
            method=run.variant,
            **{name: run.last(name) for name in measures},
            relative_error=error / power,  # 1 for the zero model
            fitted_relative_error=fitted / power,
            to_fedrep=_over(error, best, "population_error"),
            to_fedsgd=_over(error, one, "population_error"),
            to_single_model=error / run.last("single_model_error"),
            fitted_to_fedrep=_over(fitted, best, "fitted_error"),
            diverged=run.last("diverged") > 0,
        )
    return rows


def new_clients(results: Results) -> Rows:
    """Errors of new clients by the number of their samples (Figure 4), a row per trial.

    ``to_exact`` divides by the error of the same clients with B* itself, ``to_local`` by that of
    Local Only. The error is a mean over the clients. With as many samples as k, few clients whose
    samples are nearly dependent decide it, with B* itself, too. A model is therefore ``accurate``
    if its error is small, or not far above the one with B*; see `SMALL` and `NEAR`.
    """
    rows, local = [], {run.problem: run for run in results.runs("local")}
    for run in results.runs(*TRAINING):
        alone = local.get(run.problem)
        for samples in NEW_SAMPLES:
            name = f"new_client_error_{samples}"
            error, nothing = run.last(name), np.full(run.history.repeats, np.nan)
            known = f"exact_{name}" in run.history.columns
            relative = error / (0.5 * run.params.n_components)  # heads from N(0, I_k)
            to_exact = error / run.last(f"exact_{name}") if known else nothing
            found = run.rows(
                **size(run),
                method=run.variant,
                samples=samples,
                error=error,
                relative_error=relative,
                to_exact=to_exact,
                to_local=_over(error, alone, name),
            )
            for row, failed in zip(found, run.diverged.tolist(), strict=True):
                values = row["relative_error"], row["to_exact"]
                right = values[0] <= SMALL or values[1] <= NEAR
                row["accurate"] = flags(right, *values, failed=failed)
            rows += found
    return rows


def _over(values: np.ndarray, other: Run | None, column: str) -> np.ndarray:
    """Return values over another run's last ones, (repeats,); None where that was left out."""
    return np.full(len(values), None) if other is None else values / other.last(column)


def functions(results: Results) -> Rows:
    """Figure 7: GD-GD's F over FedRep's after ten rounds, and that of the distances, by trial.

    F is quadratic in the distance, so that ``similar`` is the square of the latter over the former.
    """
    rows: Rows = []
    for problem in results.problems("fig7"):
        runs = {run.variant: run for run in results.runs("fig7", problem=problem)}
        ratio, distances = (
            trajectory(runs["gd"], column)[:, TEN] / trajectory(runs["fedrep"], column)[:, TEN]
            for column in ("population_error", DISTANCE)
        )
        rows += runs["fedrep"].rows(
            **size(runs["fedrep"]), ratio_10=ratio, distance_ratio_10=distances,
            similar=distances**2 / ratio,
            fedrep_lost=np.isnan(trajectory(runs["fedrep"], DISTANCE)[:, TEN]),
        )  # fmt: skip
    return rows


def improvement(results: Results) -> Rows:
    """Whether the ratio of `functions` grows with every n, a row per trial of a reading and m.

    ``grows`` is None where a single n was run, or GD-GD was lost, and false where FedRep was.
    """
    rows = []
    for named, mine in groups(functions(results), "reading", "m", "status", "repeat"):
        mine = sorted(mine, key=lambda row: int(row["n"]))
        values = [row["ratio_10"] for row in mine]
        text = ", ".join(f"{value:.3g}" for value in values)
        lost = any(row["fedrep_lost"] for row in mine)
        grows = flags(rising(values), *values, failed=lost) if len(values) > 1 else None
        rows.append(named | {"ratios": text, "grows": grows})
    return rows


def rate(results: Results) -> Rows:
    """Theorem 1: measured factor per round and that of the bound, a row per trial.

    ``steady`` is the decrease of ln(distance) in the second half of the rounds to 1e-8 over that in
    the first: 1 for linear convergence. ``below_whole`` is ``below_bound`` for the bound without
    its two halves, a rate that need not be met.
    """
    rows = []
    for run in results.runs("theorem1"):
        bounds, whole = theorem1_bound(run), theorem1_bound(run, half=1.0)
        for repeat, values in enumerate(trajectory(run, DISTANCE)):
            known = values[~np.isnan(values)]
            exact = first(known <= EXACT)
            end = len(known) - 1 if exact is None else exact
            middle = end // 2
            # A bound may fall below the rounding errors of the measured distance.
            limit, rival = (np.maximum(b[repeat, : len(known)], 1e-12) for b in (bounds, whole))
            rows.append(
                run.row(
                    fresh=run.params.fresh,
                    m=run.params.batch,
                    r=run.params.participation,
                    repeat=repeat,
                    start=known[0],
                    end=known[-1],
                    rounds=float("nan") if exact is None else float(exact),
                    factor=(known[end] / known[0]) ** (1.0 / end),
                    bound=bounds[repeat, 1] / bounds[repeat, 0],
                    steady=np.log(known[middle] / known[end]) / np.log(known[0] / known[middle]),
                    below_bound=bool((known <= limit).all()),
                    below_whole=bool((known <= rival).all()),
                )
            )
    return rows


def theorem1_bound(run: Run, half: float = 0.5) -> np.ndarray:
    """``(1 − η E₀ σ̄²_min / 2)^(t/2) dist(B⁰)``, the right side of (10), (trials, rounds).

    `half` stands for both halves of the formula.
    σ̄_min is that of all clients. With a share of them the theorem takes the smallest over all
    subsets, which gives a larger bound.
    """
    sigma, start = head_sigma(run), run[DISTANCE][:, 0]
    given = run.history.about["params"].get("head_sigma", "reference")
    eta = run.params.step / (sigma[:, 0] if given == "reference" else float(given)) ** 2
    factor = 1.0 - eta * (1.0 - start**2) * sigma[:, -1] ** 2 * half
    return factor[:, None] ** (np.arange(run["iteration"].shape[1]) * half) * start[:, None]


def samples(results: Results) -> Rows:
    """Number of trials in which the representation was recovered, by n, d and m."""
    rows = []
    for run in results.runs("need"):
        found: dict[tuple[int, int, int], list[bool]] = {}
        for n, d, m, recovers in _trials(results, run):
            found.setdefault((n, d, m), []).append(recovers)
        for (n, d, m), trials in found.items():
            good, count = sum(trials), len(trials)
            rows.append(run.row(n=n, d=d, m=m, recovered=good, trials=count, share=good / count))
    return rows


def _trials(
    results: Results, run: Run, of_twins: bool = False
) -> Iterator[tuple[int, int, int, bool]]:
    """Yield n, d and m of every trial of a run, or its twin, and whether it is `recovered`."""
    fixed = results.plan["problems"][run.problem]["params"]
    for setting, end in zip(run.data["settings"], recovered(run, of_twins), strict=False):
        every = fixed | setting
        yield every["n_clients"], every["n_features"], every["samples"], end


def need(results: Results) -> Rows:
    """Smallest m from which on a trial recovers, beside what (11) asks for, a row per trial.

    ``ratio`` divides m by k² (d/n + k log n), the bracket of (11) for κ = 1, see `share`; m is
    missing if the largest m that was tried is not enough. ``share_alone`` is as in
    `shares_alone`. ``twin_…`` are the same columns of the
    twins, see `recovered`.
    """
    own, names = _need(results, False), ("m", "ratio", "share_alone")
    kept = all(run.history.twins for run in results.runs("need"))
    twins = _need(results, True) if kept else [dict.fromkeys(names)] * len(own)
    return [
        row | {f"{TWIN}{name}": twin[name] for name in names}
        for row, twin in zip(own, twins, strict=True)
    ]


def _need(results: Results, of_twins: bool) -> Rows:
    rows = []
    for run in results.runs("need"):
        found: dict[tuple[int, int, int], list[tuple[int, bool]]] = {}
        seen: Counter[tuple[int, int, int]] = Counter()
        for n, d, m, recovers in _trials(results, run, of_twins):
            found.setdefault((n, d, seen[n, d, m]), []).append((m, recovers))
            seen[n, d, m] += 1
        for (n, d, repeat), tried in found.items():
            least = smallest(tried)
            asked = RANK**2 * (d / n + RANK * np.log(n))
            # The unknowns of all heads and of B, divided by the number of clients.
            unknowns = RANK + RANK * (d - RANK) / n
            rows.append(
                run.row(n=n, d=d, repeat=repeat, m=least, asked=float(asked),
                        ratio=share(least, float(asked), max(m for m, _ in tried)),
                        unknowns=unknowns, alone=d)
            )  # fmt: skip
    for _, mine in groups(rows, "problem"):
        alone = shares_alone(mine, "m")
        for row in mine:
            row["share_alone"] = alone.get((row["n"], row["d"], row["repeat"]))
    return rows


def communication(results: Results) -> Rows:
    """Scalars sent per participant and round, and bytes sent in the whole run."""
    rows = []
    for run in results.runs("fig1", "fig3"):
        n, rounds = run.data["n_clients"], (run["iteration"] >= 0).sum(axis=1) - 1
        crossings = rounds * run.params.n_participants(n)
        up, down = run["scalars_up"][:, 0], run["scalars_down"][:, 0]
        rows += run.rows(
            n=n,
            method=run.variant,
            up_per_round=(run.last("scalars_up") - up) / crossings,
            down_per_round=(run.last("scalars_down") - down) / crossings,
            start_up=up / n,
            start_down=down / n,
            bytes_up=run.last("bytes_up").astype(float),
        )
    return rows


def tuning(results: Results) -> Rows:
    """Choice of the rule for every cell, and whether it is at an end of its grid."""
    rows = []
    for run in results.runs():
        if (tuned := run.history.about.get("tuning")) is None:
            continue
        best, grid = tuned["chosen"], tuned["settings"]
        rows.append(
            run.row(
                cell=f"{run.problem}-{run.variant}",
                step=best["step"],
                head_step=best.get("head_step", float("nan")),
                loss=min(tuned["values"]),
                first_trial=tuned["first"],
                at_an_end=any(best[key] in (grid[0][key], grid[-1][key]) for key in best),
                diverged_settings=sum(count > 0 for count in tuned["diverged"]),
                settings=len(grid),
            )
        )
    return rows


def method(run: Run) -> str:
    """Return the paper's name for the method of a run."""
    if run.algorithm != "fedrep_linear":
        return {"fedsgd_linear": "FedSGD", "local_linear": "Local Only"}[run.algorithm]
    steps = run.params.head_steps
    return "FedRep" if steps is None else f"{steps if steps > 1 else ''}GD-GD"


def lost(run: Run) -> str:
    """Return the legend's note on diverged trials; empty if there are none."""
    count = int(run.last("diverged").sum())
    return f" ({count} of {run.history.repeats} diverged)" if count else ""


SHOWN = without("experiment", "algorithm", "variant")
TABLES = {
    "convergence": Table(
        convergence, by_group(("rounds", "speed"), "experiment", "problem", "method")
    ),
    "panels": Table(panels, by_group(("fedrep", "gd10", "gd"), "experiment", "reading", "n")),
    "scaling": Table(
        scaling,
        by_group(("gain_fedrep", "gain_gd10", "gain_gd"), "experiment", "reading", "step"),
    ),
    "errors": Table(
        errors,
        by_group(
            ("population_error", "fitted_test_error", "fitted_noisy_test_error"),
            "reading",
            "m",
            "method",
        ),
    ),
    "new_clients": Table(
        new_clients, by_group(("error", "to_exact"), "reading", "m", "method", "samples")
    ),
    "functions": Table(functions, by_group(("ratio_10", "distance_ratio_10"), "reading", "m", "n")),
    "improvement": Table(improvement),
    "initialisation": Table(initialisation, by_group("rounds", "method", "init", "server")),
    "rate": Table(rate, by_group(("factor", "bound", "rounds", "end"), "variant", "m")),
    "samples": Table(samples, SHOWN),
    "need": Table(need, by_group("m", "problem", "n", "d", "asked", "unknowns", "alone")),
    "fresh": Table(fresh, by_group(("total", "ratio"), "problem", "n", "d", "k")),
    "growths": Table(growths, by_group(("growth", "share"), "problem")),
    "moments": Table(moments, by_group(("told", "rebuilt"), "m", "d")),
    "newcomers": Table(newcomers, by_group(("samples", "over_k"), "k", "variant")),
    "head_steps": Table(head_steps, by_group(("steps", "steady"), "problem")),
    "head_operations": Table(head_operations, by_group(("share", "growth"), "part")),
    "heterogeneity": Table(heterogeneity, by_group(("heads", "errors"), "variant")),
    "one_model": Table(one_model, by_group(("to_formula", "distance"), "variant")),
    "communication": Table(
        communication, by_group("up_per_round", "experiment", "problem", "method")
    ),
    "tuning": Table(tuning, without("problem", "algorithm", "variant", "reading", "n")),
}
