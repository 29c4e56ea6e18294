"""Tables of the paper `fedrep_linear`, from the histories of its cells.

Collins, Hassani, Mokhtari & Shakkottai, *Exploiting shared representations for personalized
federated learning*. Rounds count from the start B⁰, which is round 0. A method's *target* at one
problem is twice the smallest distance that any method ends with there, median over the trials: the
noise of the labels sets a floor that all methods share, and the speed of one is how soon it is
near.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from fedcore.history import History
from fedcore.metrics.regression import NEW_SAMPLES
from fedcore.reports.report import Table
from fedcore.reports.results import Results
from fedcore.reports.rows import first, status
from fedcore.reports.summaries import by_group

Rows = list[dict[str, Any]]

METHODS = {"fedrep": "FedRep", "gd10": "10GD-GD", "gd": "GD-GD"}
TRAINING = ("fig1", "local")  # experiments of Figures 1 and 4
TENTH = 0.1  # distance at which speeds at different n are compared
EXACT = 1e-8  # distance at which noise-free data count as solved
RECOVERED, TRIALS = 1e-4, 9  # distance, and how many of ten trials must come to it


def reading(problem: str) -> str:
    """Return the reading of the paper that a problem follows: text, notebook or assumption."""
    return problem.removeprefix("train_").split("_")[0]


def size(history: History) -> dict[str, int]:
    """Number of clients n and samples m of each, those of the paper in runs at small size, too."""
    about = history.about["problem"]
    named = re.fullmatch(r"[a-z]+_(\d+)(_m\d+)?", about["name"])
    n = int(named[1]) if named else about["n_clients"]
    return {"n": n, "m": about["n_samples"] // about["n_clients"]}


def trajectory(history: History, column: str) -> np.ndarray:
    """Return a column, NaN from the round on in which a trial diverged, shape (trials, rounds)."""
    return np.where(history["iteration"] >= 0, history[column], np.nan)


def convergence(results: Results) -> Rows:
    """Distances and rounds to the target of every trial of Figure 3, a row each."""
    rows = []
    for experiment in ("fig3", "authors", "starts"):
        for problem in results.problems(experiment):
            cells = [cell for cell in results.select(experiment) if cell[0] == problem]
            target = 2.0 * min(_median(_ends(history)) for *_, history in cells)
            for _, _, variant, history in cells:
                distance = trajectory(history, "representation_distance")
                for repeat, values in enumerate(distance):
                    rows.append(
                        {
                            "experiment": experiment,
                            "problem": problem,
                            "reading": reading(problem),
                            "status": status(history),
                            **size(history),
                            "method": variant,
                            "repeat": repeat,
                            "start_rounds": int(history["round"][repeat, 0]),
                            "start": values[0],
                            "rounds_to_tenth": _rounds(values, TENTH),
                            "end": _ends(history)[repeat],
                            "target": target,
                            "rounds": _rounds(values, target),
                            "diverged": bool(history.last("diverged")[repeat]),
                        }
                    )
    return rows


def scaling(results: Results) -> Rows:
    """Claims about Figure 3, from medians over the trials; a trial that never arrives is last."""
    found, rows = convergence(results), []

    def median(column: str, **where: Any) -> float:
        values = [row[column] for row in found if all(row[k] == v for k, v in where.items())]
        return _median(values)

    def claim(name: str, n: int | None, values: list[float], holds: bool) -> dict[str, Any]:
        return {
            "experiment": experiment,
            "reading": kind,
            "status": origin,
            "claim": name,
            "n": n,
            "values": ", ".join(f"{value:.3g}" for value in values),
            "holds": holds,
        }

    for experiment, kind in dict.fromkeys((row["experiment"], row["reading"]) for row in found):
        if experiment == "starts":
            continue
        mine = [r for r in found if (r["experiment"], r["reading"]) == (experiment, kind)]
        origin, sizes = mine[0]["status"], sorted({row["n"] for row in mine})
        here = {"experiment": experiment, "reading": kind}
        rounds_to_tenth = {
            method: [median("rounds_to_tenth", **here, n=n, method=method) for n in sizes]
            for method in METHODS
        }
        scales = _falling(rounds_to_tenth["fedrep"])
        rows.append(claim("fedrep-faster-with-n", None, rounds_to_tenth["fedrep"], scales))
        for method in ("gd", "gd10"):  # where FedRep does not scale either, nothing is shown
            holds = scales and not _falling(rounds_to_tenth[method])
            rows.append(claim(f"{method}-does-not-scale", None, rounds_to_tenth[method], holds))
        gap = []
        for n in sizes:
            rounds = [median("rounds", **here, n=n, method=method) for method in METHODS]
            fedrep, gd10, gd = rounds
            gap.append(gd / max(fedrep, 1.0) if np.isfinite(fedrep) else np.nan)
            rows.append(claim("fedrep-fastest", n, rounds, fedrep < min(gd10, gd)))
            rows.append(claim("more-head-steps-faster", n, rounds[1:], gd10 < gd))
        rows.append(claim("gap-grows-with-n", None, gap, _falling([-value for value in gap])))
    return rows


def errors(results: Results) -> Rows:
    """Errors after the last round of the methods of Figure 1, a row per trial."""
    measures = (
        "representation_distance",
        "population_error",
        "noisy_population_error",
        "fitted_error",
        "test_error",
        "noisy_test_error",
        "fitted_test_error",
        "fitted_noisy_test_error",
    )
    rows = []
    for experiment in TRAINING:
        for problem, _, variant, history in results.select(experiment):
            best = results[f"fig1/fedrep_linear/{problem}-fedrep"]
            power = 0.5 * (history.reference["head_singular_values"] ** 2).sum(axis=1)
            for repeat in range(history.repeats):
                values = {name: float(history.last(name)[repeat]) for name in measures}
                rows.append(
                    {
                        "experiment": experiment,
                        "problem": problem,
                        "reading": reading(problem),
                        "status": status(history),
                        **size(history),
                        "method": variant,
                        "repeat": repeat,
                        **values,
                        # 1 is what the model that says zero has.
                        "relative_error": values["population_error"] / power[repeat],
                        "to_fedrep": values["population_error"]
                        / float(best.last("population_error")[repeat]),
                        "fitted_to_fedrep": values["fitted_error"]
                        / float(best.last("fitted_error")[repeat]),
                        "diverged": bool(history.last("diverged")[repeat]),
                    }
                )
    return rows


def new_clients(results: Results) -> Rows:
    """Errors of new clients by the number of their samples (Figure 4), a row per trial."""
    rows = []
    for experiment in TRAINING:
        for problem, _, variant, history in results.select(experiment):
            k = history.about["params"]["n_components"]
            for samples in NEW_SAMPLES:
                for repeat, error in enumerate(history.last(f"new_client_error_{samples}")):
                    rows.append(
                        {
                            "experiment": experiment,
                            "problem": problem,
                            "reading": reading(problem),
                            "status": status(history),
                            **size(history),
                            "method": variant,
                            "samples": samples,
                            "repeat": repeat,
                            "error": float(error),
                            "relative_error": float(error) / (0.5 * k),  # heads from N(0, I_k)
                        }
                    )
    return rows


def functions(results: Results) -> Rows:
    """Figure 7: function values, medians over the trials.

    ``ratio_10`` is GD-GD's F over FedRep's after ten rounds; ``fedrep`` and ``gd`` are rounds until
    F is at most twice the smallest end, and ``speedup`` is their ratio.
    """
    rows: Rows = []
    for problem, cells in panels(results, "fig7"):
        history = dict(cells)
        values = {method: trajectory(h, "population_error") for method, h in cells}
        target = 2.0 * min(_median(v[:, -1]) for v in values.values())
        rounds = {m: _median([_rounds(row, target) for row in v]) for m, v in values.items()}
        ten, distances = (
            {m: _median(trajectory(h, column)[:, 10]) for m, h in cells}
            for column in ("population_error", "representation_distance")
        )
        rows.append(
            {
                "problem": problem,
                "reading": reading(problem),
                "status": status(history["fedrep"]),
                **size(history["fedrep"]),
                "target": target,
                "fedrep": rounds["fedrep"],
                "gd": rounds["gd"],
                "speedup": rounds["gd"] / max(rounds["fedrep"], 1.0),
                "ratio_10": ten["gd"] / ten["fedrep"],
                "distance_ratio_10": distances["gd"] / distances["fedrep"],
                "same_winner": bool(
                    (ten["gd"] > ten["fedrep"]) == (distances["gd"] > distances["fedrep"])
                ),
            }
        )
    for row in rows:
        series = [r for r in rows if (r["reading"], r["m"]) == (row["reading"], row["m"])]
        series.sort(key=lambda r: int(r["n"]))
        row["ratio_grows_with_n"] = _falling([-float(r["ratio_10"]) for r in series])
    return rows


def initialisation(results: Results) -> Rows:
    """Appendix A.1 on starts: rounds to the target by method, start and server, a row per trial."""
    rows = []
    for row in convergence(results):
        if row["experiment"] == "starts":
            method, start, server = row["method"].split("-")
            failed = float(np.isnan(row["rounds"]))
            rows.append(
                {**row, "method": method, "init": start, "server": server, "failed": failed}
            )
    for row in rows:
        same = ("pgd", row["method"], row["server"])
        usual = [r for r in rows if (r["init"], r["method"], r["server"]) == same]
        row["rounds_to_pgd"] = row["rounds"] / _median([r["rounds"] for r in usual])
        row["all_rounds_to_pgd"] = (row["rounds"] + row["start_rounds"]) / _median(
            [r["rounds"] + r["start_rounds"] for r in usual]
        )
    return rows


def rate(results: Results) -> Rows:
    """Theorem 1: measured factor per round against the bound's, a row per trial."""
    rows = []
    for _, _, variant, history in results.select("theorem1"):
        bounds = theorem1_bound(history)
        for repeat, values in enumerate(trajectory(history, "representation_distance")):
            known = values[~np.isnan(values)]
            exact = first(known <= EXACT)
            end = len(known) - 1 if exact is None else exact
            rows.append(
                {
                    "status": status(history),
                    "variant": variant,
                    "fresh": variant.startswith("fresh"),
                    "m": history.about["params"]["batch"],
                    "repeat": repeat,
                    "start": known[0],
                    "end": known[-1],
                    "rounds": float("nan") if exact is None else float(exact),
                    "factor": float((known[end] / known[0]) ** (1.0 / end)),
                    "bound": float(bounds[repeat, 1] / bounds[repeat, 0]),
                    # Where the measure has come to rounding the bound may go on below it.
                    "below_bound": bool(
                        (known <= np.maximum(bounds[repeat, : len(known)], 1e-12)).all()
                    ),
                }
            )
    return rows


