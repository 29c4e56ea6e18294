"""Why a cell is run again: the functions and settings that differ from those of its history.

A history has the fingerprint of its code. For every fingerprint, the workflow keeps short hashes of
the functions that it covers, ``<results>/code/<fingerprint>.json``, so that a later run can name
the one that changed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from fedcore import words
from fedcore.errors import DataError, HistoryError
from fedcore.experiments.combinations import combinations
from fedcore.experiments.fingerprint import parts
from fedcore.experiments.plan import Cell
from fedcore.files import atomic
from fedcore.history import History

FOLDER = "code"


def keep(cells: Iterable[Cell], results: Path) -> None:
    """Write what the fingerprints of cells cover, where it has not been written before."""
    for code, cell in {cell.code: cell for cell in cells}.items():
        path = results / FOLDER / f"{code}.json"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic.replace(path) as made:
                made.write_text(json.dumps(parts(*cell.modules), indent=0), encoding="utf-8")


def reasons(cell: Cell, results: Path) -> list[str]:
    """Return why the history of a cell would be made anew; empty when it would not.

    Parameters
    ----------
    cell : Cell
        As it is planned now.
    results : path
        Folder of the run.

    Raises
    ------
    DataError
        When the history is damaged.
    """
    path = results / "histories" / f"{cell.path}.h5"
    if not path.is_file():
        return ["there is no history yet"]
    try:
        history = History.load(path)
    except HistoryError as error:
        raise DataError(str(error)) from error
    return [*settings_changed(cell, history), *_code(cell, str(history.about["code"]), results)]


def counted(cells: Iterable[Cell], results: Path, most: int = 5) -> str:
    """Return why cells with a history are run again, the most frequent reasons first."""
    found: Counter[str] = Counter()
    for cell in cells:
        if (results / "histories" / f"{cell.path}.h5").is_file():
            try:
                found.update(reasons(cell, results))
            except (DataError, KeyError):  # damaged, or of an older version
                found.update(["the history cannot be read"])
    if not found:
        return ""
    named = [f"{why} ({words.counted(count, 'cell')})" for why, count in found.most_common(most)]
    others = f"; and {words.counted(len(found) - most, 'more reason')}" if len(found) > most else ""
    return f"Run again because {'; '.join(named)}{others}."


def settings_changed(cell: Cell, history: History) -> list[str]:
    """Return in words which settings of a cell are others than its history has been made with.

    A history does not say when it was to stop, and which iterates it was to keep.
    """
    about = history.about
    before = dict(about["params"])
    chosen = set((cell.tune or {}).get("over", {}))  # by the run itself
    found = [
        _differs(f"parameter {name}", before.get(name), cell.params.get(name))
        for name in sorted((before.keys() | cell.params.keys()) - chosen)
    ]
    found.append(_differs("number of repeats", history.repeats, cell.repeats))
    found.append(_differs("seed", about["seed"]["master"], cell.seed))
    found.append(_differs("twin", about.get("twin", "none"), cell.twin))
    epochs = [(of or {}).get("epochs") for of in (about.get("newcomers"), cell.newcomers)]
    found.append(_differs("number of newcomers' epochs", *epochs))
    found += [f"the measure {name} is new" for name in cell.metrics if name not in history.columns]
    if _tuned(about.get("tuning")) != _tuned(cell.tune):
        found.append("the tuning has changed")
    return [text for text in found if text]


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


def _code(cell: Cell, before: str, results: Path) -> list[str]:
    if before == cell.code:
        return []
    kept = results / FOLDER / f"{before}.json"
    try:
        old: Mapping[str, str] = json.loads(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return [f"code has changed; what it was is not kept in {kept}"]
    new = parts(*cell.modules)
    changed = [f"{name} has changed" for name in sorted(old.keys() & new) if old[name] != new[name]]
    added = [f"{name} is new" for name in sorted(new.keys() - old)]
    gone = [f"{name} is gone" for name in sorted(old.keys() - new)]
    return [*changed, *added, *gone] or ["an import or the description of a measure has changed"]
