"""The printed tables of the claims files against those of the papers, as read from the papers.

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


@pytest.fixture(scope="module")
def tables():
    """Every printed table, by its paper and number."""
    return {
        (file.parent.name, table["source"]): table
        for file in sorted(CLAIMS.glob("*/claims.yaml"))
        for table in claims.read(file)["tables"].values()
    }


def cells(table):
    return [cell for row in table["rows"].values() for cell in row if cell is not None]


def number(text):
    return float(text.removeprefix(">= ").replace("10^", "1e"))


@pytest.mark.parametrize("table", NUMBERS, ids="-".join)
def test_every_number_of_a_table_is_there(tables, table):
    assert Counter(map(number, cells(tables[table]))) == Counter(map(float, NUMBERS[table].split()))


@pytest.mark.parametrize("table", FORMULAS, ids="-".join)
def test_every_formula_of_a_table_is_there(tables, table):
    assert len(cells(tables[table])) == FORMULAS[table]


def test_no_table_is_in_the_inventories_alone(tables):
    assert tables.keys() == {*NUMBERS, *FORMULAS}
