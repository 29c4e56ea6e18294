"""docs/arena.md is what the kept tables of the arena say."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from fedcore.errors import DataError
from fedcore.reports import tables
from fedcore.reports.papers import arena

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def script(docs_script):
    return docs_script("arena")


def test_the_page_agrees_with_the_kept_tables(script):
    page = (ROOT / "docs/arena.md").read_text(encoding="utf-8")
    assert page == script.page(script.KEPT), "run `make arena`"
    table = tables.read(script.KEPT / "results.tsv")
    assert {row["status"] for row in table} <= {"official", "rebuilt", "synthetic"}
    found = arena.sentences(table)
    assert {row["for"] for row in found} >= {"One shot", "Few rounds", "Privacy", "Cheap clients"}
    for row in found:
        assert row["finding"] in page and tables.escaped(row["cells"]) in page


def test_a_changed_table_changes_the_page(script, tmp_path):
    kept = tmp_path / "arena"
    shutil.copytree(script.KEPT, kept)
    path = kept / "results.tsv"
    rows = tables.read(path)
    for row in rows:  # the first after one round becomes the last
        if row["method"] == "one_shot":
            row["error_1"] = 1.0
    tables.write(rows, path)
    assert script.page(kept) != (ROOT / "docs/arena.md").read_text(encoding="utf-8")


def test_tables_of_a_quick_run_are_not_kept(script, tmp_path):
    folder = tmp_path / "tables/arena"
    for name in script.NAMES:
        tables.write([{"status": "surrogate"}], folder / f"{name}.tsv")
    with pytest.raises(DataError, match="stand-ins"):
        script.keep(tmp_path, tmp_path / "kept")
    assert not (tmp_path / "kept").exists()
