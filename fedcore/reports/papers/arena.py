"""Tables of the arena: every method for eigenspaces on the same data, see `fedcore.config.arena`.

Methods are compared with those that give the same privacy. An error is the sine of the largest
angle between the method's subspace and the exact one of all clients together.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import rankdata

from fedcore.config.arena import LEAKAGE, LOST, MAIN
from fedcore.reports.report import Table
from fedcore.reports.results import Results, Run, last
from fedcore.reports.rows import Row, Rows, chosen, groups
from fedcore.reports.summaries import by_group, statistic
from fedcore.reports.work import products

BUDGETS = (1, 5, 20)  # rounds
TARGET = 0.01  # an error that counts as solved
PLAIN = "none"
COSTS = {
    "rounds": "communication rounds",
    "bytes": "bytes sent up, all clients",
    "steps": "products with the data, a client",
    "seconds": "CPU seconds",
}


def privacy(run: Run) -> str:
    """Return what a run protects: nothing, or ε of single rows."""
    epsilon = getattr(run.params, "epsilon", None)
    return PLAIN if epsilon is None else f"ε = {epsilon:g}"


def costs(run: Run) -> dict[str, np.ndarray]:
    """Return what a run has spent until every record, by the names of `COSTS`."""
    return {
        "rounds": run["round"].astype(float),
        "bytes": run["bytes_up"].astype(float),
        "steps": products(run, run.history).astype(float),
        "seconds": run.seconds,
    }


def least_error(run: Run, rounds: int) -> np.ndarray:
    """Return the error of the last result within a number of rounds, (repeats,).

    NaN for a method that has no result by then.
    """
    there = (run["round"] > 0) & (run["round"] <= rounds) & (run["iteration"] >= 0)
    latest = there.shape[1] - 1 - np.argmax(there[:, ::-1], axis=1)
    error = run["subspace_distance"][np.arange(len(latest)), latest]
    return np.where(there.any(axis=1), error, np.nan)


def explained(run: Run) -> np.ndarray:
    """Return the share of the sum of squares that the subspace holds at the end, (repeats,)."""
    total = float(np.sum(run.history.reference["singular_values"] ** 2))
    return run.last("captured") / total


def solved(run: Run) -> dict[str, np.ndarray]:
    """Return what a run has spent when its error is first `TARGET`, (repeats,); NaN if never."""
    holds = (run["subspace_distance"] <= TARGET) & (run["round"] > 0)
    here = np.arange(len(holds)), holds.argmax(axis=1)
    return {
        name: np.where(holds.any(axis=1), spent[here], np.nan) for name, spent in costs(run).items()
    }


def results(results: Results) -> Rows:
    """Return errors, variances and costs at the end, and the costs until `TARGET`."""
    columns: dict[str, Any] = {"privacy": privacy, "error": last("subspace_distance")}
    columns |= {f"error_{budget}": partial(least_error, rounds=budget) for budget in BUDGETS}
    columns |= {"explained": explained, "reconstruction": lambda run: 1.0 - explained(run)}
    for name in COSTS:
        columns[name] = lambda run, name=name: costs(run)[name].max(axis=1)
        columns[f"{name}_to_target"] = lambda run, name=name: solved(run)[name]
    columns["epsilon"] = _spent
    return results.table(MAIN, **columns)


def _spent(run: Run) -> np.ndarray | float:
    return run.last("epsilon") if "epsilon" in run.history.columns else np.nan


def ranks(results_: Results) -> Rows:
    """Return the rank of every method by its error within `BUDGETS`, 1 for the least.

    A method without a result by then shares the last rank.
    """
    rows: Rows = []
    for named, mine in groups(results(results_), "problem", "status", "privacy", "repeat"):
        for rounds in BUDGETS:
            errors = [row[f"error_{rounds}"] for row in mine]
            places = rankdata([np.inf if np.isnan(e) else e for e in errors], method="min")
            rows += [
                named
                | {"budget": rounds, "method": row["method"], "rank": int(place), "error": error}
                for row, place, error in zip(mine, places, errors, strict=True)
            ]
    return rows


def lost(results_: Results) -> Rows:
    """Return errors without the last client beside those with all, a row per repeat."""
    if LOST not in results_.plan["experiments"]:
        return []
    whole = {(r["data"], r["partition"], r["method"], r["repeat"]): r for r in results(results_)}
    rows = results_.table(LOST, privacy=privacy, error=last("subspace_distance"))
    for row in rows:
        key = row["data"], row["partition"], row["method"], row["repeat"]
        row["error_of_all"] = whole[key]["error"]
    return rows


def leaks(results: Results) -> Rows:
    """Return the error of a client's Gram matrix as the server rebuilds it, 0 when it is known."""
    if LEAKAGE not in results.plan["experiments"]:
        return []
    return results.table(
        LEAKAGE,
        privacy=privacy,
        rounds=last("round"),
        leakage=last("leakage"),
        error=last("subspace_distance"),
    )


def findings(results_: Results) -> Rows:
    """Return what a practitioner should take, see `sentences`."""
    return sentences(results(results_))


def sentences(table: Rows) -> Rows:
    """Return what a practitioner should take, a sentence a row, with the cells that say so.

    Parameters
    ----------
    table : list of dict
        Rows of `results`.
    """
    found = (
        *_within(table, 1, "One shot"),
        *_within(table, 5, "Few rounds"),
        *_private(table),
        *_cheap(table),
        *_divided(table),
    )
    return [{"for": topic, "finding": text, "cells": cells} for topic, text, cells in found]


