"""A cell for tests that run one."""

from __future__ import annotations

from typing import Any

from fedcore.experiments.cell import Cell

PLAIN = {
    "paper": "p", "experiment": "e", "name": "x-a", "problem": "x", "repeats": 1, "metrics": [],
    "iterates": "last", "seed": 0,
}  # fmt: skip


def cell(algorithm: str, params: dict[str, Any], **changes: Any) -> Cell:
    """Return a cell of this algorithm."""
    return Cell(**PLAIN | {"algorithm": algorithm, "params": params} | changes)
