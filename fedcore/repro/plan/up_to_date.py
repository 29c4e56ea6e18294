"""Whether a history is that of a planned cell: made by its code, and with its settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedcore.experiments.cell import Cell
from fedcore.experiments.combinations import combinations
from fedcore.history import History


def changed(cell: Cell, history: History) -> list[str]:
    """Return in words which settings of a cell are others than its history has been made with.

    A history does not say when its run should stop, nor which iterates it should keep.
    """
    about = history.about
    before = dict(about["params"])
    tune, params = cell.tune, cell.params
    chosen = set((tune or {}).get("over", {}))  # by the run itself
    found = [
        _differs(f"parameter {name}", before.get(name), params.get(name))
        for name in sorted((before.keys() | params.keys()) - chosen)
    ]
    found.append(_differs("number of repeats", history.repeats, cell.repeats))
    found.append(_differs("seed", about["seed"]["master"], cell.seed))
    found.append(_differs("twin", about.get("twin", "none"), cell.twin))
    epochs = [(of or {}).get("epochs") for of in (about.get("newcomers"), cell.newcomers)]
    found.append(_differs("number of newcomers' epochs", *epochs))
    new = [name for name in cell.metrics if name not in history.columns]
    found += [f"the measure {name} is new" for name in new]
    if _tuned(about.get("tuning")) != _tuned(tune):
        found.append("the tuning has changed")
    return [text for text in found if text]


def outdated(cell: Cell, history: History) -> str:
    """Return why a history is not what a plan asks for; empty when it is.

    A history that was restored is a record of its own commit: its settings alone are compared.
    """
    if not history.about.get("restored"):
        if history.about["code"] != cell.code:
            return "it was made by other code"
        if history.about.get("recipes", []) != cell.recipes:
            return "its problem was made with other settings or by other code"
    return "; ".join(changed(cell, history))


def _tuned(tune: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """Return by what and over which values is tuned, as a cell asks for it or a history says it."""
    if not tune:
        return ()
    settings = combinations(tune["over"]) if "over" in tune else tune["settings"]
    return tune["by"], tune["every"], tune.get("first", 0), settings


def _differs(what: str, before: Any, now: Any) -> str:
    return "" if before == now else f"{what} was {_shown(before)} and is {_shown(now)}"


def _shown(value: Any) -> str:
    return "not given" if value is None else str(value)
