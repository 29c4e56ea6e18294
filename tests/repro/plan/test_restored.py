"""Histories that were put back stand for their cells until one of both changes."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fedcore.errors import ConfigError
from fedcore.experiments.cell import Cell
from fedcore.repro.plan import restored
from refused import refused

CELLS = [
    Cell("p", "e", "ssi", name, "x", {"n_components": 2}, 2, ["objective"], "last", 3,
         code="of this commit", recipes=["of its problem"])
    for name in ("x-default", "y-default")
]  # fmt: skip


@pytest.fixture
def put_back(tmp_path):
    """A plan with two cells, whose histories are there and noted."""
    for cell in CELLS:
        file = tmp_path / "histories" / f"{cell.path}.h5"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(cell.path.encode())
    plan = SimpleNamespace(
        config={"paths": {"results": str(tmp_path)}}, cells={cell.path: cell for cell in CELLS}
    )
    assert restored.paths(plan) == set()
    for cell in CELLS:
        restored.note(plan, [cell])  # also one after the other
    return plan, tmp_path


def test_what_was_noted_is_put_back(put_back):
    plan, _ = put_back
    assert restored.paths(plan) == {cell.path for cell in CELLS}


@pytest.mark.parametrize(
    "change",
    [{"code": "other"}, {"recipes": ["other"]}, {"repeats": 3}, {"params": {"n_components": 3}}],
)
def test_a_changed_cell_is_no_longer_put_back(put_back, change):
    plan, _ = put_back
    first, second = CELLS
    plan.cells[first.path] = replace(first, **change)
    assert restored.paths(plan) == {second.path}
    del plan.cells[first.path]
    assert restored.paths(plan) == {second.path}


def test_a_history_that_is_lost_or_made_anew_is_no_longer_put_back(put_back):
    plan, results = put_back
    first, second = CELLS
    file = results / "histories" / f"{first.path}.h5"
    file.unlink()
    assert restored.paths(plan) == {second.path}
    file.write_bytes(b"made anew")
    assert restored.paths(plan) == {second.path}


@pytest.mark.parametrize("text", ["{", "[]", "3"])
def test_a_damaged_note_is_a_sentence(put_back, text):
    plan, results = put_back
    (results / "restored.json").write_text(text)
    refused(lambda: restored.paths(plan), ConfigError, "delete it, and run `make restore`")
