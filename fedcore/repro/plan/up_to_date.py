"""Check whether a history was made with the code and the settings of a planned cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedcore.experiments.cell import Cell
from fedcore.experiments.combinations import combinations
from fedcore.history import History


def changed(cell: Cell, history: History) -> list[str]:
    """Return a text for each compared setting in which a cell differs from its history.

    The compared settings are the parameters that tuning does not choose, the number of repeats, the
    seed, the kind of twin (a second run that shows the effect of rounding), the epochs of newcomers
    (clients that join after training), the tuning, and whether a metric is new. The stopping rules
    are not compared, because histories do not record them.
    """
    about, tune = history.about, cell.tune
    chosen = (tune or {}).get("over", {})  # by the run itself

    def named(params: Mapping[str, Any], *others: Any) -> dict[str, Any]:
        told = {f"parameter {name}": v for name, v in params.items() if name not in chosen}
        repeats, seed, twin, newcomers, tuning = others
        return told | {
            "number of repeats": repeats,
            "seed": seed,
            "twin": twin,
            "number of newcomers' epochs": (newcomers or {}).get("epochs"),
            "tuning": _tuned(tuning),
        }

    before = named(
        about["params"], history.repeats, about["seed"]["master"], about.get("twin", "none"),
        about.get("newcomers"), about.get("tuning"),
    )  # fmt: skip
    now = named(cell.params, cell.repeats, cell.seed, cell.twin, cell.newcomers, tune)
    found = [
        f"{name} was {before.get(name, 'not given')} and is {now.get(name, 'not given')}"
        for name in sorted(before | now)
        if before.get(name) != now.get(name)
    ]
    new = [name for name in cell.metrics if name not in history.columns]
    return found + [f"the measure {name} is new" for name in new]


def outdated(cell: Cell, history: History) -> str:
    """Return why a history is out of date, or an empty text if it is up to date.

    For a restored history (copied from an earlier run), only the settings are compared, because
    another commit may have made it.
    """
    if not history.about.get("restored"):
        if history.about["code"] != cell.code:
            return "it was made by other code"
        if history.about.get("recipes", []) != cell.recipes:
            return "its problem was made with other settings or by other code"
    return "; ".join(changed(cell, history))


def _tuned(tune: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """Return what defines a tuning: measure, interval in records, first repeat, and settings."""
    if not tune:
        return ()
    settings = combinations(tune["over"]) if "over" in tune else tune["settings"]
    return tune["by"], tune["every"], tune.get("first", 0), settings
