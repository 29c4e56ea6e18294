"""Verdicts as files: a table of all verdicts, and pages in Markdown and text for people."""

from __future__ import annotations

import json
import os
import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedcore.errors import DataError
from fedcore.reports import tables
from fedcore.repro.verdicts import answers
from fedcore.repro.verdicts.answers import AS_PRINTED, OTHERWISE
from fedcore.repro.verdicts.verdicts import (
    DID_NOT_RUN,
    NOT_RUN,
    RAN,
    SOFTWARE,
    WORDS,
    Change,
    Reading,
    Verdict,
)
from fedcore.words import counted

# From the worst to the best; `worse` compares by it.
RANK = (DID_NOT_RUN, NOT_RUN, "fails", "undecided", RAN, "holds")
MARKS = {"holds": "+", "fails": "x", "undecided": "~", NOT_RUN: "o"}
CHANCE = "At most one word in twenty is chance."
WIDTH = 96


def write(verdicts: Sequence[Verdict], path: str | os.PathLike[str], question: str = "") -> None:
    """Write verdicts as a TSV of all fields, and in the same folder as Markdown for reading."""
    head = opening(question, verdicts) if question else ""
    tables.write(rows(verdicts), path, page=head + page(verdicts))


def rows(verdicts: Iterable[Verdict]) -> list[tables.Row]:
    """Return verdicts as rows of a table; their readings as JSON, without what is empty."""
    return [asdict(v) | {"readings": _json(v.readings)} for v in verdicts]