def theorem1_bound(history: History) -> np.ndarray:
    """``(1 − η E₀ σ̄²_min / 2)^(t/2) dist(B⁰)``, eq. (10) with all taking part, (trials, rounds)."""
    sigma = history.reference["head_singular_values"]
    start = history["representation_distance"][:, 0]
    eta = history.about["params"]["step"] / sigma[:, 0] ** 2
    factor = 1.0 - eta * (1.0 - start**2) * sigma[:, -1] ** 2 / 2.0
    t = np.arange(history["iteration"].shape[1])
    return factor[:, None] ** (t / 2.0) * start[:, None]


def samples(results: Results) -> Rows:
    """Of how many trials the representation was recovered, by n, d and m."""
    rows = []
    for problem, _, _, history in results.select("need"):
        reached = history.last("representation_distance") <= RECOVERED
        settings = history.about["problem"]["settings"]
        given = {"n_clients": 100, "n_features": 20}  # what a problem does not vary
        found: dict[tuple[int, int, int], list[bool]] = {}
        for setting, good in zip(settings, reached, strict=False):
            full = given | setting
            key = (full["n_clients"], full["n_features"], full["samples"])
            found.setdefault(key, []).append(bool(good))
        for (n, d, m), trials in found.items():
            rows.append(
                {
                    "problem": problem,
                    "status": status(history),
                    "n": n,
                    "d": d,
                    "m": m,
                    "recovered": sum(trials),
                    "trials": len(trials),
                    "share": sum(trials) / len(trials),
                }
            )
    return rows


