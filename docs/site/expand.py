"""What Sphinx reads in place of a page's text: included files, made tables, live links.

Pages of the repository link to files as they lie in it. On the site, a link to a page that the site
has goes to that page, a link to any other file offers the file, and a link to a folder is its text
alone. A page of the site may hold two kinds of blocks, both alone in a fence:

    ```{include} ../config/README.md     the text of a file, with its links
    ```{made} methods                    text that a function of MADE writes, see below
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import gallery
import library
import methods
import programs
import tutorial
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE: dict[str, Callable[[], str]] = {
    "algorithms": library.algorithms,
    "commands": programs.commands,
    "developers": library.developers,
    "gallery": gallery.page,
    "metrics": library.metrics,
    "methods": methods.page,
    "patients": tutorial.patients,
    "public": library.public,
    "scores": tutorial.plots,
}
FENCE = re.compile(r"^(```+|:::+)(.*?)\n(.*?)^\1[ \t]*$", re.M | re.S)
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\[\]]*)\]\((?P<target>[^()\s]+)\)")


def expanded(text: str, page: Path, file: Path | None = None) -> str:
    """Return the text that the site shows for the text of a page.

    Parameters
    ----------
    text : str
        Markdown.
    page : Path
        The page of the site, an absolute path.
    file : Path, optional
        Where `text` comes from, if not from `page`.
    """
    parts, end = [], 0
    for fence in FENCE.finditer(text):
        parts.append(_relinked(text[end : fence.start()], page, file or page))
        parts.append(_block(fence, page, file or page))
        end = fence.end()
    return "".join(parts) + _relinked(text[end:], page, file or page)


def _block(fence: re.Match[str], page: Path, file: Path) -> str:
    kind, _, argument = fence[2].strip().partition(" ")
    if kind == "{include}":
        source = (file.parent / argument).resolve()
        return expanded(source.read_text(encoding="utf-8"), page, source)
    if kind == "{made}":
        return _relinked(MADE[argument](), page, page)
    if kind == "mermaid":
        return arrows(fence[3])
    return fence[0]


def arrows(diagram: str) -> str:
    """Return a diagram of Mermaid, which browsers cannot draw, as a table of its arrows."""
    titles: dict[str, str] = {}
    found: dict[str, list[str]] = {}
    for line in diagram.splitlines()[1:]:
        for name, title in re.findall(r"(\w+)\[\"?(.*?)\"?\]", line):
            titles[name] = title
        ends = re.findall(r"(\w+)(?:\[[^\]]*\])?", re.sub(r"\[[^\]]*\]", "", line))
        if len(ends) == 2:
            found.setdefault(ends[0], []).append(ends[1])
    rows = [
        f"| `{titles.get(start, start)}` | "
        + ", ".join(f"`{titles.get(end, end)}`" for end in ends)
        + " |"
        for start, ends in found.items()
    ]
    return "\n".join(["| from | to |", "| :-- | :-- |", *rows])


def _relinked(text: str, page: Path, file: Path) -> str:
    return LINK.sub(lambda link: _link(link, page, file), text)


def _link(link: re.Match[str], page: Path, file: Path) -> str:
    target, _, anchor = link["target"].partition("#")
    if not target or re.match(r"[a-z]+:", target):
        return link[0]
    path = (file.parent / target).resolve()
    if path.is_dir():
        return link["text"]
    path = pages().get(path, path)
    place = Path(os.path.relpath(path, page.parent)).as_posix()
    return f"{link['image']}[{link['text']}]({place}{'#' * bool(anchor)}{anchor})"


def pages() -> dict[Path, Path]:
    """Return the page of every file that a page of the site includes."""
    return {file: page for page in DOCS.rglob("*.md") for file in included(page)}


def included(page: Path) -> Iterator[Path]:
    """Yield the files that a page includes."""
    for fence in FENCE.finditer(page.read_text(encoding="utf-8")):
        kind, _, argument = fence[2].strip().partition(" ")
        if kind == "{include}":
            yield (page.parent / argument).resolve()


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Put the expanded text in the place of a page's."""
    page = Path(app.env.doc2path(docname))
    for file in included(page):
        app.env.note_dependency(str(file))
    if "```{made}" in source[0]:
        app.env.note_reread()  # tables and figures may be new
    source[0] = expanded(source[0], page)


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
