"""Verdicts as files: a table of all verdicts, and a page in Markdown for people."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from fedcore.errors import DataError
from fedcore.reports import tables
from fedcore.repro.verdicts.measurements import Departure
from fedcore.repro.verdicts.verdicts import CHECKS, SOFTWARE, VERDICTS, Reading, Verdict
from fedcore.words import counted

AS_PRINTED = "as printed"
NO_NAMES: Mapping[Departure, str] = {}
# From the worst to the best; `worse` compares by it.
RANK = (
    "fails", "not run", "not comparable", "surrogate data",
    "deviates", "undecided", "contradicts itself", "holds with a departure", "reproduced", "passes",
)  # fmt: skip


def write(verdicts: Sequence[Verdict], path: str | os.PathLike[str]) -> None:
    """Write verdicts as a TSV of all fields, and beside it as Markdown for reading."""
    tables.write(rows(verdicts), path, page=page(verdicts))


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
    if len(verdicts) < len(found) or any(v.verdict not in VERDICTS for v in verdicts):
        raise DataError(f"{path} is not a table of verdicts: run its rule again")
    return verdicts


def _readings(text: str) -> tuple[Reading, ...]:
    def reading(departures: Iterable[dict[str, Any]] = (), **said: Any) -> Reading:
        return Reading(tuple(Departure(**departure) for departure in departures), **said)

    return tuple(reading(**said) for said in json.loads(text))


def files_in(folder: Path) -> list[Path]:
    """Return the tables of a folder, without what a killed process left, named with a dot."""
    return sorted(folder.glob("[!.]*.tsv"))


def kept_tables(folder: Path) -> list[Path]:
    """Return the tables that a checkout keeps, one beside the claims of each paper."""
    claims = sorted(folder.glob("*/claims.yaml"))
    return [table for file in claims if (table := file.with_name("verdicts.tsv")).is_file()]


def read_papers(folder: str | os.PathLike[str], papers: Collection[str]) -> list[Verdict]:
    """Return the verdicts of those `papers` that have some, ``<folder>/<paper>.tsv``."""
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
    """Return the checks of this software, which say nothing of what is printed."""
    return [verdict for verdict in verdicts if verdict.section == SOFTWARE]


def occurring(verdicts: Iterable[Verdict]) -> list[str]:
    """Return the names of the verdicts that occur, in the order of `VERDICTS`."""
    there = {verdict.verdict for verdict in verdicts}
    return [name for name in VERDICTS if name in there]


def tally(verdicts: Iterable[Verdict]) -> list[tuple[str, int]]:
    """Return the verdicts that occur, in the order of `VERDICTS`, with their numbers."""
    counts = Counter(verdict.verdict for verdict in verdicts)
    return [(name, counts[name]) for name in VERDICTS if counts[name]]


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
    """Return a line per paper that counts its verdicts, for several papers a total, and checks."""
    everything = list(verdicts)
    lines = []
    for paper, printed in _by_paper(printed_items(everything)).items():
        counts = ", ".join(f"{count} {_counted(name, count)}" for name, count in tally(printed))
        lines.append(f"{paper}: {counts} (of {counted(len(printed), 'printed item')})")
    states = [v.verdict for v in checks(everything)]
    if states:
        kinds = (*CHECKS.values(), "not run")
        each = [(name, states.count(name)) for name in kinds if name in states]
        lines.append(f"checks of this software: {', '.join(f'{n} {name}' for name, n in each)}")
    return "\n".join(lines) or "no printed items"


def worse(new: Iterable[Verdict], kept: Iterable[Verdict]) -> list[str]:
    """Say which kept verdicts have become worse, or are gone, in the papers of `new`."""
    now = {(v.paper, v.id): v.verdict for v in new}
    papers, lines = {paper for paper, _ in now}, []
    for v in kept:
        verdict = now.get((v.paper, v.id))
        if v.paper in papers and verdict is None:
            lines.append(f"{v.paper}/{v.id}: gone, was {v.verdict}")
        elif verdict is not None and RANK.index(verdict) < RANK.index(v.verdict):
            lines.append(f"{v.paper}/{v.id}: {verdict}, was {v.verdict}")
    return lines


def read_all(path: str | os.PathLike[str]) -> list[Verdict]:
    """Read a table of verdicts, all tables of a folder, or those in the folders of papers."""
    where = Path(path)
    files = files_in(where) or kept_tables(where) if where.is_dir() else [where]
    if not any(file.is_file() for file in files):
        raise DataError(_none_in(path))
    return [verdict for file in files for verdict in read(file)]


def counts(verdicts: Iterable[Verdict], labels: Mapping[str, str] = {}) -> list[tables.Row]:
    """Return a row per paper with the number of each verdict on its printed items, and a total.

    `labels` may have other words for papers.
    """
    printed = printed_items(verdicts)
    none = dict.fromkeys(occurring(printed), 0)
    return [
        {"paper": labels.get(paper, paper), "printed items": len(mine), **none, **dict(tally(mine))}
        for paper, mine in _by_paper(printed).items()
    ]


def page(verdicts: Sequence[Verdict]) -> str:
    """Return the page: counts, what the verdicts mean, and all items by paper and artefact."""
    printed = printed_items(verdicts)
    there = occurring(printed)
    parts = [tables.markdown(counts(verdicts))] if printed else []
    parts += ["".join(f"- **{name}**: {VERDICTS[name]}\n" for name in there)] if there else []
    several = len({v.paper for v in verdicts}) > 1
    for paper in dict.fromkeys(v.paper for v in verdicts):
        mine = [v for v in verdicts if v.paper == paper]
        parts += [f"## {paper}\n"] if several else []
        items = printed_items(mine)
        named = departures(mine)
        if named:
            parts.append(_legend(items, named))
        for source in dict.fromkeys(v.source for v in items):
            parts.append(f"### {tables.escaped(source)}\n")
            parts.append(_table([v for v in items if v.source == source], named))
        if own := checks(mine):
            parts.append("### Checks of this software\n")
            parts.append("They say nothing of the paper and are not counted among its items.\n")
            parts.append(_table(own, named))
    return "\n".join(parts) + "\n" if parts else "Nothing is printed that could be compared.\n"


def describe(verdict: Verdict) -> str:
    """Return everything about one verdict as text for a terminal."""
    v = verdict
    lines = {
        "printed": f"{v.printed} ({v.source})",
        "measured": _measured(v),
        "where": v.where,
        "accepted": v.accepted,
        "place": v.place,
        "runs": _runs(v),
        "protocol": protocol(v),
        "verdict": v.verdict,
        "reason": "; ".join(reasons(v)),
        "counterfactual": v.counterfactual,
    }
    body = "\n".join(f"  {name}: {text}" for name, text in lines.items() if text)
    return f"{v.paper}/{v.id}: {v.quantity}\n{body}"


def departures(verdicts: Iterable[Verdict]) -> dict[Departure, str]:
    """Return a short name, D1, D2 and so on, for every departure that a verdict rests on.

    That of most verdicts comes first.
    """
    found = Counter(one for verdict in verdicts for one in verdict.departures)
    return {one: f"D{number}" for number, (one, _) in enumerate(found.most_common(), start=1)}


def protocol(verdict: Verdict) -> str:
    """Return in words what the reading departs in that a verdict rests on; empty without one."""
    return _worded(verdict.departures) if verdict.readings else ""


def reasons(verdict: Verdict, named: Mapping[Departure, str] = NO_NAMES) -> list[str]:
    """Return in words why a verdict is what it is, and each other reading with its result.

    Departures in `named` have its words.
    """
    first, *others = verdict.readings or (Reading(),)
    said = [first.lack, verdict.because, first.obstacle]
    return [*filter(None, said), *(_tried(one, first, named) for one in others)]


def _tried(reading: Reading, decided: Reading, named: Mapping[Departure, str]) -> str:
    """Return another reading and its result, in words.

    Of one that departs in all that `decided` does, and in more, only the latter is said.
    """
    outcome = f"{reading.measured}, {reading.state}"
    result = f"not run, {reading.obstacle}" if reading.obstacle else outcome
    lack = f" ({reading.lack})" if reading.lack else ""
    how = _worded(reading.departures, named)
    if decided.departures and {*decided.departures} < {*reading.departures}:
        more = [one for one in reading.departures if one not in decided.departures]
        how = f"and also {_worded(more, named)}"
    return f"{how}: {result}{lack}"


def _worded(departures: Iterable[Departure], named: Mapping[Departure, str] = NO_NAMES) -> str:
    """Return departures in words, each with its ground."""
    return "; ".join(named.get(one) or _departed(one) for one in departures) or AS_PRINTED


def _departed(departure: Departure) -> str:
    tried = f": one of {counted(departure.tried, 'reading')} tried on {departure.searched}"
    return f"{departure.what} ({departure.ground}{tried if departure.tried else ''})"


def _legend(printed: Sequence[Verdict], named: Mapping[Departure, str]) -> str:
    """Return how many items were held as printed, and what D1, D2 and so on stand for."""
    found = Counter(one for verdict in printed for one in verdict.departures)
    as_printed = sum(bool(v.readings) and not v.departures for v in printed)
    rows: list[tables.Row] = []
    if as_printed:
        rows.append({"protocol": AS_PRINTED, "departure": "none", "items": as_printed})
    rows += [
        {"protocol": name, "departure": _departed(one), "items": found[one]}
        for one, name in named.items()
    ]
    return f"### Departures from what is printed\n\n{tables.markdown(rows)}"


def _table(verdicts: Sequence[Verdict], named: Mapping[Departure, str]) -> str:
    rows: list[tables.Row] = [
        {
            "item": v.quantity,
            "printed": v.printed,
            "measured": _measured(v),
            "runs": _runs(v),
            "accepted": v.accepted,
            "where the print lies": v.place,
            "protocol": ", ".join(named[one] for one in v.departures) or protocol(v),
            "verdict": v.verdict if v.verdict in ("reproduced", "passes") else f"**{v.verdict}**",
            "why": "; ".join(reasons(v, named)),
        }
        for v in verdicts
    ]
    return tables.markdown([{k: r[k] for k in _used(rows)} for r in rows])


def _used(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the columns that are not empty everywhere."""
    return [name for name in rows[0] if any(row[name] for row in rows)]


def _measured(verdict: Verdict) -> str:
    """Return the measured value with its range over the repeats."""
    low, high = tables.show(verdict.low), tables.show(verdict.high)
    ends = any(reading.ends for reading in verdict.readings[:1])
    spread = "" if low == high or ends else f" [{low}, {high}]"
    return verdict.measured + spread if verdict.measured else ""


def _runs(verdict: Verdict) -> str:
    gone = f", {verdict.missing} without a result" if verdict.missing else ""
    return f"{verdict.count}{gone}" if verdict.count else ""


def _counted(verdict: str, count: int) -> str:
    """Return a verdict in the form that follows its number."""
    many = {
        "holds with a departure": "hold with a departure",
        "deviates": "deviate",
        "contradicts itself": "contradict themselves",
    }
    words = {"surrogate data": "on surrogate data"} | (many if count != 1 else {})
    return words.get(verdict, verdict)


def _by_paper(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    """Return the verdicts of each paper, and for several papers all of them as "total"."""
    papers: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        papers.setdefault(verdict.paper, []).append(verdict)
    return papers | ({"total": list(verdicts)} if len(papers) > 1 else {})
