"""Pages that a program writes are those that it writes of the code and the kept tables today."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("name", ["arena_page", "algorithm_table"])
def test_a_written_page_is_up_to_date(name, tool):
    script = tool(name)
    path = script.README if name == "algorithm_table" else script.PAGE
    text = path.read_text(encoding="utf-8")
    given = (text,) if name == "algorithm_table" else (script.KEPT,)
    assert text == script.page(*given), "run tools/algorithm_table.py, or `make arena`"
