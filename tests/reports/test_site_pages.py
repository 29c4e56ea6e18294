"""Parts of the report's pages: ranges, code in sentences, the order of verdicts, cells."""

from __future__ import annotations

from types import SimpleNamespace

from fedcore.reports import tables
from fedcore.reports.site import build, cells, model, notebooks
from fedcore.reports.verdict_pages import tally


def test_a_range_stands_once():
    """Of an item with limits, the measured words end with the range already."""
    shown = build.environment().get_template("macros.html.j2").module.measured
    for words, count in (("1.4 [1.2, 1.9]", 1), ("1.4", 1)):
        verdict = SimpleNamespace(measured=words, count=5, low=1.2, high=1.9)
        assert shown(verdict).count("[1.2, 1.9]") == count


def test_two_parts_of_one_paper_are_one_paper():
    template = build.environment().get_template("index.html.j2")
    parts = [("first", "A & B, 2024"), ("second", "A & B, 2024"), ("third", "C, 2025")]
    papers = [
        SimpleNamespace(judged=True, citation=citation, name=name, title=name, counts=[])
        for name, citation in parts
    ]
    names = {"papers": papers, "counts": [], "meanings": {}, "bar": str, "mark": str}
    shown = "".join(template.blocks["main"](template.new_context(names)))
    assert "statement of 2 papers has a verdict" in shown and shown.count("<section") == 3


def test_a_cell_names_the_accelerator_that_made_it():
    template = build.environment().get_template("runs.html.j2")
    about = {"problem": {}, "code": "ab", "seed": {"master": 1}, "versions": {}}
    shown = []
    for more in ({"device": "cuda"}, {}):
        job = SimpleNamespace(
            path="e/ssi/p", status="synthetic", repeats=1, seconds=1.0, memory=1.0, params={},
            label="P", about=about | more,
        )  # fmt: skip
        paper = SimpleNamespace(name="mf", title="T", data=[], missing={}, asked="", jobs=[job])
        machine = dict.fromkeys(("CPU", "BLAS", "system"), "")
        names = {"paper": paper, "machine": machine, "command": "", "results": "results"}
        shown.append("".join(template.blocks["main"](template.new_context(names))))
    assert ["<dt>device</dt><dd>cuda</dd>" in text for text in shown] == [True, False]


def test_words_between_backticks_are_code_and_the_rest_is_escaped():
    assert notebooks.with_code("that of `a_b` < 1") == "that of <code>a_b</code> &lt; 1"


def test_what_was_compared_stands_before_what_was_not():
    names = ("not run", "surrogate data", "deviates", "reproduced")
    found = tally([SimpleNamespace(verdict=name) for name in names])
    assert [name for name, _ in found] == ["reproduced", "deviates", "not run", "surrogate data"]


def test_the_sizes_of_draws_that_differ_are_those_that_were_drawn():
    """A run at small size has fewer clients than the n that an item's words name."""
    settings = [{"n_clients": n, "samples": m} for n in (100, 1000) for m in (5, 10)]
    found = model._sizes({"n_clients": 100, "settings": settings})
    assert found == "n_clients 100, 1000; samples 5, 10"
    problem = {"n_clients": 20, "n_samples": 100, "n_features": 10}
    for more in ({}, {"settings": [{}, {}]}):
        assert model._sizes(problem | more) == "20 clients, 100 samples, 10 features"


def test_beside_a_flag_stand_the_numbers_that_it_was_read_off(tmp_path):
    rows = [{"claim": "c", "repeat": i, "ratio": 1.5 + i, "holds": True} for i in range(2)]
    tables.write(rows, tmp_path / "claims.tsv")
    select = {"table": "claims", "where": {"claim": "c"}, "column": "holds"}
    verdict = SimpleNamespace(where="claims.tsv, holds; claim = c")
    judged = cells.Tables(tmp_path).judging(verdict, {"select": select, "readings": []})
    assert judged.columns == ["claim", "repeat", "ratio", "holds"]
    assert judged.rows[1] == ["c", "1", "2.5", "true"]
