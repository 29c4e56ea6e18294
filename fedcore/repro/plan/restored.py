"""Keep a list of restored histories, which `make restore` copied into the results.

The list is ``results/restored.json``. The workflow makes no data for the cells (planned runs) of
these histories. A history counts as restored until its file or its cell's settings, code or
problems change.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from fedcore.errors import ConfigError
from fedcore.experiments.cell import Cell
from fedcore.experiments.fingerprint import fingerprint
from fedcore.files import atomic, checksums
from fedcore.repro.plan import kept_cells
from fedcore.repro.plan.plan import Plan


def note(plan: Plan, cells: Iterable[Cell]) -> None:
    """Record in ``restored.json`` that the histories of these cells were restored."""
    results = Path(plan.config["paths"]["results"])
    entries = _read(results)
    for cell in cells:
        entries[cell.path] = _entry(results, cell)
    with atomic.replace(_file(results)) as temporary:
        temporary.write_text(json.dumps(entries, indent=1), encoding="utf-8")


def paths(plan: Plan) -> set[str]:
    """Return the paths of cells that have not changed since their histories were restored."""
    results = Path(plan.config["paths"]["results"])
    return {
        path
        for path, entry in _read(results).items()
        if path in plan.cells and entry == _entry(results, plan.cells[path])
    }


def _file(results: Path) -> Path:
    return results / "restored.json"


def _read(results: Path) -> dict[str, dict[str, str]]:
    file = _file(results)
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(entries, dict):
            raise ValueError("it is no mapping of cells")
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{file} cannot be read ({error}): delete it, and run `make restore` again"
        ) from error
    return entries


def _entry(results: Path, cell: Cell) -> dict[str, str]:
    """Return the checksum of a cell's history and a digest of the cell.

    The checksum is empty if there is no history. The digest covers the cell's settings, its code,
    and the recipes (digests of settings and code) of its problems.
    """
    history = results / "histories" / f"{cell.path}.h5"
    sha256 = ""
    if history.is_file():
        sha256 = checksums.file_sha256(history)
    digest = fingerprint(kept_cells.settings_of(cell), cell.code, *cell.recipes)
    return {"sha256": sha256, "cell": digest}
