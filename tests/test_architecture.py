"""docs/architecture.md is what docs/architecture.py makes of the code as it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from fedcore import algorithms

pytest.importorskip("grimp")
FILE = Path(__file__).parents[1] / "docs" / "architecture.py"


@pytest.fixture(scope="module")
def architecture(docs_script):
    return docs_script("architecture")


def test_the_page_is_up_to_date(architecture):
    page = FILE.with_suffix(".md").read_text(encoding="utf-8")
    assert page == architecture.page(), "run `make architecture`"


def test_readmes_table_of_algorithms_is_up_to_date(docs_script):
    script = docs_script("algorithm_table")
    text = script.README.read_text(encoding="utf-8")
    assert text == script.page(text), "run `make architecture`"
    listed = re.findall(r"^\| `(\w+)` \| (.+) \| `\w+` \|$", script.table(), re.M)
    own = [f.stem for f in (script.README.parent / "fedcore/algorithms").glob("[a-z]*.py")]
    assert sorted(name for name, _ in listed) == sorted(own)
    assert dict(listed)["ssi"] == algorithms.get("ssi").title.rstrip(".")


def test_every_room_stands_in_one_layer_and_no_arrow_points_up(architecture):
    layer = {room: row for row, rooms in enumerate(architecture.layers()) for room in rooms}
    arrows = architecture.imports()
    assert layer.keys() == arrows.keys()
    assert [(a, b) for a in arrows for b in arrows[a] if layer[b] <= layer[a]] == []
