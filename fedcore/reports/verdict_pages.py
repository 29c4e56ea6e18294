"""Verdicts as files: a table of all verdicts, and a page in Markdown for people."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from fedcore.errors import DataError
from fedcore.reports import tables
from fedcore.reports.verdicts import VERDICTS, Verdict


def write(verdicts: Sequence[Verdict], path: str | os.PathLike[str]) -> None:
    """Write verdicts as a TSV of all fields, and beside it as Markdown for reading.

    The Markdown begins with the number and the meaning of each verdict. Below the table it gives
    the reason of every verdict but "reproduced" and "surrogate data", equal reasons once. The TSV
    has the reasons of all.
    """
    several = len({verdict.paper for verdict in verdicts}) > 1
    shown = [
        ({"paper": v.paper} if several else {})
        | {
            "source": v.source,
            "quantity": v.quantity,
            "printed": v.printed,
            "measured [min, max]": _measured(v),
            "verdict": v.verdict if v.verdict == "reproduced" else f"**{v.verdict}**",
        }
        for v in verdicts
    ]
    rows = [asdict(verdict) for verdict in verdicts]
    tables.write(rows, path, head=_head(verdicts), shown=shown, below=_reasons(verdicts))


def read(path: str | os.PathLike[str]) -> list[Verdict]:
    """Read what `write` wrote.

    Raises
    ------
    DataError
        When the file is missing, damaged, or no table of verdicts.
    """
    rows: list[dict[str, Any]] = tables.read(path)
    names = {field.name for field in fields(Verdict)}
    for row in rows:
        if set(row) != names or row["verdict"] not in VERDICTS:
            raise DataError(f"{path} is not a table of verdicts: run its rule again")
    return [Verdict(**row) for row in rows]


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
        By default all that have verdicts in `folder`. Verdicts of other papers are left out, such
        as those of a paper that is no longer run.

    Raises
    ------
    DataError
        When there are none, a file is damaged, or two files hold a verdict on the same value.
    """
    out, wanted = Path(path).resolve(), None if papers is None else set(papers)
    # A killed process leaves files whose names begin with a dot.
    files = [
        file
        for file in sorted(Path(folder).resolve().glob("[!.]*.tsv"))
        if file != out and (wanted is None or file.stem in wanted)
    ]
    if not files:
        raise DataError(f"there are no verdicts in {folder}; run the workflow first")
    verdicts = [verdict for file in files for verdict in read(file)]
    counts = Counter(f"{verdict.paper}/{verdict.id}" for verdict in verdicts)
    twice = [name for name, n in counts.items() if n > 1]
    if twice:
        raise DataError(f"{folder}: two files hold a verdict on {twice[0]}; move one away")
    write(verdicts, path)
    return verdicts


def summary(verdicts: Iterable[Verdict]) -> str:
    """Return a line per paper that counts its verdicts, and for several papers a total."""
    lines = []
    for paper, names in _by_paper(verdicts).items():
        found = [(name, names.count(name)) for name in VERDICTS if name in names]
        counts = ", ".join(f"{count} {_counted(name, count)}" for name, count in found)
        plural = "s" if len(names) > 1 else ""
        lines.append(f"{paper}: {counts} (of {len(names)} published value{plural})")
    return "\n".join(lines) or "no published values"


def _counted(verdict: str, count: int) -> str:
    """Return a verdict in the form that follows its number."""
    words = {
        "deviates": "deviates" if count == 1 else "deviate",
        "rounding decides": "decided by rounding",
        "surrogate data": "on surrogate data",
    }
    return words.get(verdict, verdict)


def _measured(verdict: Verdict) -> str:
    """Return the measured value with its range over the repeats and over roundings."""
    low, high = tables.show(verdict.low), tables.show(verdict.high)
    spread = "" if low == high else f" [{low}, {high}]"
    rounding = f", by rounding {verdict.rounding}" if verdict.rounding else ""
    return verdict.measured + spread + rounding


def _head(verdicts: Sequence[Verdict]) -> str:
    """Return, in Markdown, a table that counts the verdicts, and their meanings."""
    there = [name for name in VERDICTS if any(v.verdict == name for v in verdicts)]
    counts: list[tables.Row] = [
        {"paper": paper, "published values": len(names), **{n: names.count(n) for n in there}}
        for paper, names in _by_paper(verdicts).items()
    ]
    meanings = "".join(f"- **{name}**: {VERDICTS[name]}\n" for name in there)
    return f"{tables.markdown(counts)}\n{meanings}\n" if there else ""


def _reasons(verdicts: Sequence[Verdict]) -> list[str]:
    """Return a line per reason for values that were not reproduced, with their quantities."""
    about: dict[tuple[str, str], list[str]] = {}
    for v in verdicts:
        if v.verdict not in ("reproduced", "surrogate data"):
            about.setdefault((v.verdict, v.reason), []).append(v.quantity)
    return [f"**{key[0]}**, {'; '.join(names)}: {key[1]}" for key, names in about.items()]


def _by_paper(verdicts: Iterable[Verdict]) -> dict[str, list[str]]:
    """Return the verdicts of each paper, and for several papers all of them as "total"."""
    papers: dict[str, list[str]] = {}
    for verdict in verdicts:
        papers.setdefault(verdict.paper, []).append(verdict.verdict)
    if len(papers) > 1:
        papers["total"] = [name for names in papers.values() for name in names]
    return papers
