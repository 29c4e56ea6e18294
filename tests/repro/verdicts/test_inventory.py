"""The inventories of printed items against the papers' tables and figures, as read from the papers.

The numbers were typed from the papers' texts and not from papers/*/claims.yaml.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fedcore.repro.config import claims

CLAIMS = Path(__file__).parents[3] / "papers"

NUMBERS = {
    ("factorization", "Table 1"): "784 96 300 20 20 20 6000 557 49749 10 25 25",
    ("factorization", "Table 2"): "1 1 1 1 26 6 35 58 1e13 1e20 1e20 1e21 -5.5 5.5 4.5 5",
    ("faps", "Table 1"): "207 1.09e-07 42 8.04e-08",
    ("faps", "Table 2"): """
        1.94e-6 1.89e-6 1.87e-6 1.06e-7 9.56e-8 8.69e-8
        1.95e-6 1.92e-6 1.90e-6 1.07e-7 1.02e-7 9.97e-8
        1.95e-6 1.91e-6 1.92e-6 8.30e-8 9.18e-8 1.15e-7
        4.09e-6 3.94e-6 3.87e-6 3.15e-7 3.08e-7 2.99e-7""",
    ("faps", "Table 3"): "4.34e-6 4.59e-6 4.42e-6 5.80e-8 6.27e-8 5.06e-8",
    ("faps", "Table 4"): """
        337 32.73 1.94e-6 1.06e-7 164 16.52 1.96e-6 1.08e-7 55 14.93 1.80e-6 7.67e-8""",
    ("fedrep", "Table 1"): """
        89.79 70.68 78.30 75.29 41.29 69.88 60.86
        42.65 51.78 44.31 23.94 31.97 52.75 51.64
        87.65 73.68 82.04 79.34 55.44 71.92 72.41
        39.92 50.99 21.93 20.17 28.52 52.33 18.89
        85.81 72.75 75.41 78.52 55.09 71.21 53.54
        37.72 47.33 33.79 20.32 22.52 51.31 17.65
        86.35 68.23 78.24 78.88 44.34 71.49 52.11
        80.46 58.31 76.53 71.47 41.25 71.20 54.11
        82.27 67.20 67.36 72.05 52.49 68.45 71.51
        84.14 63.02 77.48 72.44 38.76 70.37 62.08
        81.04 59.98 71.96 72.13 42.84 70.67 66.18
        83.77 72.29 82.39 78.20 55.44 69.87 70.74
        85.39 70.34 80.36 78.91 56.34 71.04 68.28
        87.13 73.84 81.73 76.00 55.68 72.12 76.91
        87.70 75.68 83.27 79.15 56.10 72.41 78.56""",
    ("fedrep", "Table 2"): "150 148 50 183 72 50",
}
# Tables of formulas: their number of cells. Table S1 has 10 rows for 3 methods, and one cell empty.
FORMULAS = {("factorization", "Table S1"): 10 * 3 - 1, ("dppower", "Table 1"): 8 * 2}

# Panels and curves. Of the figures, the texts at hand have captions only: a curve is a method or a
# setting that caption and text name. Rounds and seconds are panels of their own. Figure 7 has a
# panel for each n and m, and the text does not say how many.
FIGURES = {
    ("factorization", "Figure 1"): (1, 4),
    ("factorization", "Figure 2a"): (1, 5),
    ("factorization", "Figure 2b"): (1, 5),
    **{("factorization", f"Figure 3{panel}"): (1, 7) for panel in "abcd"},
    **{("fedpower", f"Figure {figure}{panel}"): (1, 3) for figure in "34" for panel in "abc"},
    ("fedrep_linear", "Figure 1"): (0, 3),
    ("fedrep_linear", "Figure 3"): (4, 0),
    ("fedrep_linear", "Figure 4"): (0, 3),
    ("fedrep_linear", "Figure 7"): (0, 2),
    ("fedrep", "Figure 5"): (0, 2),
    ("fedrep", "Figure 6"): (0, 7),
    ("faps", "Figure 1a"): (1, 2),
    ("faps", "Figure 1b"): (1, 2),
    **{("faps", f"Figure 2{panel}"): (2, 6) for panel in "abcd"},
    ("faps", "Figure 3a"): (1, 3),
    ("faps", "Figure 3b"): (1, 3),
    **{("faps", f"Figure 4{panel}"): (1, 3) for panel in "abc"},
}


@pytest.fixture(scope="module")
def items():
    """Every printed item with its paper and where it is printed, without the section."""
    return [
        item | {"paper": file.parent.name, "artefact": item["source"].split(",")[0]}
        for file in sorted(CLAIMS.glob("*/claims.yaml"))
        for item in claims.read(file)["claims"]
    ]


def printed(items, paper, artefact, kind):
    return [i for i in items if (i["paper"], i["artefact"], i["kind"]) == (paper, artefact, kind)]


def number(text):
    return float(text.removeprefix(">= ").replace("10^", "1e"))


@pytest.mark.parametrize("table", NUMBERS, ids="-".join)
def test_every_number_of_a_table_is_an_item(items, table):
    cells = printed(items, *table, "cell")
    assert Counter(number(cell["printed"]) for cell in cells) == Counter(
        map(float, NUMBERS[table].split())
    )


@pytest.mark.parametrize("table", FORMULAS, ids="-".join)
def test_every_formula_of_a_table_is_an_item(items, table):
    assert len(printed(items, *table, "cell")) == FORMULAS[table]


@pytest.mark.parametrize("figure", FIGURES, ids="-".join)
def test_every_panel_and_every_curve_of_a_figure_is_an_item(items, figure):
    found = tuple(len(printed(items, *figure, kind)) for kind in ("panel", "curve"))
    assert found == FIGURES[figure]


def test_no_table_and_no_figure_is_in_the_inventories_alone(items):
    kinds = {"cell": {*NUMBERS, *FORMULAS}, "panel": set(FIGURES), "curve": set(FIGURES)}
    for item in items:
        known = kinds.get(item["kind"])
        assert known is None or (item["paper"], item["artefact"]) in known, item["id"]
