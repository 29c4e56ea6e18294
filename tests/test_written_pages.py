"""The arena's page is the one that its program writes of the kept tables today."""

from __future__ import annotations


def test_the_page_of_the_arena_is_up_to_date(tool):
    script = tool("arena_page")
    assert script.PAGE.read_text(encoding="utf-8") == script.page(script.KEPT), "run `make arena`"
