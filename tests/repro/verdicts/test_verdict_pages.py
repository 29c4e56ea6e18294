"""Verdicts as files: tables that read back as they were, answers, pages, comparisons."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import product

import pytest

from fedcore.errors import DataError
from fedcore.reports import tables
from fedcore.repro.verdicts import answers, verdict_pages, verdicts
from fedcore.repro.verdicts.decision_rules import Part
from fedcore.repro.verdicts.verdicts import FAILS, HOLDS, NOT_RUN, UNDECIDED, Change, Reading
from refused import refused

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
    parts = {"": Part(FAILS, (0, 7)), "b": Part(UNDECIDED, (), "few", ("n = 1",), "why")}
    failed = replace(reading(FAILS), failed={"ssi": -1, "faps": 0}, parts=parts)
    all_of_them += [made(name="none", measured="", printed="true", readings=(failed,)), CHECK]
    verdict_pages.write(all_of_them, tmp_path / "v.tsv")
    assert verdict_pages.read(tmp_path / "v.tsv") == all_of_them


def test_a_table_of_something_else_is_refused(tmp_path):
    row = verdict_pages.rows([made()])[0]
    for other in ({"a": 1}, row | {"a": 1}, row | {"readings": "none"}, row | {"readings": "[1]"}):
        tables.write([other], tmp_path / "v.tsv")
        refused(lambda: verdict_pages.read(tmp_path / "v.tsv"), DataError)
    verdict_pages.write([made(word="passed")], tmp_path / "v.tsv")
    refused(lambda: verdict_pages.read(tmp_path / "v.tsv"), DataError)


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
    ("words", "aside", "answer"),
    [
        ("hhh", "", "Yes. Holds: claim 0; claim 1; claim 2."),
        ("hhhuu", "", "Mostly. Holds: claim 0; claim 1; claim 2. Open: claim 3; claim 4."),
        ("hfh", "", "Partly. Holds: claim 0; claim 2. Fails: claim 1."),
        ("hhffu", "", "Partly. Holds: claim 0; claim 1. Fails: claim 2; claim 3. Open: claim 4."),
        ("ffhu", "",
         "No, not as printed. Holds: claim 2. Fails: claim 0; claim 1. Open: claim 3."),
        ("hunnu", "",
         "Cannot say. Holds: claim 0. Open: claim 1; claim 4. Not run: claim 2; claim 3."),
        ("hhuu", "", "Cannot say. Holds: claim 0; claim 1. Open: claim 2; claim 3."),
        ("ffu", "hf",
         "No, not as printed. Fails: claim 0; claim 1. Open: claim 2. "
         "Also holds: claim 3. Also fails: claim 4."),
        ("", "h", "Cannot say: no headline claims are set."),
    ],
)  # fmt: skip
def test_the_answer_follows_from_the_words_of_the_headlines(words, aside, answer):
    found = headlines(words + aside)
    found = found[: len(words)] + [replace(v, aside=True) for v in found[len(words) :]]
    plain = made(word=FAILS, name="no-headline")
    assert answers.answer([*found, plain, CHECK]) == answer


def test_another_word_gives_another_answer():
    """Every headline stands in the answer once, with its word; other readings say nothing."""
    labels = {"h": "olds", "f": "ails", "u": "pen", "n": "ot run"}
    seen = {}
    for words in product("hfun", repeat=4):
        found = headlines("".join(words), HOLDS, HOLDS, FAILS)
        found = [*found[:3], replace(found[3], aside=True)]
        said = answers.answer(found)
        assert said not in seen, (words, seen[said])
        seen[said] = words
        parts = said.removesuffix(".").split(". ")[1:]
        told = {
            name: part.split(": ")[0] for part in parts for name in part.split(": ")[1].split("; ")
        }
        assert [*sorted(told)] == [f"claim {i}" for i in range(4)]
        assert all(told[f"claim {i}"].endswith(labels[word]) for i, word in enumerate(words))
        assert answers.answer([replace(v, readings=()) for v in found]) == said


def test_the_first_words_follow_from_what_the_question_is_about():
    random_ = random.Random(7)
    for _ in range(300):
        words = "".join(random_.choices("hfun", k=random_.randint(1, 6)))
        hold, fail, n = words.count("h"), words.count("f"), len(words)
        firsts = {first for first, it_is in {
            "Yes": hold == n,
            "No, not as printed": fail > hold and 2 * (hold + fail) >= n,
            "Partly": hold >= fail > 0 and 2 * (hold + fail) >= n,
            "Mostly": n > hold and not fail and 2 * hold > n,
        }.items() if it_is}  # fmt: skip
        beside = [replace(v, aside=True) for v in headlines("".join(random_.choices("hfun", k=2)))]
        said = answers.answer([*headlines(words), *beside])
        assert {said.split(". ")[0]} == (firsts or {"Cannot say"}), words


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
