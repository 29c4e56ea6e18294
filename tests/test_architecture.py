"""docs/architecture.md is what docs/architecture.py makes of the code as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("grimp")
FILE = Path(__file__).parents[1] / "docs" / "architecture.py"


@pytest.fixture(scope="module")
def architecture(docs_script):
    return docs_script("architecture")


def test_the_page_is_up_to_date(architecture):
    page = FILE.with_suffix(".md").read_text(encoding="utf-8")
    assert page == architecture.page(), "run `make architecture`"


def test_every_room_stands_in_one_layer_and_no_arrow_points_up(architecture):
    layer = {room: row for row, rooms in enumerate(architecture.layers()) for room in rooms}
    arrows = architecture.imports()
    assert layer.keys() == arrows.keys()
    assert [(a, b) for a in arrows for b in arrows[a] if layer[b] <= layer[a]] == []