def _json(readings: Iterable[Reading]) -> str:
    def said(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
        return {key: value for key, value in pairs if value}

    return json.dumps([asdict(one, dict_factory=said) for one in readings], ensure_ascii=False)


def read(path: str | os.PathLike[str]) -> list[Verdict]:
    """Read what `write` wrote."""
    found: list[dict[str, Any]] = tables.read(path)
    try:
        verdicts = [Verdict(**row | {"readings": _readings(row["readings"])}) for row in found]
    except (KeyError, TypeError, ValueError):
        verdicts = []
    if len(verdicts) < len(found) or any(v.word not in WORDS for v in verdicts):
        raise DataError(f"{path} is not a table of verdicts: run its rule again")
    return verdicts


def _readings(text: str) -> tuple[Reading, ...]:
    def changes(given: Iterable[dict[str, Any]]) -> tuple[Change, ...]:
        return tuple(Change(**change) for change in given)

    def reading(fills_in: Any = (), replaces: Any = (), **said: Any) -> Reading:
        return Reading(changes(fills_in), changes(replaces), **said)

    return tuple(reading(**said) for said in json.loads(text))


def files_in(folder: Path) -> list[Path]:
    """Return the tables of a folder, without what a killed process left, named with a dot."""
    return sorted(folder.glob("[!.]*.tsv"))


def kept_tables(folder: Path) -> list[Path]:
    """Return the verdict tables that a checkout keeps, one in the folder of each paper."""
    claims = sorted(folder.glob("*/claims.yaml"))
    return [table for file in claims if (table := file.with_name("verdicts.tsv")).is_file()]


def read_kept(folder: Path) -> list[Verdict]:
    """Return the verdicts that a checkout keeps; none where it keeps none."""
    return [verdict for table in kept_tables(folder) for verdict in read(table)]


def read_papers(folder: str | os.PathLike[str], papers: Collection[str]) -> list[Verdict]:
    """Return the verdicts of the `papers` that have some, ``<folder>/<paper>.tsv``."""
    return [
        verdict for file in files_in(Path(folder)) if file.stem in papers for verdict in read(file)
    ]


def _none_in(folder: str | os.PathLike[str]) -> str:
    return (
        f"there are no verdicts in {folder}; run the workflow first, or name a paper of a run by "
        "--paper"
    )


def printed_items(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts on what is printed, without the checks of this software."""
    return [verdict for verdict in verdicts if verdict.section != SOFTWARE]


def checks(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the checks of this software, which do not judge the papers."""
    return [verdict for verdict in verdicts if verdict.section == SOFTWARE]


def tally(verdicts: Iterable[Verdict]) -> list[tuple[str, int]]:
    """Return the words as printed that occur, in their order, with their numbers."""
    return answers.tally(v.word for v in verdicts)


def combine(
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    papers: Iterable[str] | None = None,
) -> list[Verdict]:
    """Merge the verdicts of `papers`, ``<folder>/<paper>.tsv``, into one file, and return them.

    Parameters
    ----------
    folder : path-like
    path : path-like
        File of the merged table; ends in ``.tsv``.
    papers : iterable of str, optional
        Papers whose verdicts are merged; by default all that have verdicts in `folder`. Verdicts of
        other papers are left out, such as papers that are no longer run.
    """
    out, wanted = Path(path).resolve(), None if papers is None else set(papers)
    files = [
        file
        for file in files_in(Path(folder).resolve())
        if file != out and (wanted is None or file.stem in wanted)
    ]
    if not files:
        raise DataError(_none_in(folder))
    verdicts = [verdict for file in files for verdict in read(file)]
    counts = Counter(f"{verdict.paper}/{verdict.id}" for verdict in verdicts)
    twice = [name for name, n in counts.items() if n > 1]
    if twice:
        raise DataError(f"{folder}: two files hold a verdict on {twice[0]}; move one away")
    write(verdicts, path)
    return verdicts


def summary(verdicts: Iterable[Verdict]) -> str:
    """Return a line per paper: its answer, and its items as printed; and one for the checks."""
    everything = list(verdicts)
    lines = []
    for paper, printed in by_paper(printed_items(everything)).items():
        said = f"{answers.answer(printed)} " if answers.headlines(printed) else ""
        lines.append(f"{paper}: {said}{counted_words(printed)}.")
    states = answers.count_words(v.word for v in checks(everything))
    if states:
        lines.append(f"checks of this software: {states}")
    return "\n".join(lines) or "no printed items"


def counted_words(verdicts: Sequence[Verdict]) -> str:
    """Return how many printed items there are, and how many have each word."""
    printed = printed_items(verdicts)
    words = answers.count_words(v.word for v in printed)
    return f"{counted(len(printed), 'item')} {AS_PRINTED}: {words}"


def worse(new: Iterable[Verdict], kept: Iterable[Verdict]) -> list[str]:
    """Say which kept words have become worse, or are gone, in the papers of `new`."""
    now = {(v.paper, v.id): v.word for v in new}
    papers, lines = {paper for paper, _ in now}, []
    for v in kept:
        word = now.get((v.paper, v.id))
        if v.paper in papers and word is None:
            lines.append(f"{v.paper}/{v.id}: gone, was {v.word}")
        elif word is not None and RANK.index(word) < RANK.index(v.word):
            lines.append(f"{v.paper}/{v.id}: {word}, was {v.word}")
    return lines


def read_all(path: str | os.PathLike[str]) -> list[Verdict]:
    """Read a table of verdicts, all tables of a folder, or those in the folders of papers."""
    where = Path(path)
    files = files_in(where) or kept_tables(where) if where.is_dir() else [where]
    if not any(file.is_file() for file in files):
        raise DataError(_none_in(path))
    return [verdict for file in files for verdict in read(file)]


def counts(verdicts: Iterable[Verdict], labels: Mapping[str, str] = {}) -> list[tables.Row]:
    """Return a row per paper with the number of each word on its printed items, and a total.

    `labels` may have other words for papers.
    """
    printed = printed_items(verdicts)
    none = dict.fromkeys((word for word, _ in tally(printed)), 0)
    found = by_paper(printed)
    found |= {"total": printed} if len(found) > 1 else {}
    return [
        {"paper": labels.get(paper, paper), "items": len(mine), **none, **dict(tally(mine))}
        for paper, mine in found.items()
    ]


def opening(question: str, verdicts: Sequence[Verdict]) -> str:
    """Return how a paper's page begins: question, answer, headlines, causes, what was not judged.

    Quick runs have no answer, and no such page.
    """
    printed = printed_items(verdicts)
    if is_quick(printed):
        return ""
    lines: list[tables.Row] = [
        {"claim": f"{v.printed} ({v.source})", AS_PRINTED: _marked(v.word, answers.first_line(v)),
         OTHERWISE: _marked(answers.word_of(v), answers.second_line(v))}
        for v in answers.headlines(printed)
    ]  # fmt: skip
    parts = [
        f"{question} **{answers.answer(printed)}**\n",
        *([tables.markdown(lines)] * bool(lines)),
    ]
    for title, points in sections(printed):
        parts += [f"{title}:\n", "".join(f"- {tables.escaped(point)}\n" for point in points)]
    parts.append(f"{counted_words(printed)}. {CHANCE}\n")
    return "\n".join(parts) + "\n"


def _marked(word: str, said: str) -> str:
    return f"**{word}**: {said}" if word else ""


def sections(verdicts: Sequence[Verdict]) -> list[tuple[str, list[str]]]:
    """Return causes, what was not judged, and what would change the answer; none that is empty."""
    printed = printed_items(verdicts)
    why = [f"{cause}: {counted(n, 'item')}" for cause, n in answers.causes(printed)]
    gone = [f"{reason} ({counted(n, 'item')})" for reason, n in answers.not_judged(printed)]
    failing = sum(v.word == "fails" for v in printed)
    title = f"Why {counted(failing, 'item')} {'fails' if failing == 1 else 'fail'}"
    told = [
        (title, why),
        ("Not judged", gone),
        ("What would change the answer", answers.what_would_change(printed)),
        ("The tests", [f"{said} ({counted(n, 'item')})" for said, n in answers.remarks(printed)]),
    ]
    return [(title, points) for title, points in told if points]


def page(verdicts: Sequence[Verdict]) -> str:
    """Return the page: counts, what the words mean, and all items by paper and place."""
    printed = printed_items(verdicts)
    parts = [tables.markdown(counts(verdicts))] if printed else []
    there = [word for word, _ in tally(printed)]
    parts += ["".join(f"- **{word}**: {WORDS[word]}\n" for word in there)] if there else []
    papers = by_paper(verdicts)
    for paper, mine in papers.items():
        parts += [f"## {paper}\n"] if len(papers) > 1 else []
        items = printed_items(mine)
        for source in dict.fromkeys(v.source for v in items):
            parts.append(f"### {tables.escaped(source)}\n")
            parts.append(_table([v for v in items if v.source == source]))
        if own := checks(mine):
            parts.append("### Checks of this software\n")
            parts.append("They say nothing of the paper and are not counted among its items.\n")
            parts.append(_table(own))
    return "\n".join(parts) + "\n" if parts else "Nothing is printed that could be compared.\n"


def _table(verdicts: Sequence[Verdict]) -> str:
    lines = [
        {
            "item": v.title,
            "printed": v.printed,
            AS_PRINTED: _marked(v.word, answers.first_line(v)),
            OTHERWISE: _marked(answers.word_of(v), answers.second_line(v)),
            "cause": v.cause if v.word == "fails" else "",
            "test": v.because,
        }
        for v in verdicts
    ]
    used = [name for name in lines[0] if any(line[name] for line in lines)]
    return tables.markdown([{name: line[name] for name in used} for line in lines])


def told_of(readings: Iterable[Reading]) -> list[str]:
    """Return each reading with what came out of it, in words."""
    return [
        f"{f'if {r.how}' if r.how else AS_PRINTED}: "
        + (r.obstacle or "; ".join(filter(None, [f"{r.measured}, {r.state}", r.lack])))
        for r in readings
    ]


def describe(verdict: Verdict) -> str:
    """Return everything about one verdict as text for a terminal."""
    v = verdict
    lines = {
        "printed": f"{v.printed} ({v.source})",
        AS_PRINTED: f"{v.word}: {answers.first_line(v)}".rstrip(": "),
        OTHERWISE: f"{answers.word_of(v)}: {answers.second_line(v)}".strip(": "),
        "cause": v.cause if v.word == "fails" else "",
        "test": "; ".join(filter(None, [v.because, v.remark])),
        "readings": "; ".join(told_of(v.readings)) if len(v.readings) > 1 else "",
    }
    body = "\n".join(f"  {name}: {text}" for name, text in lines.items() if text)
    return f"{v.paper}/{v.id}: {v.title}\n{body}"


def overview(verdicts: Iterable[Verdict], questions: Mapping[str, str]) -> str:
    """Return for a terminal: of each paper the counts of its headlines, question and answer."""
    blocks = []
    for paper, mine in by_paper(printed_items(verdicts)).items():
        found = answers.headlines(mine)
        left = _column(AS_PRINTED, [v.word for v in found])
        middle = _column(OTHERWISE, [answers.word_of(v) for v in found])
        said = f"{questions.get(paper, '')}\n{answers.answer(mine)}"
        right = [line for text in said.splitlines() for line in textwrap.wrap(text, WIDTH - 44)]
        height = max(len(left), len(middle), len(right))
        columns = [column + [""] * (height - len(column)) for column in (left, middle, right)]
        names = [paper, *[""] * (height - 1)]
        blocks.append(
            "\n".join(
                f"{name:<16}{a:<14}{b:<14}{text}".rstrip()
                for name, a, b, text in zip(names, *columns, strict=True)
            )
        )
    marks = "   ".join(f"{mark} {word}" for word, mark in MARKS.items())
    heads = f"Counts are of headline claims.\n{marks}\n\n{'':<16}{AS_PRINTED:<14}{OTHERWISE}"
    return "\n\n".join([heads, *blocks]) if blocks else "no printed items"


def _column(title: str, words: Iterable[str]) -> list[str]:
    return [f"{MARKS[word]} {n}" for word, n in answers.tally(words) if word in MARKS]


def is_quick(verdicts: Iterable[Verdict]) -> bool:
    """Whether verdicts are of a quick run, whose items have no words."""
    return any(v.word in (RAN, DID_NOT_RUN) for v in verdicts)


def ran(printed: Sequence[Verdict]) -> str:
    """Return how many items a quick run ran."""
    return f"{sum(v.word == RAN for v in printed)} of {counted(len(printed), 'item')} ran"


def beside_kept(quick: Iterable[Verdict], kept: Iterable[Verdict]) -> str:
    """Return terminal text: what a quick run ran of each paper, and the kept answer."""
    lines = ["Quick run: toy size, stand-in data. It says nothing about a paper.", ""]
    lines.append(f"{'paper':<16}{'this run':<24}kept answer")
    known = by_paper(printed_items(kept))
    for paper, mine in by_paper(printed_items(quick)).items():
        answer = answers.answer(known[paper]) if paper in known else "nothing is kept"
        told = textwrap.shorten(answer, WIDTH - 40, placeholder=" …")
        lines.append(f"{paper:<16}{ran(mine):<24}{told}")
    return "\n".join(lines)


def paper_text(question: str, verdicts: Sequence[Verdict]) -> str:
    """Return terminal text: the beginning of a paper's page."""
    printed = printed_items(verdicts)
    parts = [f"{question}\n{_wrapped(answers.answer(printed))}".strip()]
    lines = []
    for v in answers.headlines(printed):
        lines.append(f'  "{v.printed}"  {v.source}')
        for title, word, said in (
            (AS_PRINTED, v.word, answers.first_line(v)),
            (OTHERWISE, answers.word_of(v), answers.second_line(v)),
        ):
            if word:
                start = f"    {title:<11} {MARKS[word]} {word:<10} "
                lines.append(_hanging(said, start))
    parts += ["\n".join(["HEADLINE CLAIMS", *lines])] if lines else []
    for title, points in sections(printed):
        parts.append("\n".join([title.upper(), *map(_wrapped, points)]))
    parts.append(f"{counted_words(printed)}. {CHANCE}")
    return "\n\n".join(parts)


def _hanging(text: str, start: str) -> str:
    after = " " * len(start)
    return textwrap.fill(text, WIDTH, initial_indent=start, subsequent_indent=after) or start


def _wrapped(text: str) -> str:
    return _hanging(text, "  ")


def by_paper(verdicts: Iterable[Verdict]) -> dict[str, list[Verdict]]:
    """Return the verdicts of each paper."""
    papers: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        papers.setdefault(verdict.paper, []).append(verdict)
    return papers
