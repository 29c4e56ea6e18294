"""A cell as the plan writes it, for tests that run one."""

from __future__ import annotations

from typing import Any

PLAIN = {
    "paper": "p", "experiment": "e", "name": "x-a", "problem": "x", "repeats": 1, "metrics": [],
    "iterates": "last", "seed": 0,
}  # fmt: skip


def cell(algorithm: str, params: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """Return a cell of this algorithm."""
    return PLAIN | {"algorithm": algorithm, "params": params} | changes
