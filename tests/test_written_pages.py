"""Pages that a program writes are those that it writes of the code and the kept tables today."""

from __future__ import annotations

from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", ["architecture", "arena_page", "algorithm_table"])
def test_a_written_page_is_up_to_date(name, tool):
    if name == "architecture":
        pytest.importorskip("grimp")
    script = tool(name)
    path = script.README if name == "algorithm_table" else DOCS / f"{name.removesuffix('_page')}.md"
    text = path.read_text(encoding="utf-8")
    given = {"architecture": (), "arena_page": (getattr(script, "KEPT", None),)}.get(name, (text,))
    assert text == script.page(*given), "run `make architecture`, or `make arena`"
