"""Writes docs/architecture.md from the imports; `make architecture` runs it."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
PAGE = Path(__file__).with_suffix(".md")
TEXT = """# Architecture

This page is written by `make architecture` from the code; a test fails when it is stale.

## The way of the data

```mermaid
flowchart LR
  config[papers/*/experiments.yaml] --> plan
  raw[data/raw] --> problem[data/clients/*.h5]
  plan --> problem
  problem --> cell["histories/…/cell.h5"]
  cell --> tables
  tables --> figures
  cell --> figures
  claims[papers/*/claims.yaml] --> verdicts
  tables --> verdicts
  verdicts --> pages[docs/verdicts/]
```

| arrow | rule | code |
| --- | --- | --- |
| to `data/raw` | `fetch` | `fedcore/datasets/fetching.py` |
| to the plan | `plan` | `fedcore/repro/plan/plan.py` |
| to a problem | `problem` | `fedcore/experiments/build.py` |
| to a history | `run_<algorithm>` | `fedcore/experiments/repeats.py`, `fedcore/api.py` |
| to tables | `tables_<paper>` | `papers/<paper>/tables.py` |
| to figures | `notebook_<paper>` | `notebooks/`, `fedcore/reports/plotting.py` |
| to verdicts | `verdicts` | `fedcore/repro/verdicts/` |
| to the pages | `make verdicts` | `tools/kept_verdicts.py`, `verdicts.py`, `readme_verdicts.py` |

## The layers

A module imports from rooms of lower rows only; rooms of one row do not import each other. The rows
are those of `[tool.importlinter]` in `pyproject.toml`, which `make lint` holds the code against.

{layers}

Arrows that follow from others are left out:

```mermaid
flowchart TD
{arrows}
```
"""


def layers() -> list[list[str]]:
    """Return the rooms of each layer, the highest first, as the linter is told."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    (rows,) = [c["layers"] for c in contracts if c["name"] == "layers"]
    return [re.findall(r"fedcore\.(\w+)", row) for row in rows]


def imports() -> dict[str, set[str]]:
    """Return the rooms that each room imports."""
    graph = grimp.build_graph("fedcore", cache_dir=None)
    found: dict[str, set[str]] = {}
    for module in graph.modules - {"fedcore"}:
        room = module.split(".")[1]
        others = graph.find_modules_directly_imported_by(module) - {"fedcore"}
        found.setdefault(room, set()).update({other.split(".")[1] for other in others} - {room})
    return found


def reachable(room: str, arrows: dict[str, set[str]]) -> set[str]:
    """Return all rooms below a room."""
    below = set(arrows[room])
    for other in arrows[room]:
        below |= reachable(other, arrows)
    return below


def opening(room: str) -> str:
    """Return the first sentence of a room's docstring."""
    path = ROOT / "fedcore" / room
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return text.partition("\n\n")[0].replace("\n", " ")


def page() -> str:
    """Return the text of docs/architecture.md."""
    arrows = imports()
    rows = ["| layer | room | what it is |", "| --: | --- | --- |"]
    for number, rooms in enumerate(layers(), start=1):
        for room in rooms:
            rows.append(f"| {number} | `{room}` | {opening(room)} |")
    shown = []
    for room in sorted(arrows):
        implied = set().union(*(reachable(other, arrows) for other in arrows[room]), set())
        shown += [f"  {room} --> {other}" for other in sorted(arrows[room] - implied)]
    return TEXT.replace("{layers}", "\n".join(rows)).replace("{arrows}", "\n".join(shown))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
