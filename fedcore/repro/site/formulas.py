"""Formulas in text, ``$…$``, as pictures that matplotlib draws; screen readers read the source."""

from __future__ import annotations

import base64
import functools
import io
import re
from collections.abc import Callable

import matplotlib
from markupsafe import Markup, escape
from matplotlib import mathtext
from matplotlib.font_manager import FontProperties

SIZE = 12.0  # points of the picture's letters
FORMULA = re.compile(r"\$(?!\s)([^$\n]+?)(?<!\s)\$")
PLACE = "\ue000{}\ue001"  # of private use, which no text has
# What matplotlib's TeX lacks or wants in another form.
OTHERWISE = (
    (r"\\\|", r"\\Vert "),
    (r"\\sqrt (\w)", r"\\sqrt{\1}"),
    (r"\\frac(\d)(\d)", r"\\frac{\1}{\2}"),
    (r"\\(l|g)e\b", r"\\\1eq"),
)


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
                f"${tex}$", picture, prop=FontProperties(size=SIZE), dpi=72, format="svg"
            )
    except ValueError:  # no TeX, or more than matplotlib knows
        return Markup("<code>{}</code>").format(source)
    size = re.search(rb'<svg[^>]* height="([\d.]+)pt"', picture.getvalue())
    height = float(size[1]) / SIZE if size else 1.2
    data = base64.b64encode(picture.getvalue()).decode()
    style = f"height:{height:.3f}em;vertical-align:{-depth / SIZE:.3f}em"
    return (
        f'<img class="tex" src="data:image/svg+xml;base64,{data}" alt="{escape(source)}" '
        f'style="{style}">'
    )
