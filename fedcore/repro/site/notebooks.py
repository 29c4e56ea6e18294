"""Executed notebooks as parts of a page: text, code and what it shows.

Formulas in text, ``$…$``, become pictures that matplotlib draws; screen readers read the source.
"""

from __future__ import annotations

import base64
import functools
import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
from markdown_it import MarkdownIt
from markupsafe import Markup, escape
from matplotlib import mathtext
from matplotlib.font_manager import FontProperties

from fedcore.errors import DataError

HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")
TEXT = MarkdownIt("commonmark", {"html": False}).enable("table")
FORMULA_SIZE = 12.0  # points of the picture's letters
FORMULA = re.compile(r"\$(?!\s)([^$\n]+?)(?<!\s)\$")
PLACE = "\ue000{}\ue001"  # of private use, which no text has
# What matplotlib's TeX lacks or wants in another form.
OTHERWISE = (
    (r"\\\|", r"\\Vert "),
    (r"\\sqrt (\w)", r"\\sqrt{\1}"),
    (r"\\frac(\d)(\d)", r"\\frac{\1}{\2}"),
    (r"\\(l|g)e\b", r"\\\1eq"),
)


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
    return Markup(drawn(markdown, TEXT.render))


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


def drawn(text: str, render: Callable[[str], str]) -> str:
    """Return ``render(text)`` with its formulas as pictures; what cannot be drawn stays as code.

    ``render`` does not see the formulas, as in Markdown their signs mean something else.
    """
    formulas: list[str] = []

    def hide(found: re.Match[str]) -> str:
        formulas.append(found[1])
        return PLACE.format(len(formulas) - 1)

    made = render(FORMULA.sub(hide, text))
    for number, source in enumerate(formulas):
        made = made.replace(PLACE.format(number), _picture(source))
    return made


@functools.lru_cache(maxsize=512)
def _picture(source: str) -> str:
    tex = source
    for before, after in OTHERWISE:
        tex = re.sub(before, after, tex)
    picture = io.BytesIO()
    try:
        with matplotlib.rc_context({"svg.hashsalt": "fedcore", "mathtext.fontset": "dejavuserif"}):
            depth = mathtext.math_to_image(
                f"${tex}$", picture, prop=FontProperties(size=FORMULA_SIZE), dpi=72, format="svg"
            )
    except ValueError:  # no TeX, or more than matplotlib knows
        return Markup("<code>{}</code>").format(source)
    size = re.search(rb'<svg[^>]* height="([\d.]+)pt"', picture.getvalue())
    height = float(size[1]) / FORMULA_SIZE if size else 1.2
    data = base64.b64encode(picture.getvalue()).decode()
    style = f"height:{height:.3f}em;vertical-align:{-depth / FORMULA_SIZE:.3f}em"
    return (
        f'<img class="tex" src="data:image/svg+xml;base64,{data}" alt="{escape(source)}" '
        f'style="{style}">'
    )
