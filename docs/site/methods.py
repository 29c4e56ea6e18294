"""Which method when: tables from the arena's kept results, with no number of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from arena import tables as arena
from fedcore.files.strict_yaml import read_yaml
from fedcore.reports import tables
from fedcore.repro.site import curves
from fedcore.repro.tables.budgets import PLAIN
from fedcore.repro.tables.rows import Rows, chosen, groups

ARENA = Path(__file__).parents[2] / "papers" / "arena"
KEPT = ARENA / "kept"
CONFIG = ARENA / "experiments.yaml"
PLACES = 2  # methods that are named for a budget


def page(kept: Path = KEPT) -> str:
    """Return the tables of the page, as Markdown."""
    results, ranks, leaks = (tables.read(kept / f"{n}.tsv") for n in ("results", "ranks", "leaks"))
    private = sorted({row["privacy"] for row in results} - {PLAIN})
    parts = ["## What you can afford", _markdown(first_choices(results, ranks))]
    parts += ["## Without noise", _markdown(each_method(results, leaks, PLAIN))]
    for guarantee in private:
        parts += [f"## With {guarantee}", _markdown(each_method(results, leaks, guarantee))]
    rows = curves.of_variants(read_yaml(CONFIG)["experiments"]["contest"])
    named = [{**row, "command": f"`{row['command']}`"} for row in rows]
    parts += ["## As commands", tables.markdown(named)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def first_choices(results: Rows, ranks: Rows) -> Rows:
    """Return the methods with the least mean rank for every guarantee and number of rounds."""
    found: Rows = []
    for budget in arena.BUDGETS:
        for key, rows in groups(chosen(ranks, budget=budget), "privacy"):
            mean = {k["method"]: np.mean([r["rank"] for r in m]) for k, m in groups(rows, "method")}
            order = sorted(mean, key=lambda name: (mean[name], name))[:PLACES]
            row: dict[str, Any] = {"guarantee": key["privacy"], "rounds": budget}
            for place, name in enumerate([*order, None][:PLACES]):
                mine = [] if name is None else chosen(results, method=name, privacy=key["privacy"])
                row |= {
                    ("take", "or")[place]: _linked(name, mine),
                    "median error" + " " * place: _median(mine, f"error_{budget}"),
                }
            found.append(row)
    return sorted(found, key=lambda row: (row["guarantee"] != PLAIN, row["guarantee"]))


def each_method(results: Rows, leaks: Rows, guarantee: str) -> Rows:
    """Return what every method with a guarantee does, the one with the least error first."""
    found: Rows = []
    for key, mine in groups(chosen(results, privacy=guarantee), "method"):
        solved = {
            named["problem"]
            for named, rows in groups(mine, "problem")
            if np.isfinite(_number(rows, "rounds_to_target"))
        }
        leak = [row["leakage"] for row in leaks if row["method"] == key["method"]]
        row: dict[str, Any] = {"method": _linked(key["method"], mine)}
        if guarantee == PLAIN:
            row |= {f"error, {b} rounds": _median(mine, f"error_{b}") for b in arena.BUDGETS}
            row |= {
                f"solved of {len({r['problem'] for r in mine})}": len(solved),
                "rounds to it": _median(mine, "rounds_to_target"),
                "kB up to it": _median(mine, "bytes_to_target", 1e-3),
            }
        else:
            row |= {"error": _median(mine, "error"), "least": _least(mine)}
            row |= {"rounds": _median(mine, "rounds"), "kB up": _median(mine, "bytes", 1e-3)}
        row["server rebuilds"] = _short(float(np.median(leak))) if leak else "–"
        found.append((_number(mine, "error_20" if guarantee == PLAIN else "error"), row))
    ordered = sorted(found, key=lambda pair: (np.nan_to_num(pair[0], nan=2.0), pair[1]["method"]))
    return [row for _, row in ordered]


def _linked(method: str | None, rows: Rows) -> str:
    if method is None:
        return "–"
    anchor = rows[0]["algorithm"].replace("_", "-")
    return f"[`{method}`](algorithms.md#{anchor})"


def _number(rows: Rows, column: str) -> float:
    """Return the median over problems and repeats; a missing value is worse than any other."""
    values = [np.inf if row[column] is None else row[column] for row in rows]
    values = np.nan_to_num(np.array(values, dtype=float), nan=np.inf)
    return float(np.median(values)) if len(values) else np.inf


def _median(rows: Rows, column: str, factor: float = 1.0) -> str:
    value = _number(rows, column) * factor
    return _short(value) if np.isfinite(value) else "–"


def _least(rows: Rows) -> str:
    return _short(min(_number(r, "error") for _, r in groups(rows, "problem")))


def _short(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.2g}" if abs(value) < 100 else f"{value:,.0f}"


def _markdown(rows: Rows) -> str:
    """Return a table; unlike those of `fedcore.reports.tables` its cells may hold links."""
    names = list(rows[0])
    lines = [
        "| " + " | ".join(name.strip() for name in names) + " |",
        "| :-- |" + " --: |" * (len(names) - 1),
    ]
    lines += ["| " + " | ".join(str(row[name]) for name in names) + " |" for row in rows]
    return "\n".join(lines)