def need(results: Results) -> Rows:
    """Smallest m with which 9 of 10 trials recover, against d/n + log n and the unknowns."""
    rows, k = [], 2
    found = samples(results)
    for problem, n, d in dict.fromkeys((r["problem"], r["n"], r["d"]) for r in found):
        mine = [r for r in found if (r["problem"], r["n"], r["d"]) == (problem, n, d)]
        enough = [r["m"] for r in mine if r["share"] >= TRIALS / 10]
        m, theory = float(min(enough, default=np.nan)), d / n + np.log(n)
        rows.append(
            {
                "problem": problem,
                "status": mine[0]["status"],
                "n": n,
                "d": d,
                "m": m,
                "theory": float(theory),
                "ratio": float(m / theory),
                "unknowns": k + k * (d - k) / n,  # of all clients and B, by client
                "alone": d,
            }
        )
    for row in rows:
        at_100 = [
            r["m"] for r in rows if (r["problem"], r["n"], r["d"]) == ("need_n", 100, row["d"])
        ]
        row["m_to_n100"] = row["m"] / at_100[0] if at_100 else float("nan")
    return rows


def communication(results: Results) -> Rows:
    """Numbers that cross per participant and round, and bytes until the error is near its end."""
    rows = []
    for experiment in ("fig1", "fig3"):
        for problem, _, variant, history in results.select(experiment):
            params, n = history.about["params"], history.about["problem"]["n_clients"]
            part = max(1, round(params.get("participation", 1.0) * n))
            for repeat in range(history.repeats):
                last = int((history["iteration"][repeat] >= 0).sum()) - 1
                up, down = (
                    (history[c][repeat, last] - history[c][repeat, 0]) / (last * part)
                    for c in ("scalars_up", "scalars_down")
                )
                rows.append(
                    {
                        "experiment": experiment,
                        "problem": problem,
                        "status": status(history),
                        "n": n,
                        "method": variant,
                        "repeat": repeat,
                        "up_per_round": float(up),
                        "down_per_round": float(down),
                        "start_up": float(history["scalars_up"][repeat, 0] / n),
                        "start_down": float(history["scalars_down"][repeat, 0] / n),
                        "bytes_up": float(history["bytes_up"][repeat, last]),
                    }
                )
    return rows


