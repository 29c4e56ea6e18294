"""Executed notebooks as parts of a page: text, code and what it shows."""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markupsafe import Markup, escape

from fedcore.errors import DataError
from fedcore.repro.site import formulas

HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")
TEXT = MarkdownIt("commonmark", {"html": False}).enable("table")


@dataclass(frozen=True)
class Part:
    """A cell: rendered text, or code with rendered text and pictures below it.

    `pictures` are bytes of PNG files; `heading` is the last one above them.
    """

    text: Markup
    code: str
    pictures: tuple[bytes, ...]
    heading: str = ""


def rendered(markdown: str) -> Markup:
    """Return Markdown as HTML with its formulas; HTML inside it is shown, not obeyed."""
    return Markup(formulas.drawn(markdown, TEXT.render))


def with_code(text: str) -> Markup:
    """Return a text of one line whose parts between backticks are code."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))


def parts(path: Path) -> list[Part]:
    """Return the cells of a notebook that show something."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not a notebook ({error}); delete it, and run again") from error
    found, heading = [], ""
    for cell in cells:
        source = _joined(cell["source"])
        if cell["cell_type"] == "markdown":
            found.append(Part(rendered(source), "", ()))
            heading = next(iter(HEADING.findall(source)[::-1]), heading)
            continue
        outputs = [output.get("data", {}) for output in cell.get("outputs", [])]
        pictures = tuple(
            base64.b64decode(_joined(data["image/png"])) for data in outputs if "image/png" in data
        )
        texts = [_joined(data["text/markdown"]) for data in outputs if "text/markdown" in data]
        if source.strip():
            found.append(Part(rendered("\n\n".join(texts)), source, pictures, heading))
    return found


def _joined(text: Any) -> str:
    return text if isinstance(text, str) else "".join(text)
