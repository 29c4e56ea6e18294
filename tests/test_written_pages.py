"""Pages of the arena and of the gallery are those that their programs write today."""

from __future__ import annotations


def test_the_page_of_the_arena_is_up_to_date(tool):
    script = tool("arena_page")
    assert script.PAGE.read_text(encoding="utf-8") == script.page(script.KEPT), "run `make arena`"


def test_the_gallery_is_up_to_date(tool):
    script = tool("kept_figures")
    page = script.ROOT / "docs/gallery.md"
    assert page.read_text(encoding="utf-8") == script.page(), "run `python tools/kept_figures.py`"
