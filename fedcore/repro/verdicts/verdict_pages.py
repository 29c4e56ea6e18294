"""Write and read tables of verdicts, and show verdicts as Markdown pages and as text."""

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
from fedcore.repro.config.claims import CHANGES
from fedcore.repro.tables.rows import gathered
from fedcore.repro.verdicts import answers
from fedcore.repro.verdicts.answers import AS_PRINTED, OTHERWISE
from fedcore.repro.verdicts.decision_rules import FAILS, HOLDS, UNDECIDED, Part
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
RANK = (DID_NOT_RUN, NOT_RUN, FAILS, UNDECIDED, RAN, HOLDS)
CHANCE = "Chance alone gives an item a wrong verdict in at most one of fourteen cases"
WIDTH = 96


def write(verdicts: Sequence[Verdict], path: str | os.PathLike[str], question: str = "") -> None:
    """Write all fields of verdicts to a TSV file, and a page about them to a Markdown file."""
    head = opening(question, verdicts) if question else ""
    tables.write(rows(verdicts), path, page=head + page(verdicts))


def rows(verdicts: Iterable[Verdict]) -> list[tables.Row]:
    """Return verdicts as table rows; the column ``readings`` has JSON without empty fields."""
    return [asdict(v) | {"readings": _json(v.readings)} for v in verdicts]


def _json(readings: Iterable[Reading]) -> str:
    said = [asdict(one, dict_factory=_without_empty) for one in readings]
    return json.dumps(said, ensure_ascii=False)