def tuning(results: Results) -> Rows:
    """What the rule chose for every cell, and whether at an end of its grid."""
    rows = []
    for cell in results.plan["cells"].values():
        if not cell.get("tune"):
            continue
        name = f"{cell['experiment']}/{cell['algorithm']}/{cell['name']}"
        tuned, over = results[name].about["tuning"], cell["tune"]["over"]
        chosen = tuned["chosen"]
        rows.append(
            {
                "experiment": cell["experiment"],
                "cell": cell["name"],
                "status": status(results[name]),
                "step": chosen["step"],
                "head_step": chosen.get("head_step", float("nan")),
                "loss": min(tuned["values"]),
                "at_an_end": any(chosen[key] in (v[0], v[-1]) for key, v in over.items()),
                "diverged_settings": sum(count > 0 for count in tuned["diverged"]),
                "settings": len(tuned["settings"]),
            }
        )
    return rows


def panels(results: Results, experiment: str) -> Iterator[tuple[str, list[tuple[str, History]]]]:
    """Yield each problem of an experiment with its (variant, history) pairs."""
    for problem in results.problems(experiment):
        yield problem, [(v, h) for p, _, v, h in results.select(experiment) if p == problem]


def lost(history: History) -> str:
    """Return what a legend says of trials that diverged; nothing when none did."""
    count = int(history.last("diverged").sum())
    return f" ({count} of {history.repeats} diverged)" if count else ""


def grid(rows: Rows, column: str, by: str, values: Sequence[Any], **where: Any) -> np.ndarray:
    """Return a column as an array of shape (trials, values of `by`), of the rows `where` picks."""
    mine = [row for row in rows if all(row[key] == value for key, value in where.items())]
    return np.array([[r[column] for r in mine if r[by] == value] for value in values], float).T


def figure_7_order(panel: tuple[str, list[tuple[str, History]]]) -> tuple[bool, int, int]:
    """Sort key of Figure 7's panels: m by rows, n by columns, the text before Assumption 3."""
    sizes = size(panel[1][0][1])
    return reading(panel[0]) != "text", sizes["m"], sizes["n"]


def _ends(history: History) -> np.ndarray:
    """Distance after the last round in each trial; NaN where it diverged."""
    return history.last("representation_distance")


def _rounds(values: np.ndarray, target: float) -> float:
    """Rounds until a value is at most `target`; NaN for never."""
    record = first(values <= target)
    return float("nan") if record is None else float(record)


def _median(values: Any) -> float:
    """Median in which a missing value is larger than all others."""
    numbers = np.asarray(values, float)
    return float(np.median(np.where(np.isnan(numbers), np.inf, numbers)))


def _falling(values: list[float]) -> bool:
    """Whether each value is below the one before."""
    return bool(np.all(np.diff(values) < 0))


TABLES = {
    "convergence": Table(
        convergence, by_group("rounds", "experiment", "problem", "method", "target")
    ),
    "scaling": Table(scaling),
    "errors": Table(errors, by_group("population_error", "reading", "m", "method")),
    "new_clients": Table(new_clients, by_group("error", "reading", "m", "method", "samples")),
    "functions": Table(functions),
    "initialisation": Table(
        initialisation, by_group("rounds", "method", "init", "server", "target")
    ),
    "rate": Table(rate, by_group("factor", "variant", "m")),
    "samples": Table(samples),
    "need": Table(need),
    "communication": Table(
        communication, by_group("up_per_round", "experiment", "problem", "method")
    ),
    "tuning": Table(tuning),
}
