"""Tables of the arena: every method for eigenspaces on the same data, see `fedcore.config.arena`.

Methods are compared with those that give the same privacy. An error is the sine of the largest
angle between the method's subspace and the exact one of all clients together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import rankdata

from fedcore.config.arena import LATE, LEAKAGE, LOST, MAIN, STRAGGLERS
from fedcore.reports.report import Table
from fedcore.reports.results import Results, Run, last
from fedcore.reports.rows import Row, Rows, chosen, groups, reached
from fedcore.reports.summaries import by_group, statistic
from fedcore.reports.work import PLAIN, privacy, products, sum_of_squares
from fedcore.words import counted

BUDGETS = (1, 5, 20)  # rounds
TARGET = 0.01  # an error that counts as solved
FOUND = 0.5  # an error of a private method above which it says little
APART = 0.1  # an error below which a method has found the subspace of even clients
REFUSED = "cannot go on without a client"
COSTS = {
    "rounds": "communication rounds",
    "bytes": "bytes sent up, all clients",
    "steps": "products with the data, a client",
    "seconds": "CPU seconds of the simulation",
}


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
                for row, place in zip(there, rankdata(errors, method="min"), strict=True)
            ]
    return rows


def rounded(error: float) -> float:
    """Return an error as it is compared: three digits, and none below 1e−10, which is rounding."""
    return float(f"{max(error, 1e-10):.3g}")


def lost(results: Results) -> Rows:
    """Return errors without the last client beside those with all, a row per repeat."""
    return _harder(results, LOST)


def stragglers(results: Results) -> Rows:
    """Return errors with clients that are late beside those without, a row per repeat."""
    return _harder(results, STRAGGLERS)


def _harder(results: Results, experiment: str) -> Rows:
    """Return errors of an experiment beside those of `MAIN`.

    The partition is the same one; the starts differ. ``refused`` says of a method that it cannot go
    on without a client. What has no run in `MAIN`, which may be left out, has no row.
    """
    if experiment not in results.plan["experiments"]:
        return []
    names = ("data", "partition", "method", "repeat")
    of_all = {
        tuple(row[name] for name in names): row
        for row in results.table(MAIN, privacy=privacy, error=last("subspace_distance"))
    }
    found = results.table(
        experiment, error=last("subspace_distance"),
        refused=lambda run: "refused" in run.history.about,
    )  # fmt: skip
    pairs = [(row, of_all.get(tuple(row[name] for name in names))) for row in found]
    return [
        row | {"privacy": before["privacy"], "error_of_all": before["error"]}
        for row, before in pairs
        if before is not None
    ]


def by_method(rows: Rows) -> Rows:
    """Return a row per method, the least median over the problems first, a column per problem.

    Cells are medians over the repeats, to two digits; ``median`` is that of the cells of all
    problems, and ``all clients`` the same where every client takes part.
    """
    found: Rows = []
    for key, mine in groups(rows, "method"):
        row = key | {"all clients": _short(_typical(mine, "error_of_all")), "median": _cell(mine)}
        for at, here in groups(mine, "data", "partition"):
            row[f"{at['data']}, {at['partition']}"] = _cell(here)
        found.append(row)
    return sorted(found, key=_place)


def _place(row: Row) -> float:
    value = row["median"]
    return value if value != REFUSED and np.isfinite(value) else np.inf


def change(rows: Rows) -> str:
    """Return a sentence on what a table of `by_method` says."""
    table = by_method(rows)
    now, before = table[0], min(table, key=lambda row: row["all clients"])
    said = (
        f"The least median error over these problems is the {now['median']:.2g} of "
        f"{now['method']}, which has {now['all clients']:.2g} with all clients"
    )
    if before is not now:
        end, start = before["median"], before["all clients"]
        goes = end if end == REFUSED else f"goes from {start:.2g} to {end:.2g}"
        said += f"; {before['method']}, the first with all clients, {goes}"
    return f"{said}."


def _cell(rows: Rows) -> float | str:
    if any(row.get("refused") for row in rows):
        return REFUSED
    return _short(_typical(rows, "error"))


def _typical(rows: Rows, column: str) -> float:
    """Return the median over the problems of the medians over the repeats."""
    problems = groups(rows, "data", "partition")
    return float(statistic([_median(here, column) for _, here in problems]))


def _short(error: float) -> float:
    return float(f"{error:.2g}")


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


def findings(results_: Results) -> Rows:
    """Return what a practitioner should take, see `sentences`."""
    return sentences(results(results_), leaks(results_))


def sentences(table: Rows, leaked: Rows | None = None) -> Rows:
    """Return what a practitioner should take, a sentence a row, with the cells that say so.

    Parameters
    ----------
    table, leaked : list of dict
        Rows of `results`, and of `leaks`.
    """
    found = (
        *_within(table, 1, "One shot"),
        *_within(table, 5, "Few rounds"),
        *_private(table),
        *_cheap(table),
        *_divided(table),
        *_seen(leaked or []),
    )
    return [{"for": topic, "finding": text, "cells": cells} for topic, text, cells in found]


Sentence = tuple[str, str, str]


def _median(rows: Rows, column: str) -> float:
    return float(statistic([row[column] for row in rows]))


def _winners(table: Rows, column: str) -> dict[str, int]:
    """Return on how many problems a method has the least median of a column, alone or with others.

    Methods with most come first, and of equal ones that with the least median over all problems. A
    method without any value is left out.
    """
    wins = {row["method"]: 0 for row in table if np.isfinite(row[column])}
    for _, mine in groups(table, "problem"):
        medians = {key["method"]: _median(r, column) for key, r in groups(mine, "method")}
        known = {name: rounded(value) for name, value in medians.items() if np.isfinite(value)}
        for name, value in known.items():
            wins[name] += value == min(known.values())

    def place(name: str) -> tuple[int, float]:
        overall = _median(chosen(table, method=name), column)
        return -wins[name], overall if np.isfinite(overall) else np.inf

    return {name: wins[name] for name in sorted(wins, key=place)}


def _cells(table: Rows, *methods: str) -> str:
    algorithms = {row["method"]: row["algorithm"] for row in table}
    named = dict.fromkeys(methods)
    return ", ".join(f"{MAIN}/{algorithms[name]}/*-{name}" for name in named)


def _count(table: Rows) -> int:
    return len({row["problem"] for row in table})


def _within(table: Rows, rounds: int, topic: str) -> Iterator[Sentence]:
    """Yield which method without noise has the least error within a number of rounds."""
    plain, column = chosen(table, privacy=PLAIN), f"error_{rounds}"
    wins = list(_winners(plain, column).items())[:2]
    if not wins:
        return
    said = [
        f"{name} on {won} (median error over all problems "
        f"{_median(chosen(plain, method=name), column):.2g})"
        for name, won in wins
    ]
    text = (
        f"After {counted(rounds, 'round')} the least error of {counted(_count(plain), 'problem')} "
        f"is that of {', and then of '.join(said)}."
    )
    yield topic, text, _cells(table, *(name for name, _ in wins))


def _private(table: Rows) -> Iterator[Sentence]:
    """Yield which private method has the least error, for every guarantee that several give."""
    for key, mine in groups([r for r in table if r["privacy"] != PLAIN], "privacy"):
        wins = list(_winners(mine, "error").items())
        if len({row["method"] for row in mine}) < 2 or not wins:
            continue
        found = {
            (a["method"], a["problem"]): _median(rows, "error")
            for a, rows in groups(mine, "method", "problem")
        }
        near = {problem for (_, problem), error in found.items() if error < FOUND}
        best, won = wins[0]
        of_best = [error for (name, _), error in found.items() if name == best]
        text = (
            f"With {key['privacy']}, some method has an error below {FOUND:g} on {len(near)} of "
            f"{counted(_count(mine), 'problem')}"
        )
        if near:
            text += (
                f"; {best} has the least on {won}, {np.nanmin(of_best):.2g} at best and "
                f"{_median(chosen(mine, method=best), 'error'):.2g} in the median"
            )
        yield "Privacy", f"{text}.", _cells(table, *((best,) if near else ()))


def _cheap(table: Rows) -> Iterator[Sentence]:
    """Yield which method needs the fewest products with the data until `TARGET`."""
    plain = chosen(table, privacy=PLAIN)
    wins = list(_winners(plain, "steps_to_target").items())
    if not wins:
        return
    best, won = wins[0]
    reached = sum(
        np.isfinite(_median(rows, "steps_to_target"))
        for _, rows in groups(chosen(plain, method=best), "problem")
    )
    someone = {row["problem"] for row in plain if np.isfinite(row["steps_to_target"])}
    text = (
        f"Within {BUDGETS[-1]} rounds some method reaches an error of {TARGET:g} on "
        f"{len(someone)} of {counted(_count(plain), 'problem')}; {best} does on {reached}, and "
        f"needs the fewest products with the data on {won}."
    )
    yield "Cheap clients", text, _cells(table, best)


def _divided(table: Rows) -> Iterator[Sentence]:
    """Yield for which methods it matters most and least that classes stand apart.

    Compared are methods that have found the subspace where every client has a random share, on data
    with as many clients in both partitions.
    """
    ratios: dict[tuple[str, str], tuple[float, float]] = {}
    for key, mine in groups(chosen(table, privacy=PLAIN), "method", "data"):
        even, label = (chosen(mine, partition=name) for name in ("even", "label"))
        if not even or not label or even[0]["clients"] != label[0]["clients"]:
            continue
        before, after = _median(even, "error_5"), _median(label, "error_5")
        if before < APART and np.isfinite(after):
            ratios[key["method"], key["data"]] = before, after
    if not ratios:
        return
    order = sorted(ratios, key=lambda pair: ratios[pair][1] / max(ratios[pair][0], 1e-10))
    least, most = order[0], order[-1]
    said = [
        f"from {ratios[pair][0]:.2g} to {ratios[pair][1]:.2g} for {pair[0]} on {pair[1]}"
        for pair in (most, least)
    ]
    text = (
        "With one class a client in place of a random share, the error after 5 rounds changes most "
        f"{said[0]}, and least {said[1]}."
    )
    yield "Unlike clients", text, _cells(table, most[0], least[0])


def _seen(leaked: Rows) -> Iterator[Sentence]:
    """Yield of which method the server learns most of a client, and against which attacks fail."""
    found = {key["method"]: _median(mine, "leakage") for key, mine in groups(leaked, "method")}
    if not found:
        return
    most = min(found, key=lambda name: found[name])
    closed = [name for name, error in found.items() if error == 1.0]
    text = (
        f"From what a client sends, the server rebuilds its Gram matrix up to a relative error of "
        f"{found[most]:.2g} with {most}, the least of {len(found)} methods; the attacks fail "
        f"against {', '.join(closed) or 'none'}."
    )
    algorithms = {row["method"]: row["algorithm"] for row in leaked}
    cells = ", ".join(f"{LEAKAGE}/{algorithms[name]}/*-{name}" for name in (most, *closed))
    yield "What the server learns", text, cells


def front(curves: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the Pareto front of curves: for every cost, the least error for at most that cost.

    Parameters
    ----------
    curves : list of (cost, error)
        Arrays of one shape each.
    """
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
        key | {name: _median(mine, name) for name in names}
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
    "findings": Table(findings),
    "results": Table(results, shown),
    "ranks": Table(ranks, mean_ranks),
    "lost": Table(lost, by_method),
    "stragglers": Table(stragglers, by_method),
    "leaks": Table(leaks, by_group("leakage", "method")),
}