def _without_empty(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {key: value for key, value in pairs if value}


def read(path: str | os.PathLike[str]) -> list[Verdict]:
    """Read the verdicts from a TSV file that `write` has written."""
    found: list[dict[str, Any]] = tables.read(path)
    try:
        verdicts = [
            Verdict(**row | {"readings": tuple(map(_reading, json.loads(row["readings"])))})
            for row in found
        ]
    except (AttributeError, KeyError, TypeError, ValueError):
        verdicts = []
    if len(verdicts) < len(found) or any(v.word not in WORDS for v in verdicts):
        raise DataError(f"{path} is not a table of verdicts: run its rule again")
    return verdicts


def _reading(said: dict[str, Any]) -> Reading:
    changes = {key: tuple(Change(**c) for c in said.get(key, ())) for key in CHANGES}
    parts = {name: _part(**part) for name, part in said.get("parts", {}).items()}
    return Reading(**said | changes | {"parts": parts})


def _part(state: str, share: Any = (), at: Any = (), **more: str) -> Part:
    return Part(state, tuple(share), at=tuple(at), **more)


def files_in(folder: Path) -> list[Path]:
    """Return the TSV files of a folder, except temporary files, whose names begin with a dot."""
    return sorted(folder.glob("[!.]*.tsv"))


def kept_tables(folder: Path) -> list[Path]:
    """Return the paths of the verdict tables that a checkout keeps in its papers' folders."""
    claims = sorted(folder.glob("*/claims.yaml"))
    return [table for file in claims if (table := file.with_name("verdicts.tsv")).is_file()]


def read_papers(folder: str | os.PathLike[str], papers: Collection[str]) -> list[Verdict]:
    """Return the verdicts of those `papers` that have a table ``<folder>/<paper>.tsv``."""
    return [
        verdict for file in files_in(Path(folder)) if file.stem in papers for verdict in read(file)
    ]


def printed_items(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts on printed items, without the checks of this software."""
    return [verdict for verdict in verdicts if verdict.section != SOFTWARE]


def checks(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts on checks of this software."""
    return [verdict for verdict in verdicts if verdict.section == SOFTWARE]


def counted_words(verdicts: Sequence[Verdict]) -> str:
    """Return how many printed items there are, and how many have each verdict."""
    printed = printed_items(verdicts)
    return f"{counted(len(printed), 'item')} {AS_PRINTED}: {answers.count_words(printed)}"


def words_of(verdicts: Iterable[Verdict]) -> dict[str, str]:
    """Return the verdict on each item, keyed by ``<paper>/<id>``."""
    return {f"{v.paper}/{v.id}": v.word for v in verdicts}


def worse(new: Iterable[Verdict], kept: Iterable[Verdict]) -> list[str]:
    """Return a line for each item whose verdict is missing in `new`, or worse than in `kept`."""
    now, lines = words_of(new), []
    papers = {name.partition("/")[0] for name in now}
    for name, before in words_of(kept).items():
        word = now.get(name)
        if word is None and name.partition("/")[0] in papers:
            lines.append(f"{name}: gone, was {before}")
        elif word is not None and RANK.index(word) < RANK.index(before):
            lines.append(f"{name}: {word}, was {before}")
    return lines


def read_all(path: str | os.PathLike[str]) -> list[Verdict]:
    """Read verdicts from one table, or from all tables of a run or of a checkout's papers."""
    where = Path(path)
    files = [where]
    if where.is_dir():
        files = files_in(where / "verdicts") or files_in(where) or kept_tables(where)
    if not any(file.is_file() for file in files):
        raise DataError(f"there are no verdicts in {path}: run the workflow first")
    return [verdict for file in files for verdict in read(file)]


def counts(verdicts: Iterable[Verdict]) -> list[tables.Row]:
    """Return table rows that count the verdicts on the printed items of each paper and in total."""
    printed = printed_items(verdicts)
    none = dict.fromkeys((word for word, _ in answers.tally(printed)), 0)
    found = grouped(printed, "paper")
    found |= {"total": printed} if len(found) > 1 else {}
    return [
        {"paper": paper, "items": len(mine), **none, **dict(answers.tally(mine))}
        for paper, mine in found.items()
    ]


def opening(question: str, verdicts: Sequence[Verdict]) -> str:
    """Return the beginning of a paper's page, from the question to the counts of verdicts.

    The text is empty for a quick run, which has no answer.
    """
    printed = printed_items(verdicts)
    if is_quick(printed):
        return ""
    lines = [
        {"claim": f"{v.printed} ({v.source})", **_words(v, "**{}**: {}")}
        for v in answers.headlines(printed)
    ]
    parts = [f"{question} **{answers.answer(printed)}**\n"]
    parts += [tables.markdown(lines)] if lines else []
    for title, points in sections(printed):
        parts += [f"{title}:\n", "".join(f"- {tables.escaped(point)}\n" for point in points)]
    parts.append(f"{counted_words(printed)}. {chance(printed)}\n")
    return "\n".join(parts) + "\n"


def chance(printed: Sequence[Verdict]) -> str:
    """Return a text that says how often chance alone gives an item a wrong verdict."""
    late = sum(bool(v.remark) for v in printed)
    if not late:
        return f"{CHANCE}."
    items = counted(late, "item")
    return f"{CHANCE}, if its test was set before any run. The tests of {items} were set later."


def sections(verdicts: Sequence[Verdict]) -> list[tuple[str, list[str]]]:
    """Return title and list items of the sections of a paper's page, without empty sections."""
    printed = printed_items(verdicts)
    failing = [v for v in printed if v.word == FAILS]
    why = Counter(v.cause or "no cause found" for v in failing)
    gone = Counter(v.why for v in printed if v.word == NOT_RUN)
    remarks = Counter(v.remark for v in printed if v.remark)
    verb = answers.form(FAILS, len(failing))
    told = [
        (f"Why {counted(len(failing), 'item')} {verb}", _numbered(why, "{}: {}")),
        ("Not judged", _numbered(gone)),
        ("What would change the answer", answers.what_would_change(printed)),
        ("The tests", _numbered(remarks)),
    ]
    return [(title, points) for title, points in told if points]


def _numbered(texts: Counter[str], form: str = "{} ({})") -> list[str]:
    """Return each text with the number of its items, from the most items to the fewest."""
    return [form.format(text, counted(n, "item")) for text, n in texts.most_common()]


def page(verdicts: Sequence[Verdict]) -> str:
    """Return a page with counts, the meaning of each verdict, and all items by paper and source."""
    printed = printed_items(verdicts)
    parts = [tables.markdown(counts(verdicts))] if printed else []
    there = [word for word, _ in answers.tally(printed)]
    parts += ["".join(f"- **{word}**: {WORDS[word]}\n" for word in there)] if there else []
    papers = grouped(verdicts, "paper")
    for paper, mine in papers.items():
        parts += [f"## {paper}\n"] if len(papers) > 1 else []
        for source, items in grouped(printed_items(mine), "source").items():
            parts += [f"### {tables.escaped(source)}\n", _table(items)]
        if own := checks(mine):
            parts.append("### Checks of this software\n")
            parts.append(
                "These checks say nothing about the paper, so its counts leave them out.\n"
            )
            parts.append(_table(own))
    return "\n".join(parts) + "\n" if parts else "Nothing is printed that could be compared.\n"


def _table(verdicts: Sequence[Verdict]) -> str:
    lines = [{"item": v.title, "printed": v.printed, **_told(v, "**{}**: {}")} for v in verdicts]
    used = [name for name in lines[0] if any(line[name] for line in lines)]
    return tables.markdown([{name: line[name] for name in used} for line in lines])


def _told(v: Verdict, form: str) -> dict[str, str]:
    return {
        **_words(v, form),
        "cause": v.cause if v.word == FAILS else "",
        "filled in": answers.filled_in(v),
        "test": answers.test_of(v),
    }


def _words(v: Verdict, form: str) -> dict[str, str]:
    """Return the verdicts on the item as printed and on `Verdict.otherwise`, with evidence."""
    otherwise = form.format(answers.word_of(v), answers.second_line(v)) if v.otherwise else ""
    return {AS_PRINTED: form.format(v.word, answers.first_line(v)), OTHERWISE: otherwise}


def told_of(readings: Iterable[Reading]) -> list[str]:
    """Return, for each reading (way to run an item), a text with its changes and its result."""
    return [
        f"{f'if {r.how}' if r.how else AS_PRINTED}: "
        + (r.obstacle or "; ".join(filter(None, [f"{r.measured}, {r.state}", r.lack])))
        for r in readings
    ]


def describe(verdict: Verdict, readings: bool = True) -> str:
    """Return a verdict as text for a terminal, by default with all its readings."""
    v = verdict
    lines = {"printed": f"{v.printed} ({v.source})", **_told(v, "{}: {}")}
    for line in (AS_PRINTED, OTHERWISE):
        lines[line] = lines[line].rstrip(": ")
    if readings and len(v.readings) > 1:
        lines["readings"] = "; ".join(told_of(v.readings))
    body = [_wrapped(f"{name}: {text}") for name, text in lines.items() if text]
    return "\n".join([f"{v.paper}/{v.id}: {v.title}", *body])


def overview(
    verdicts: Iterable[Verdict],
    questions: Mapping[str, str] = {},
    kept: Iterable[Verdict] = (),
) -> str:
    """Return a text with each paper's question, answer and counts, and the counts of the checks.

    For a quick run, which has no answers, the answers come from the `kept` verdicts.
    """
    everything, known = list(verdicts), grouped(printed_items(kept), "paper")
    quick = is_quick(everything)
    blocks = []
    if quick:
        blocks.append("A quick run: toy size, stand-in data. It says nothing about a paper.")
    for paper, printed in grouped(printed_items(everything), "paper").items():
        lines = [questions.get(paper, "")]
        if not quick:
            lines.append(answers.answer(printed))
        elif paper in known:
            lines.append(f"Kept answer: {answers.answer(known[paper])}")
        lines.append(f"{counted_words(printed)}.")
        blocks.append("\n".join([paper, *map(_wrapped, filter(None, lines))]))
    states = answers.count_words(checks(everything))
    if states:
        blocks.append(f"checks of this software: {states}")
    return "\n\n".join(blocks) or "no printed items"


def is_quick(verdicts: Iterable[Verdict]) -> bool:
    """Return whether the verdicts come from a quick run."""
    return any(v.word in (RAN, DID_NOT_RUN) for v in verdicts)


def ran(printed: Sequence[Verdict]) -> str:
    """Return a text with the number of items that a quick run has run."""
    return f"{sum(v.word == RAN for v in printed)} of {counted(len(printed), 'item')} ran"


def paper_text(question: str, verdicts: Sequence[Verdict]) -> str:
    """Return the beginning of a paper's page as text for a terminal."""
    printed = printed_items(verdicts)
    parts = [f"{question}\n{_wrapped(answers.answer(printed))}".strip()]
    parts += [describe(v, readings=False) for v in answers.headlines(printed)]
    for title, points in sections(printed):
        parts.append("\n".join([f"{title}:", *map(_wrapped, points)]))
    parts.append(f"{counted_words(printed)}. {chance(printed)}")
    return "\n\n".join(parts)


def _wrapped(text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent="  ", subsequent_indent="    ")


def grouped(verdicts: Iterable[Verdict], by: str) -> dict[str, list[Verdict]]:
    """Return the verdicts grouped by the field `by`, in the order of first appearance."""
    return gathered((getattr(verdict, by), verdict) for verdict in verdicts)
