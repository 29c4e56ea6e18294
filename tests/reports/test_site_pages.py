"""Parts of the report's pages: ranges, code in sentences, the order of verdicts, cells."""

from __future__ import annotations

from types import SimpleNamespace

from fedcore.reports import tables
from fedcore.reports.site import build, cells
from fedcore.reports.verdict_pages import tally


def test_a_range_stands_once():
    """Of an item with limits, the measured words end with the range already."""
    shown = build.environment().get_template("macros.html.j2").module.measured
    for words, count in (("1.4 [1.2, 1.9]", 1), ("1.4", 1)):
        verdict = SimpleNamespace(measured=words, count=5, low=1.2, high=1.9)
        assert shown(verdict).count("[1.2, 1.9]") == count


def test_what_was_compared_stands_before_what_was_not():
    names = ("not run", "surrogate data", "deviates", "reproduced")
    found = tally([SimpleNamespace(verdict=name) for name in names])
    assert [name for name, _ in found] == ["reproduced", "deviates", "not run", "surrogate data"]


def test_beside_a_flag_stand_the_numbers_that_it_was_read_off(tmp_path):
    rows = [{"claim": "c", "repeat": i, "ratio": 1.5 + i, "holds": True} for i in range(2)]
    tables.write(rows, tmp_path / "claims.tsv")
    select = {"table": "claims", "where": {"claim": "c"}, "column": "holds"}
    verdict = SimpleNamespace(where="claims.tsv, holds; claim = c")
    judged = cells.Tables(tmp_path).judging(verdict, {"select": select, "readings": []})
    assert judged.columns == ["claim", "repeat", "ratio", "holds"]
    assert judged.rows[1] == ["c", "1", "2.5", "true"]
