"""Write tables as LaTeX for a user's own paper; the tables need the LaTeX package booktabs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from itertools import groupby

ESCAPES = {c: rf"\{c}" for c in "&%$#_{}"} | {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "′": "'",
}  # fmt: skip
SYMBOLS = {
    "ε": r"\varepsilon", "ϵ": r"\epsilon", "√": r"\sqrt{\,}", "‖": r"\Vert", "≤": r"\leq",
    "≥": r"\geq", "≈": r"\approx", "∞": r"\infty", "±": r"\pm", "×": r"\times", "·": r"\cdot",
    "−": "-", "⊥": r"\perp",
}  # fmt: skip
GREEK = re.compile(r"GREEK (SMALL|CAPITAL) LETTER (\w+)")
CASES = {"SMALL": str.lower, "CAPITAL": str.title}
RAISED = {"<super>": "^", "<sub>": "_"}
NUMBER = re.compile(r"(-?[\d.]+)(?:e(-?\d+))?")
BARRED = re.compile("([^\\W\\d_])\u0304")  # a letter below a combining macron


def table(
    heads: Sequence[str], lines: Iterable[Sequence[str]], sides: str, *, caption: str, name: str
) -> str:
    """Return a LaTeX table with the label `name`; `sides` has ``l`` or ``r`` for each column."""
    body = [f"    {' & '.join(map(cell, line))} \\\\" for line in lines]
    return "\n".join(
        [
            "% \\usepackage{booktabs}",
            "\\begin{table}",
            f"  \\caption{{{escape(caption)}}}",
            f"  \\label{{tab:{name}}}",
            f"  \\begin{{tabular}}{{{sides}}}",
            "    \\toprule",
            f"    {' & '.join(map(escape, heads))} \\\\",
            "    \\midrule",
            *body,
            "    \\bottomrule",
            "  \\end{tabular}",
            "\\end{table}\n",
        ]
    )


def cell(text: str) -> str:
    r"""Return the text of a table cell in LaTeX; a number becomes a formula.

    Examples
    --------
    >>> print(cell("-1.94e-6"), cell("κ² of w8a_1"))
    $-1.94 \times 10^{-6}$ $\kappa$$^{2}$ of w8a\_1
    """
    number = NUMBER.fullmatch(text)
    if number is None:
        return escape(text)
    return f"${number[1]} \\times 10^{{{number[2]}}}$" if number[2] else f"${text}$"


def escape(text: str) -> str:
    """Escape a text for LaTeX, and write Greek letters and raised digits as formulas."""
    parts = BARRED.split(" ".join(text.split()))
    parts[::2] = map(_escaped, parts[::2])
    parts[1::2] = [f"$\\bar{{{_lowered(letter)}}}$" for letter in parts[1::2]]
    return "".join(parts)


def _escaped(text: str) -> str:
    runs = []
    for raised, run in groupby(text, _raised):
        made = "".join(map(_lowered if raised else _character, run))
        runs.append(f"${RAISED[raised]}{{{made}}}$" if raised else made)
    return "".join(runs)


def _raised(character: str) -> str:
    kind = unicodedata.decomposition(character).partition(" ")[0]
    return kind if kind in RAISED else ""


def _lowered(character: str) -> str:
    return _character(unicodedata.normalize("NFKC", character)).strip("$")


def _character(character: str) -> str:
    greek = GREEK.fullmatch(unicodedata.name(character, ""))
    if character in ESCAPES:
        return ESCAPES[character]
    if character in SYMBOLS:
        return f"${SYMBOLS[character]}$"
    if greek is None:
        return character
    name = CASES[greek[1]](greek[2].replace("LAMDA", "LAMBDA"))  # as Unicode spells it
    return f"$\\{name}$"
