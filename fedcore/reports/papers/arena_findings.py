"""What a practitioner should take, in sentences on the arena's table `results`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fedcore.config.arena import LEAKAGE, MAIN
from fedcore.reports.budgets import PLAIN
from fedcore.reports.rows import Rows, chosen, groups
from fedcore.reports.summaries import statistic
from fedcore.words import counted

BUDGETS = (1, 5, 20)  # rounds
TARGET = 0.01  # an error that counts as solved
FOUND = 0.5  # an error of a private method above which it says little
APART = 0.1  # an error below which a method has found the subspace of even clients

Sentence = tuple[str, str, str]


def rounded(error: float) -> float:
    """Return an error as it is compared: three digits, and none below 1e−10, which is rounding."""
    return float(f"{max(error, 1e-10):.3g}")


def median(rows: Rows, column: str) -> float:
    """Return the median of a column."""
    return float(statistic([row[column] for row in rows]))


def sentences(table: Rows, leaked: Rows | None = None) -> Rows:
    """Return what a practitioner should take, a sentence a row, with the cells that say so."""
    found = (
        *_within(table, 1, "One shot"),
        *_within(table, 5, "Few rounds"),
        *_private(table),
        *_cheap(table),
        *_divided(table),
        *_seen(leaked or []),
    )
    return [{"for": topic, "finding": text, "cells": cells} for topic, text, cells in found]


def _winners(table: Rows, column: str) -> dict[str, int]:
    """Return on how many problems a method has the least median of a column, alone or with others.

    Methods with most come first, and of equal ones that with the least median over all problems. A
    method without any value is left out.
    """
    wins = {row["method"]: 0 for row in table if np.isfinite(row[column])}
    for _, mine in groups(table, "problem"):
        medians = {key["method"]: median(r, column) for key, r in groups(mine, "method")}
        known = {name: rounded(value) for name, value in medians.items() if np.isfinite(value)}
        for name, value in known.items():
            wins[name] += value == min(known.values())

    def place(name: str) -> tuple[int, float]:
        overall = median(chosen(table, method=name), column)
        return -wins[name], overall if np.isfinite(overall) else np.inf

    return {name: wins[name] for name in sorted(wins, key=place)}


def _cells(table: Rows, *methods: str, experiment: str = MAIN) -> str:
    algorithms = {row["method"]: row["algorithm"] for row in table}
    named = dict.fromkeys(methods)
    return ", ".join(f"{experiment}/{algorithms[name]}/*-{name}" for name in named)


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
        f"{median(chosen(plain, method=name), column):.2g})"
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
            (a["method"], a["problem"]): median(rows, "error")
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
                f"{median(chosen(mine, method=best), 'error'):.2g} in the median"
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
        np.isfinite(median(rows, "steps_to_target"))
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
        before, after = median(even, "error_5"), median(label, "error_5")
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
    found = {key["method"]: median(mine, "leakage") for key, mine in groups(leaked, "method")}
    if not found:
        return
    most = min(found, key=lambda name: found[name])
    closed = [name for name, error in found.items() if error == 1.0]
    text = (
        f"From what a client sends, the server rebuilds its Gram matrix up to a relative error of "
        f"{found[most]:.2g} with {most}, the least of {len(found)} methods; the attacks fail "
        f"against {', '.join(closed) or 'none'}."
    )
    yield "What the server learns", text, _cells(leaked, most, *closed, experiment=LEAKAGE)
