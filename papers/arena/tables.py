"""Tables of the arena: every method for eigenspaces on the same data.

Methods are compared with those that give the same privacy. An error is the sine of the largest
angle between the method's subspace and the exact one of all clients together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used: half a second of every start

from fedcore.repro.tables.budgets import PLAIN, privacy, products, sum_of_squares
from fedcore.repro.tables.report import Table
from fedcore.repro.tables.results import Results, Run, last
from fedcore.repro.tables.rows import Row, Rows, groups, reached
from fedcore.repro.tables.summaries import by_group, statistic

MAIN, LEAKAGE, LATE = "contest", "leakage", "late_leakage"  # experiments
BUDGETS = (1, 5, 20)  # rounds
TARGET = 0.01  # an error that counts as solved
COSTS = {
    "rounds": "communication rounds",
    "bytes": "bytes sent up, all clients",
    "steps": "products with the data, a client",
    "seconds": "CPU seconds of the simulation",
}


def rounded(error: float) -> float:
    """Return an error as it is compared: three digits, and none below 1e−10, which is rounding."""
    return float(f"{max(error, 1e-10):.3g}")


def median(rows: Rows, column: str) -> float:
    """Return the median of a column."""
    return float(statistic([row[column] for row in rows]))


def costs(run: Run) -> dict[str, np.ndarray]:
    """Return what a run has spent until every record, by the names of `COSTS`.

    A method of one round that sends its own answer makes no products, but decompositions: its steps
    are NaN. Norms that FAPS and WK2023 estimate first, and searches of private methods, are not
    counted.
    """
    made = products(run, run.history).astype(float)
    direct = run["iteration"].max() == 0 and run["round"].max() == 1
    return {
        "rounds": run["round"].astype(float),
        "bytes": run["bytes_up"].astype(float),
        "steps": np.full_like(made, np.nan) if direct else made,
        "seconds": run.seconds,
    }


def usable(run: Run) -> np.ndarray:
    """Return the records that are a result, (repeats, records).

    The start is none; and of a private run the last one is, for which its noise was calibrated.
    """
    there = (run["round"] > 0) & (run["iteration"] >= 0)
    if privacy(run) == PLAIN:
        return there
    later = np.cumsum(there[:, ::-1], axis=1)[:, ::-1]
    return there & (later == 1)


def least_error(run: Run, rounds: int) -> np.ndarray:
    """Return the error of the last result within a number of rounds, (repeats,).

    NaN for a method that has no result by then.
    """
    there = usable(run) & (run["round"] <= rounds)
    latest = there.shape[1] - 1 - np.argmax(there[:, ::-1], axis=1)
    error = run["subspace_distance"][np.arange(len(latest)), latest]
    return np.where(there.any(axis=1), error, np.nan)


def solved(run: Run) -> dict[str, np.ndarray]:
    """Return what a run has spent when its error is first `TARGET`, (repeats,); NaN if never."""
    holds = usable(run) & (run["subspace_distance"] <= TARGET)
    return {name: reached(holds, spent) for name, spent in costs(run).items()}


def results(results: Results) -> Rows:
    """Return errors, variances and costs at the end, and the costs until `TARGET`."""
    return [row for run in results.runs(MAIN) for row in run.rows(**_columns(run))]


def _columns(run: Run) -> dict[str, Any]:
    spent, until = costs(run), solved(run)
    explained = run.last("captured") / sum_of_squares(run)
    columns: dict[str, Any] = {
        "privacy": privacy,
        "clients": run.data["n_clients"],
        "error": last("subspace_distance"),
    }
    columns |= {f"error_{budget}": least_error(run, budget) for budget in BUDGETS}
    columns |= {"explained": explained, "reconstruction": 1.0 - explained}
    for name in COSTS:
        columns[name] = np.fmax.reduce(spent[name], axis=1)
        columns[f"{name}_to_target"] = until[name]
    columns["epsilon"] = run.last("epsilon") if "epsilon" in run.history.columns else np.nan
    return columns


def ranks(results_: Results) -> Rows:
    """Return the rank of every method by its error within `BUDGETS`, 1 for the least.

    Equal errors share a rank, see `rounded`. A method without a result by then has none.
    """
    rows: Rows = []
    for named, mine in groups(results(results_), "problem", "status", "privacy", "repeat"):
        for rounds in BUDGETS:
            there = [row for row in mine if not np.isnan(row[f"error_{rounds}"])]
            errors = [rounded(row[f"error_{rounds}"]) for row in there]
            rows += [
                named
                | {"budget": rounds, "method": row["method"], "rank": int(place), "of": len(there)}
                for row, place in zip(
                    there, scipy.stats.rankdata(errors, method="min"), strict=True
                )
            ]
    return rows


def leaks(results: Results) -> Rows:
    """Return the least error of a client's Gram matrix as the server rebuilds it in two attacks.

    0 when it is known; 1, which the guess of zero has, when both attacks fail. One attack reads all
    rounds, the other leaves out the first three, in which LocalPower makes several local steps.
    Another attack may know more. A method that one of them was not tried on has no row.
    """
    if LEAKAGE not in results.plan["experiments"]:
        return []
    late = {
        (run.tags["method"], repeat): error
        for run in results.runs(LATE)
        for repeat, error in enumerate(run.last("late_leakage"))
    }
    rows = results.table(
        LEAKAGE, privacy=privacy, rounds=last("round"), leakage=last("leakage"),
        error=last("subspace_distance"),
    )  # fmt: skip
    rows = [row for row in rows if (row["method"], row["repeat"]) in late]
    for row in rows:
        other = late[row["method"], row["repeat"]]
        row["leakage"] = float(np.nanmin([row["leakage"], other, 1.0]))
    return rows


def front(curves: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the Pareto front of curves: for every cost, the least error for at most that cost."""
    cost, error = (np.concatenate([curve[i] for curve in curves]) for i in (0, 1))
    known = np.isfinite(cost) & np.isfinite(error)
    order = np.lexsort((error[known], cost[known]))
    cost, error = cost[known][order], np.minimum.accumulate(error[known][order])
    kept = np.concatenate([[True], np.diff(error) < 0]) if len(error) else np.array([], bool)
    return cost[kept], error[kept]


def shown(rows: Rows) -> Rows:
    """Return medians over the repeats, a row per problem and method."""
    names = (*(f"error_{budget}" for budget in BUDGETS), "explained", *COSTS)
    return [
        key | {name: median(mine, name) for name in names}
        for key, mine in groups(rows, "problem", "method", "privacy")
    ]


def mean_ranks(rows: Rows) -> Rows:
    """Return mean ranks over problems and repeats, with their standard deviation.

    ``of`` is the number of problems and repeats on which a method has a result.
    """
    found: list[Row] = []
    for key, mine in groups(rows, "privacy", "budget", "method"):
        places = np.array([row["rank"] for row in mine], float)
        found.append(
            key | {"mean rank": float(places.mean()), "deviation": float(places.std()),
                   "first": int((places == 1).sum()), "of": len(places)}
        )  # fmt: skip
    return sorted(found, key=lambda row: (row["privacy"], row["budget"], row["mean rank"]))


TABLES = {
    "results": Table(results, shown),
    "ranks": Table(ranks, mean_ranks),
    "leaks": Table(leaks, by_group("leakage", "method")),
}
