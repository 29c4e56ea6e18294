"""What Sphinx reads in place of a page's text: made tables, and links to pages.

Pages of the repository link to files as they lie in it. On the site, a link to a file that a page
includes goes to that page. A page may hold blocks, each alone in a fence:

    ```{made} methods                    text that a function of MADE writes, see below
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import library
import methods
import programs
import tutorial
from sphinx.application import Sphinx

DOCS = Path(__file__).parents[1]
MADE: dict[str, Callable[[], str]] = {
    "algorithms": library.algorithms,
    "commands": programs.commands,
    "developers": library.developers,
    "metrics": library.metrics,
    "methods": methods.page,
    "patients": tutorial.patients,
    "public": library.public,
    "scores": tutorial.plots,
}
BLOCK = re.compile(r"^```\{made\} (\w+)\n```$", re.M)
INCLUDE = re.compile(r"^```\{include\} (\S+)$", re.M)
LINK = re.compile(r"\]\(([^()\s#:]+)(#[^()\s]*)?\)")


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put made text in the place of its block, and let links to included files lead to pages."""
    folder = Path(app.env.doc2path(docname)).parent
    text = BLOCK.sub(lambda block: MADE[block[1]](), source[0])
    if text != source[0]:
        app.env.note_reread()  # tables and figures may be new
    source[0] = LINK.sub(lambda link: _link(link, folder), text)


def _link(link: re.Match[str], folder: Path) -> str:
    page = pages().get((folder / link[1]).resolve())
    return link[0] if page is None else f"]({os.path.relpath(page, folder)}{link[2] or ''})"


@cache
def pages() -> dict[Path, Path]:
    """Return the page of every file that a page of the site includes."""
    return {
        (page.parent / file).resolve(): page
        for page in DOCS.rglob("*.md")
        for file in INCLUDE.findall(page.read_text(encoding="utf-8"))
    }


def escaped(
    app: Sphinx, what: str, name: str, it: object, options: object, lines: list[str]
) -> None:
    """Escape in a docstring what Sphinx would take for markup: bars of |x|, and a last _ in n_."""
    for number, line in enumerate(lines):
        parts = re.split(r"(``.*?``|`.*?`)", line)
        parts[::2] = [re.sub(r"\|(?=\S)|(?<=\w)_(?!\w)", r"\\\g<0>", p) for p in parts[::2]]
        lines[number] = "".join(parts)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.connect("source-read", read)
    app.connect("autodoc-process-docstring", escaped)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
