"""Tables of the paper `fedrep_linear`, from the histories of its cells.

Collins, Hassani, Mokhtari & Shakkottai, *Exploiting shared representations for personalized
federated learning*. Rounds count from the start B⁰, which is round 0. The *target* on a problem is
twice the smallest final distance of the methods, median over the trials. The noise of the labels
sets a floor for all methods; a method's speed is the number of rounds until it is near this floor.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcore.metrics.regression import NEW_SAMPLES
from fedcore.reports.report import Table
from fedcore.reports.results import Results, Run
from fedcore.reports.rows import Rows, chosen, columns, first, groups
from fedcore.reports.summaries import by_group, without

METHODS = ("fedrep", "gd10", "gd")
TRAINING = ("fig1", "local")  # experiments of Figures 1 and 4
DISTANCE = "representation_distance"
TENTH = 0.1  # distance at which speeds at different n are compared
EXACT = 1e-8  # distance at which noise-free data count as solved
RECOVERED, TRIALS = 1e-4, 9  # distance, and how many of ten trials must reach it
RANK = 2  # of all problems


def size(run: Run) -> dict[str, int]:
    """Number of clients n and samples m of each; in a small run n is still the paper's."""
    clients = run.data["n_clients"]
    return {"n": run.tags.get("n") or clients, "m": run.data["n_samples"] // clients}


def trajectory(run: Run, column: str) -> np.ndarray:
    """Return a column, shape (trials, rounds), with NaN from a trial's divergence on."""
    return np.where(run["iteration"] >= 0, run[column], np.nan)


def convergence(results: Results) -> Rows:
    """Distances and rounds to the target of every trial of Figure 3, a row each."""
    rows = []
    for experiment in ("fig3", "authors", "starts"):
        for problem in results.problems(experiment):
            runs = list(results.runs(experiment, problem=problem))
            target = 2.0 * min(_median(run.last(DISTANCE)) for run in runs)
            for run in runs:
                distance = trajectory(run, DISTANCE)
                rows += run.rows(
                    **size(run),
                    method=run.variant,
                    start_rounds=run["round"][:, 0].astype(int),
                    start=distance[:, 0],
                    rounds_to_tenth=_rounds(distance, TENTH),
                    end=run.last(DISTANCE),
                    target=target,
                    rounds=_rounds(distance, target),
                    diverged=run.last("diverged") > 0,
                )
    return rows


def scaling(results: Results) -> Rows:
    """Claims about Figure 3, from medians over the trials; one that never arrives is slowest."""
    found, rows = convergence(results), []
    for named, mine in groups(found, "experiment", "reading", "status"):
        if named["experiment"] == "starts":
            continue
        sizes = sorted({row["n"] for row in mine})
        to_tenth, to_target = (
            {
                method: [_median(*columns(mine, column, n=n, method=method)) for n in sizes]
                for method in METHODS
            }
            for column in ("rounds_to_tenth", "rounds")
        )
        scales = _falling(to_tenth["fedrep"])
        claims: list[tuple[str, int | None, list[float], bool]] = [
            ("fedrep-faster-with-n", None, to_tenth["fedrep"], scales)
        ]
        for method in ("gd", "gd10"):  # says nothing if FedRep does not scale either
            holds = scales and not _falling(to_tenth[method])
            claims.append((f"{method}-does-not-scale", None, to_tenth[method], holds))
        gap = []
        for n, fedrep, gd10, gd in zip(sizes, *to_target.values(), strict=True):
            gap.append(gd / max(fedrep, 1.0) if np.isfinite(fedrep) else np.nan)
            claims.append(("fedrep-fastest", n, [fedrep, gd10, gd], fedrep < min(gd10, gd)))
            claims.append(("more-head-steps-faster", n, [gd10, gd], gd10 < gd))
        claims.append(("gap-grows-with-n", None, gap, _falling([-value for value in gap])))
        for claim, n, values, holds in claims:
            text = ", ".join(f"{value:.3g}" for value in values)
            rows.append(named | {"claim": claim, "n": n, "values": text, "holds": holds})
    return rows


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
    rows = []
    for run in results.runs(*TRAINING):
        (best,) = results.runs("fig1", algorithm="fedrep_linear", problem=run.problem)
        power = 0.5 * (run.history.reference["head_singular_values"] ** 2).sum(axis=1)
        error, fitted = run.last("population_error"), run.last("fitted_error")
        rows += run.rows(
            **size(run),
            method=run.variant,
            **{name: run.last(name) for name in measures},
            relative_error=error / power,  # 1 for the zero model
            to_fedrep=error / best.last("population_error"),
            fitted_to_fedrep=fitted / best.last("fitted_error"),
            diverged=run.last("diverged") > 0,
        )
    return rows


def new_clients(results: Results) -> Rows:
    """Errors of new clients by the number of their samples (Figure 4), a row per trial."""
    rows = []
    for run in results.runs(*TRAINING):
        for samples in NEW_SAMPLES:
            error = run.last(f"new_client_error_{samples}")
            rows += run.rows(
                **size(run),
                method=run.variant,
                samples=samples,
                error=error,
                relative_error=error / (0.5 * run.params.n_components),  # heads from N(0, I_k)
            )
    return rows


def functions(results: Results) -> Rows:
    """Figure 7: function values, medians over the trials.

    ``ratio_10`` is GD-GD's F over FedRep's after ten rounds; ``fedrep`` and ``gd`` are rounds until
    F is at most twice the smallest end, and ``speedup`` is their ratio.
    """
    rows: Rows = []
    for problem in results.problems("fig7"):
        runs = {run.variant: run for run in results.runs("fig7", problem=problem)}
        values, distances = (
            {method: trajectory(run, column) for method, run in runs.items()}
            for column in ("population_error", DISTANCE)
        )
        target = 2.0 * min(_median(v[:, -1]) for v in values.values())
        rounds = {method: _median(_rounds(v, target)) for method, v in values.items()}
        ratio, distance_ratio = (
            _median(of["gd"][:, 10]) / _median(of["fedrep"][:, 10]) for of in (values, distances)
        )
        rows.append(
            runs["fedrep"].row(
                **size(runs["fedrep"]),
                target=target,
                **rounds,
                speedup=rounds["gd"] / max(rounds["fedrep"], 1.0),
                ratio_10=ratio,
                distance_ratio_10=distance_ratio,
                same_winner=(ratio > 1) == (distance_ratio > 1),
            )
        )
    for row in rows:
        series = chosen(rows, reading=row["reading"], m=row["m"])
        series.sort(key=lambda other: int(other["n"]))
        row["ratio_grows_with_n"] = _falling([-float(other["ratio_10"]) for other in series])
    return rows


def initialisation(results: Results) -> Rows:
    """Appendix A.1 on starts: rounds to the target by method, start and server, a row per trial."""
    params = {run.variant: run.params for run in results.runs("starts")}
    rows = [
        row
        | {
            "method": "gd" if params[row["variant"]].head_steps else "fedrep",
            "init": params[row["variant"]].init,
            "server": "qr" if params[row["variant"]].orthonormalise else "plain",
            "failed": float(np.isnan(row["rounds"])),
        }
        for row in chosen(convergence(results), experiment="starts")
    ]
    for row in rows:
        usual = {"init": "pgd", "method": row["method"], "server": row["server"]}
        rounds, own = columns(rows, "rounds", "start_rounds", **usual)
        row["rounds_to_pgd"] = row["rounds"] / _median(rounds)
        row["all_rounds_to_pgd"] = (row["rounds"] + row["start_rounds"]) / _median(rounds + own)
    return rows


def rate(results: Results) -> Rows:
    """Theorem 1: measured factor per round and that of the bound, a row per trial."""
    rows = []
    for run in results.runs("theorem1"):
        bounds = theorem1_bound(run)
        for repeat, values in enumerate(trajectory(run, DISTANCE)):
            known = values[~np.isnan(values)]
            exact = first(known <= EXACT)
            end = len(known) - 1 if exact is None else exact
            # The bound may fall below the rounding errors of the measured distance.
            limit = np.maximum(bounds[repeat, : len(known)], 1e-12)
            rows.append(
                run.row(
                    fresh=run.params.fresh,
                    m=run.params.batch,
                    repeat=repeat,
                    start=known[0],
                    end=known[-1],
                    rounds=float("nan") if exact is None else float(exact),
                    factor=(known[end] / known[0]) ** (1.0 / end),
                    bound=bounds[repeat, 1] / bounds[repeat, 0],
                    below_bound=bool((known <= limit).all()),
                )
            )
    return rows


def theorem1_bound(run: Run) -> np.ndarray:
    """``(1 − η E₀ σ̄²_min / 2)^(t/2) dist(B⁰)``, eq. (10) for all clients, (trials, rounds)."""
    sigma, start = run.history.reference["head_singular_values"], run[DISTANCE][:, 0]
    eta = run.params.step / sigma[:, 0] ** 2
    factor = 1.0 - eta * (1.0 - start**2) * sigma[:, -1] ** 2 / 2.0
    return factor[:, None] ** (np.arange(run["iteration"].shape[1]) / 2.0) * start[:, None]


def samples(results: Results) -> Rows:
    """Number of trials in which the representation was recovered, by n, d and m."""
    rows = []
    for run in results.runs("need"):
        fixed = results.plan["problems"][run.problem]["params"]
        found: dict[tuple[int, int, int], list[bool]] = {}
        for setting, end in zip(run.data["settings"], run.last(DISTANCE), strict=False):
            every = fixed | setting
            key = (every["n_clients"], every["n_features"], every["samples"])
            found.setdefault(key, []).append(bool(end <= RECOVERED))
        for (n, d, m), trials in found.items():
            recovered, count = sum(trials), len(trials)
            rows.append(
                run.row(n=n, d=d, m=m, recovered=recovered, trials=count, share=recovered / count)
            )
    return rows


def need(results: Results) -> Rows:
    """Smallest m with which 9 of 10 trials recover, beside d/n + log n and the unknowns."""
    rows = []
    for named, group in groups(samples(results), "problem", "status", "n", "d"):
        n, d = named["n"], named["d"]
        enough = [row["m"] for row in group if row["share"] >= TRIALS / 10]
        m, theory = float(min(enough, default=np.nan)), float(d / n + np.log(n))
        # The unknowns of all heads and of B, divided by the number of clients.
        sizes = {"m": m, "theory": theory, "ratio": m / theory}
        rows.append(named | sizes | {"unknowns": RANK + RANK * (d - RANK) / n, "alone": d})
    for row in rows:
        at_100 = chosen(rows, problem="need_n", n=100, d=row["d"])
        row["m_to_n100"] = row["m"] / at_100[0]["m"] if at_100 else float("nan")
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


def _rounds(values: np.ndarray, target: float) -> np.ndarray:
    """Rounds until a value is at most `target`, for each trial; NaN if never."""
    there = values <= target
    return np.where(there.any(axis=1), there.argmax(axis=1), np.nan)


def _median(values: Any) -> float:
    """Median in which a missing value is larger than all others."""
    numbers = np.asarray(values, float)
    return float(np.median(np.where(np.isnan(numbers), np.inf, numbers)))


def _falling(values: list[float]) -> bool:
    """Whether each value is below the previous one."""
    return bool(np.all(np.diff(values) < 0))


SHOWN = without("experiment", "algorithm", "variant")
TABLES = {
    "convergence": Table(
        convergence, by_group("rounds", "experiment", "problem", "method", "target")
    ),
    "scaling": Table(scaling),
    "errors": Table(
        errors,
        by_group(
            ("population_error", "fitted_test_error", "fitted_noisy_test_error"),
            "reading",
            "m",
            "method",
        ),
    ),
    "new_clients": Table(new_clients, by_group("error", "reading", "m", "method", "samples")),
    "functions": Table(functions, SHOWN),
    "initialisation": Table(
        initialisation, by_group("rounds", "method", "init", "server", "target")
    ),
    "rate": Table(rate, by_group(("factor", "bound", "rounds", "end"), "variant", "m")),
    "samples": Table(samples, SHOWN),
    "need": Table(need),
    "communication": Table(
        communication, by_group("up_per_round", "experiment", "problem", "method")
    ),
    "tuning": Table(tuning, without("problem", "algorithm", "variant", "reading", "n")),
}
