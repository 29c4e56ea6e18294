"""Verdicts as files: tables that read back as they were, answers, pages, comparisons."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from fedcore.errors import DataError
from fedcore.reports import tables
from fedcore.repro.verdicts import answers, verdict_pages, verdicts
from fedcore.repro.verdicts.verdicts import FAILS, HOLDS, NOT_RUN, UNDECIDED, Change, Reading

SIGNS = Change("signs", "the signs are other ones", "search", 20, "all of it")
CENTRED = Change("centred", "pixels are centred", "left open")


def reading(state, *replaces, fills_in=()):
    return Reading(fills_in, replaces, "", state, "6 of 7", "", 7)


def made(paper="mf", word=HOLDS, name="a", **more):
    plain = dict(
        section="items", source="Table 1", kind="sentence", title="t", printed="6", headline="",
        measured="6 of 7", why="", because="why | not", cause="", figure="", remark="",
        readings=(reading(word), reading(HOLDS, SIGNS, fills_in=(CENTRED,))),
    )  # fmt: skip
    return verdicts.Verdict(paper=paper, id=name, word=word, **(plain | more))


CHECK = made(name="check", section="software", kind="check", source="audit", readings=())


def test_verdicts_survive_a_round_trip(tmp_path):
    all_of_them = [made(word=v, name=f"n{i}") for i, v in enumerate(verdicts.WORDS)]
    failed = replace(reading(FAILS), failed={"ssi": -1, "faps": 0})
    all_of_them += [made(name="none", measured="", printed="true", readings=(failed,)), CHECK]
    verdict_pages.write(all_of_them, tmp_path / "v.tsv")
    assert verdict_pages.read(tmp_path / "v.tsv") == all_of_them


def test_a_table_of_something_else_is_refused(tmp_path):
    row = verdict_pages.rows([made()])[0]
    for other in ({"a": 1}, row | {"a": 1}, row | {"readings": "none"}, row | {"readings": "[1]"}):
        tables.write([other], tmp_path / "v.tsv")
        with pytest.raises(DataError):
            verdict_pages.read(tmp_path / "v.tsv")
    verdict_pages.write([made(word="passed")], tmp_path / "v.tsv")
    with pytest.raises(DataError):
        verdict_pages.read(tmp_path / "v.tsv")


def test_papers_are_read_together_in_order_of_their_names(tmp_path):
    verdict_pages.write([made("b")], tmp_path / "verdicts" / "b.tsv")
    verdict_pages.write([made("a")], tmp_path / "verdicts" / "a.tsv")
    verdict_pages.write([], tmp_path / "verdicts" / "c.tsv")
    found = verdict_pages.read_papers(tmp_path / "verdicts", ("c", "b", "a"))
    assert found == [made("a"), made("b")]
    assert verdict_pages.read_papers(tmp_path / "verdicts", ("a", "gone")) == found[:1]
    for folder in (tmp_path, tmp_path / "verdicts"):
        assert verdict_pages.read_all(folder) == found
    verdict_pages.write(found, tmp_path / "verdicts.tsv")
    assert "| total | 2 | 2 |\n" in (tmp_path / "verdicts.md").read_text()


def headlines(text, *seconds):
    """Return headlines: h holds, f fails, u is undecided and n was not run."""
    words = {"h": HOLDS, "f": FAILS, "u": UNDECIDED, "n": NOT_RUN}
    found = []
    for i, letter in enumerate(text):
        word = words[letter]
        own = (reading(word),) if word != NOT_RUN else ()
        other = (reading(seconds[i], SIGNS),) if i < len(seconds) and seconds[i] else ()
        found.append(made(word=word, name=f"n{i}", headline=f"claim {i}", readings=own + other))
    return found


@pytest.mark.parametrize(
    ("words", "seconds", "answer"),
    [
        ("hhh", (), "Yes."),
        ("hhhuu", (), "Mostly."),
        ("hhffu", (), "Partly: claim 0 and claim 1 hold; claim 2 and claim 3 fail."),
        ("hhfun", (), "Partly: claim 0 and claim 1 hold; claim 2 fails."),
        ("ffhuu", (), "No, not as printed."),
        ("ffuu", (HOLDS, HOLDS), "No, not as printed; holds if the signs are other ones."),
        ("ffhuu", (HOLDS, UNDECIDED),
         "No, not as printed; claim 0 holds if the signs are other ones."),
        ("hunnu", (), "Cannot say as printed."),
        ("hunnu", ("", UNDECIDED, HOLDS, HOLDS),
         "Cannot say as printed; otherwise 2 of 3 claims hold."),
        ("hhuu", (), "Cannot say as printed."),
    ],
)  # fmt: skip
def test_the_answer_follows_from_the_words_of_the_headlines(words, seconds, answer):
    plain = made(word=FAILS, name="no-headline")
    assert answers.answer([*headlines(words, *seconds), plain, CHECK]) == answer


def test_causes_and_reasons_are_counted_in_items():
    found = [made(word=FAILS, name=str(i), cause=cause) for i, cause in enumerate(("stop",) * 2)]
    found += [made(word=FAILS), made(word=HOLDS, cause="stop"), CHECK]
    why = ("Why 3 items fail", ["stop: 2 items", "no cause found: 1 item"])
    assert verdict_pages.sections(found) == [why]
    gone = [made(word=NOT_RUN, why=why, readings=()) for why in ("No data.", "Hours.", "No data.")]
    assert verdict_pages.sections(gone) == [
        ("Not judged", ["No data. (2 items)", "Hours. (1 item)"])
    ]


def test_every_word_has_a_rank():
    assert sorted(verdict_pages.RANK) == sorted(verdicts.WORDS)


def test_what_became_worse_or_is_gone():
    kept = [made(), made(name="b", word=FAILS), made(name="c"), made("other")]
    now = [made(word=UNDECIDED), made(name="b"), made(name="new", word=FAILS)]
    assert verdict_pages.worse(now, kept) == [
        "mf/a: undecided, was holds", "mf/c: gone, was holds",
    ]  # fmt: skip
    for (i, before), (j, after) in product(enumerate((FAILS, UNDECIDED, HOLDS)), repeat=2):
        found = verdict_pages.worse([made(word=after)], [made(word=before)])
        assert found == ([f"mf/a: {after}, was {before}"] if j < i else [])