Sentence = tuple[str, str, str]


def _median(rows: Rows, column: str) -> float:
    return float(statistic([row[column] for row in rows]))


def _winners(table: Rows, column: str) -> dict[str, int]:
    """Return on how many problems a method has the least median of a column.

    Methods with most come first, and of equal ones that with the least median over all problems.
    """
    wins = dict.fromkeys((row["method"] for row in table), 0)
    for _, mine in groups(table, "problem"):
        medians = {key["method"]: _median(r, column) for key, r in groups(mine, "method")}
        known = {name: value for name, value in medians.items() if np.isfinite(value)}
        if known:
            wins[min(known, key=lambda name: known[name])] += 1

    def place(name: str) -> tuple[int, float]:
        overall = _median(chosen(table, method=name), column)
        return -wins[name], overall if np.isfinite(overall) else np.inf

    return {name: wins[name] for name in sorted(wins, key=place)}


def _cells(table: Rows, *methods: str) -> str:
    algorithms = {row["method"]: row["algorithm"] for row in table}
    named = dict.fromkeys(methods)
    return ", ".join(f"{MAIN}/{algorithms[name]}/*-{name}" for name in named)


def _within(table: Rows, rounds: int, topic: str) -> Iterator[Sentence]:
    """Yield which method without noise has the least error within a number of rounds."""
    plain, column = chosen(table, privacy=PLAIN), f"error_{rounds}"
    ready = [row for row in plain if np.isfinite(row[column])]
    wins = list(_winners(ready, column).items())
    if not wins:
        return
    (best, won), rest = wins[0], wins[1:]
    problems = len({row["problem"] for row in ready})
    text = (
        f"After {rounds} round{'s' * (rounds > 1)}, {best} has the least error on {won} of "
        f"{problems} problems, {_median(chosen(ready, method=best), column):.2g} in the median"
    )
    if rest:
        second = rest[0][0]
        text += (
            f"; {second} is first on {rest[0][1]}, with "
            f"{_median(chosen(ready, method=second), column):.2g}"
        )
    yield topic, f"{text}.", _cells(table, best, *(name for name, _ in rest[:1]))


def _private(table: Rows) -> Iterator[Sentence]:
    """Yield which private method has the least error, for every ε that several methods have."""
    for key, mine in groups([r for r in table if r["privacy"] != PLAIN], "privacy"):
        wins = list(_winners(mine, "error").items())
        if len(wins) < 2:
            continue
        best, won = wins[0]
        problems = len({row["problem"] for row in mine})
        of_best = groups(chosen(mine, method=best), "problem")
        errors = [_median(rows, "error") for _, rows in of_best]
        near = sum(error < 0.5 for error in errors)
        text = (
            f"With {key['privacy']} for a row, {best} has the least error on {won} of {problems} "
            f"problems; its error is below 0.5 on {near} of them, {min(errors):.2g} at best."
        )
        yield "Privacy", text, _cells(table, best)


def _cheap(table: Rows) -> Iterator[Sentence]:
    """Yield which method needs the fewest products with the data until `TARGET`."""
    plain = chosen(table, privacy=PLAIN)
    wins = list(_winners(plain, "steps_to_target").items())
    reached = {
        key["method"]: sum(
            np.isfinite(_median(rows, "steps_to_target")) for _, rows in groups(mine, "problem")
        )
        for key, mine in groups(plain, "method")
    }
    best, won = wins[0]
    if not won:
        return
    most = max(reached, key=lambda name: reached[name])
    problems = len({row["problem"] for row in plain})
    text = (
        f"{best} needs the fewest products with the data until an error of {TARGET:g} on {won} of "
        f"{problems} problems"
        + (f"; {most} reaches it on most" if most != best else ", and reaches it on most")
        + f", {reached[most]}."
    )
    yield "Cheap clients", text, _cells(table, best, most)


def _divided(table: Rows) -> Iterator[Sentence]:
    """Yield which method loses least and which most when classes stand apart."""
    plain = chosen(table, privacy=PLAIN)
    ratios: dict[str, float] = {}
    for key, mine in groups(plain, "method"):
        found = []
        for _, rows in groups(mine, "data"):
            parts = [chosen(rows, partition=name) for name in ("even", "label")]
            even, label = (_median(part, "error_5") if part else np.nan for part in parts)
            if np.isfinite(even) and np.isfinite(label) and even > 0:
                found.append(label / even)
        if found:
            ratios[key["method"]] = float(np.median(found))
    if not ratios:
        return
    most, least = (pick(ratios, key=lambda name: ratios[name]) for pick in (max, min))
    text = (
        f"With one class a client in place of a random share, the error after 5 rounds is "
        f"{ratios[most]:.2g} times as large for {most} and {ratios[least]:.2g} times for {least}, "
        "in the median over the data sets."
    )
    yield "Unlike clients", text, _cells(table, most, least)


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
    names = ("error_1", "error_5", "error_20", "explained", "rounds", "bytes", "steps", "seconds")
    return [
        key | {name: _median(mine, name) for name in names}
        for key, mine in groups(rows, "problem", "method", "privacy")
    ]


def mean_ranks(rows: Rows) -> Rows:
    """Return mean ranks over problems and repeats, with their standard deviation."""
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
    "lost": Table(lost, by_group(("error", "error_of_all"), "problem", "method")),
    "leaks": Table(leaks, by_group("leakage", "method")),
}
