"""Tables as LaTeX: whatever stands in them, one line is a row, and formulas are formulas."""

import re

from hypothesis import given
from hypothesis import strategies as st
from matplotlib.mathtext import MathTextParser

from fedcore.reports import latex, tables

PLAIN = "abz 019.,;:-()[]'"
ANY = st.text(PLAIN + "&%$#_{}~^\\<>|εκσΦΛδ√²³⁻₁ᵢ≤≥≈∞±×·−‖′ϵᵀ\u0304", max_size=16)
FORMULA = re.compile(r"(?<!\\)\$(.*?)(?<!\\)\$")
SPECIAL = re.compile(r"\\textbackslash\{\}|\\text(ascii)?\w+\{\}|\\[&%$#_{}]")


@given(ANY)
def test_no_character_of_a_text_means_anything_to_latex(text):
    made = latex.escape(text)
    for formula in FORMULA.findall(made):
        MathTextParser("agg").parse(f"${formula}$")  # matplotlib's TeX, which refuses others
    left = SPECIAL.sub("", FORMULA.sub("", made))
    assert not set(left) - set(PLAIN + "\u0304"), made


@given(st.lists(st.fixed_dictionaries({"a_1": ANY, "κ": st.floats()}), min_size=1, max_size=4))
def test_each_row_has_a_line_with_a_cell_for_each_column(rows):
    lines = tables.in_latex(rows, caption="50 % of {x}", name="t").splitlines()
    body = lines[lines.index("    \\midrule") + 1 : lines.index("    \\bottomrule")]
    assert len(body) == len(rows) and "\\caption{50 \\% of \\{x\\}}" in "\n".join(lines)
    assert all(len(re.findall(r"(?<!\\)&", line)) == 1 for line in body)
