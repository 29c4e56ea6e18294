"""Verdicts as files: tables that read back as they were, pages for people, comparisons."""

from __future__ import annotations

from itertools import product

import pytest

from fedcore.errors import DataError
from fedcore.reports import tables
from fedcore.repro.verdicts import verdict_pages, verdicts
from fedcore.repro.verdicts.measurements import Departure
from fedcore.repro.verdicts.verdicts import Reading

FITTED = Departure("signs", "other signs; and more", "fitted", 20, "Table 4")
TRIED = (Reading((), "", "holds", "6"), Reading((FITTED,), "no row: [a, b]"))


def made(paper="mf", verdict="reproduced", name="a", **more):
    plain = dict(
        section="claims", source="Table 1", kind="cell", quantity="q", printed="6",
        accepted="within the range", measured="6", place="2 of 3 below",
        low=5.0, high=7.0, count=3, missing=0, because="why | not", readings=TRIED,
        counterfactual="9 printed: fails",
        turned=True,
    )  # fmt: skip
    return verdicts.Verdict(paper=paper, id=name, verdict=verdict, **(plain | more))


CHECK = made(name="check", verdict="passes", section="software", kind="check", source="audit")


def test_verdicts_survive_a_round_trip(tmp_path):
    all_of_them = [made(verdict=v, name=f"n{i}") for i, v in enumerate(verdicts.VERDICTS)]
    all_of_them.append(made(name="none", low=None, high=None, measured="", printed="true"))
    all_of_them += [made(name="open", verdict="undecided", turned=None), CHECK]
    verdict_pages.write(all_of_them, tmp_path / "v.tsv")
    assert verdict_pages.read(tmp_path / "v.tsv") == all_of_them


def test_a_table_of_something_else_is_refused(tmp_path):
    row = verdict_pages.rows([made()])[0]
    for other in ({"a": 1}, row | {"a": 1}, row | {"readings": "none"}, row | {"readings": "[1]"}):
        tables.write([other], tmp_path / "v.tsv")
        with pytest.raises(DataError):
            verdict_pages.read(tmp_path / "v.tsv")
    verdict_pages.write([made(verdict="passed")], tmp_path / "v.tsv")
    with pytest.raises(DataError):
        verdict_pages.read(tmp_path / "v.tsv")


def test_papers_are_combined_in_order_of_their_names(tmp_path):
    verdict_pages.write([made("b")], tmp_path / "verdicts" / "b.tsv")
    verdict_pages.write([made("a")], tmp_path / "verdicts" / "a.tsv")
    found = verdict_pages.combine(tmp_path / "verdicts", tmp_path / "verdicts.tsv")
    assert found == [made("a"), made("b")] == verdict_pages.read(tmp_path / "verdicts.tsv")
    assert verdict_pages.read_all(tmp_path / "verdicts") == found
    assert "| total | 2 | 2 |\n" in (tmp_path / "verdicts.md").read_text()
    inside = tmp_path / "verdicts" / "all.tsv"
    assert verdict_pages.combine(tmp_path / "verdicts", inside) == found
    assert verdict_pages.combine(tmp_path / "verdicts", inside) == found


def test_combine_refuses_nothing_and_duplicates(tmp_path):
    with pytest.raises(DataError):
        verdict_pages.combine(tmp_path / "verdicts", tmp_path / "verdicts.tsv")
    verdict_pages.write([made()], tmp_path / "verdicts" / "a.tsv")
    verdict_pages.write([made()], tmp_path / "verdicts" / "copy.tsv")
    with pytest.raises(DataError, match="mf/a"):
        verdict_pages.combine(tmp_path / "verdicts", tmp_path / "verdicts.tsv")


def test_papers_without_items_can_be_combined(tmp_path):
    verdict_pages.write([], tmp_path / "verdicts" / "a.tsv")
    assert verdict_pages.combine(tmp_path / "verdicts", tmp_path / "verdicts.tsv") == []
    assert verdict_pages.read(tmp_path / "verdicts.tsv") == []


def test_every_verdict_is_counted_has_a_meaning_and_a_rank():
    assert sorted(verdict_pages.RANK) == sorted(verdicts.VERDICTS)
    one = [made()] * 2 + [made(verdict="deviates")] + [made(verdict="not run")] * 3
    assert verdict_pages.summary(one) == (
        "mf: 2 reproduced, 1 deviates, 3 not run (of 6 printed items)"
    )
    found = [made(verdict=v, name=f"n{i}") for i, v in enumerate(verdicts.VERDICTS)]
    page = verdict_pages.page(found)
    for name, meaning in verdicts.VERDICTS.items():
        assert f"- **{name}**: {meaning}\n" in page


def test_what_became_worse_or_is_gone():
    kept = [made(), made(name="b", verdict="deviates"), made(name="c"), made("other")]
    now = [made(verdict="undecided"), made(name="b"), made(name="new", verdict="deviates")]
    assert verdict_pages.worse(now, kept) == [
        "mf/a: undecided, was reproduced", "mf/c: gone, was reproduced",
    ]  # fmt: skip
    assert verdict_pages.worse(kept, kept) == []


def test_verdicts_go_from_failed_over_undecided_to_held():
    names = ("deviates", "undecided", "reproduced")
    for (i, before), (j, after) in product(enumerate(names), repeat=2):
        found = verdict_pages.worse([made(verdict=after)], [made(verdict=before)])
        assert found == ([f"mf/a: {after}, was {before}"] if j < i else [])
