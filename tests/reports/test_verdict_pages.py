"""Verdicts as files: tables that read back as they were, pages for people, comparisons."""

from __future__ import annotations

from itertools import product

import pytest

from fedcore.errors import DataError
from fedcore.reports import tables, verdict_pages, verdicts


def made(paper="mf", verdict="reproduced", name="a", **more):
    plain = dict(
        section="claims", source="Table 1", kind="cell", quantity="q", printed="6",
        protocol="as printed", accepted="within the range", measured="6", place="2 of 3 below",
        low=5.0, high=7.0, count=3, missing=0, reason="why | not",
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


def test_tables_of_older_versions_do_not_say_where(tmp_path):
    verdict_pages.write([made()], tmp_path / "v.tsv")
    lines = (tmp_path / "v.tsv").read_text().splitlines()
    assert lines[0].endswith("\twhere")
    older = "".join(f"{line.rpartition(chr(9))[0]}\n" for line in lines)
    (tmp_path / "old.tsv").write_text(older)
    assert verdict_pages.read(tmp_path / "old.tsv") == [made()]


def test_the_markdown_is_for_reading(tmp_path):
    several = [made(), made("mf", "deviates", "b", low=6.0, high=6.0, missing=1), CHECK]
    verdict_pages.write(several, tmp_path / "v.tsv")
    assert (tmp_path / "v.md").read_text() == (
        "| paper | printed items | reproduced | deviates |\n"
        "| :-- | --: | --: | --: |\n"
        "| mf | 2 | 1 | 1 |\n"
        "\n"
        f"- **reproduced**: {verdicts.VERDICTS['reproduced']}\n"
        f"- **deviates**: {verdicts.VERDICTS['deviates']}\n"
        "\n"
        "### Table 1\n"
        "\n"
        "| item | printed | measured | runs | accepted | where the print lies | protocol | verdict "
        "| why |\n"
        "| :-- | :-- | :-- | :-- | :-- | :-- | :-- | :-- | :-- |\n"
        "| q | 6 | 6 [5, 7] | 3 | within the range | 2 of 3 below | as printed | reproduced "
        "| why \\| not |\n"
        "| q | 6 | 6 | 3, 1 without a result | within the range | 2 of 3 below | as printed "
        "| **deviates** | why \\| not |\n"
        "\n"
        "### Checks of this software\n"
        "\n"
        "They say nothing of the paper and are not counted among its items.\n"
        "\n"
        "| item | printed | measured | runs | accepted | where the print lies | protocol | verdict "
        "| why |\n"
        "| :-- | :-- | :-- | :-- | :-- | :-- | :-- | :-- | :-- |\n"
        "| q | 6 | 6 [5, 7] | 3 | within the range | 2 of 3 below | as printed | passes "
        "| why \\| not |\n"
        "\n"
    )


def test_departures_are_said_once_and_named_where_they_were_made():
    moved, also = "moved images (ours)", "moved images (ours) twice (left open)"
    several = [
        made(),
        made(name="b", protocol=moved, quantity="second"),
        made(name="c", protocol=f"{also}; {moved}", quantity="third"),
        made(name="d", reason=f"{moved}: 5, fails; {also}: 7, holds", quantity="fourth"),
        made(name="e", verdict="not run", protocol="", quantity="fifth"),
    ]
    page = verdict_pages.page(several)
    assert verdict_pages.departures(several) == {moved: "D1", also: "D2"}
    assert (
        "| protocol | departure | items |\n"
        "| :-- | :-- | --: |\n"
        "| as printed | none | 2 |\n"
        f"| D1 | {moved} | 2 |\n"
        f"| D2 | {also} | 1 |\n"
    ) in page
    assert page.count(moved) == 2  # both departures begin with these words
    row = {line.split(" | ")[0].lstrip("| "): line for line in page.splitlines()}
    assert "| D1 | reproduced |" in row["second"]
    assert "| D2, D1 | reproduced |" in row["third"]
    assert "| as printed | reproduced | D1: 5, fails; D2: 7, holds |" in row["fourth"]
    assert "| 2 of 3 below |  | **not run** |" in row["fifth"]


def test_the_page_follows_the_order_of_the_paper_artefact_by_artefact():
    found = [made(name=n, source=f"Table {t}", quantity=n) for n, t in ("a1", "b2", "c1")]
    page = verdict_pages.page(found)
    places = [
        page.index(text) for text in ("### Table 1", "| a |", "| c |", "### Table 2", "| b |")
    ]
    assert places == sorted(places)
    both = verdict_pages.page([*found, made("other")])
    assert both.index("## mf") < both.index("## other") and "| total | 4 | 4 |" in both


def test_a_range_that_reads_as_one_number_is_none():
    near = [made(low=1.5720001e-5, high=1.5720002e-5), made(name="none", low=None, high=None)]
    text = verdict_pages.page([*near, made(name="far", low=1.571e-5, high=1.572e-5)])
    assert text.count("| 6 | 6 | 3 |") == 2
    assert "| 6 [1.571e-5, 1.572e-5] |" in text


def test_every_verdict_has_a_meaning_and_the_top_of_the_page_says_it():
    assert all(meaning.endswith(".") for meaning in verdicts.VERDICTS.values())
    top = verdict_pages.page(
        [made(verdict=v, name=f"n{i}") for i, v in enumerate(verdicts.VERDICTS)]
    ).partition("###")[0]
    for name, meaning in verdicts.VERDICTS.items():
        assert f"- **{name}**: {meaning}\n" in top
    assert max(map(len, top.splitlines())) < 250  # the line that counts all of them
    assert verdict_pages.page([]) == "Nothing is printed that could be compared.\n"


def test_everything_about_one_item():
    found = verdict_pages.shown(made(missing=1))
    assert found == (
        "mf/a: q\n"
        "  printed: 6 (Table 1)\n"
        "  measured: 6 [5, 7]\n"
        "  accepted: within the range\n"
        "  place: 2 of 3 below\n"
        "  runs: 3, 1 without a result\n"
        "  protocol: as printed\n"
        "  verdict: reproduced\n"
        "  reason: why | not\n"
        "  counterfactual: 9 printed: fails"
    )


def test_a_table_of_something_else_is_refused(tmp_path):
    tables.write([{"a": 1}], tmp_path / "v.tsv")
    with pytest.raises(DataError, match="not a table of verdicts"):
        verdict_pages.read(tmp_path / "v.tsv")
    verdict_pages.write([made(verdict="passed")], tmp_path / "v.tsv")
    with pytest.raises(DataError, match="not a table of verdicts"):
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
    with pytest.raises(DataError, match="no verdicts"):
        verdict_pages.combine(tmp_path / "verdicts", tmp_path / "verdicts.tsv")
    verdict_pages.write([made()], tmp_path / "verdicts" / "a.tsv")
    verdict_pages.write([made()], tmp_path / "verdicts" / "copy.tsv")
    with pytest.raises(DataError, match="two files hold a verdict on mf/a"):
        verdict_pages.combine(tmp_path / "verdicts", tmp_path / "verdicts.tsv")


def test_papers_without_items_can_be_combined(tmp_path):
    verdict_pages.write([], tmp_path / "verdicts" / "a.tsv")
    assert verdict_pages.combine(tmp_path / "verdicts", tmp_path / "verdicts.tsv") == []
    assert verdict_pages.read(tmp_path / "verdicts.tsv") == []


def test_summary_counts():
    one = [made()] * 2 + [made(verdict="deviates")] + [made(verdict="not run")] * 3
    assert verdict_pages.summary(one) == (
        "mf: 2 reproduced, 1 deviates, 3 not run (of 6 printed items)"
    )
    two = [made("x", v) for v in ("surrogate data", "deviates", "deviates", "contradicts itself")]
    assert verdict_pages.summary([*one[:1], *two, CHECK]).splitlines() == [
        "mf: 1 reproduced (of 1 printed item)",
        "x: 2 deviate, 1 contradicts itself, 1 on surrogate data (of 4 printed items)",
        "total: 1 reproduced, 2 deviate, 1 contradicts itself, 1 on surrogate data "
        "(of 5 printed items)",
        "checks of this software: 1 passes",
    ]
    assert verdict_pages.summary([]) == "no printed items"


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


def test_every_verdict_has_a_rank():
    assert sorted(verdict_pages.RANK) == sorted(verdicts.VERDICTS)
