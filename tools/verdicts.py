"""Keeps the verdicts of the last runs in the folders of papers, and writes the pages on them.

`kept_verdicts` copies the verdicts. All pages are functions of what it keeps, and so is what
`readme_verdicts` writes into README and docs/privacy.md; a test remakes them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import textwrap
from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from kept_verdicts import Run, collect, data_of, read, read_notes
from readme_verdicts import (
    FINDINGS,
    NONE,
    every_paper,
    inserted,
    meanings,
    stale,
    table_of_findings,
)

from fedcore.errors import DataError
from fedcore.files.strict_yaml import read_yaml
from fedcore.reports import tables
from fedcore.repro.plan.plan import load_plan
from fedcore.repro.site.left_out import by_reason
from fedcore.repro.verdicts import verdict_pages
from fedcore.repro.verdicts.verdicts import Verdict
from fedcore.words import counted

ROOT = Path(__file__).parents[1]
WRITTEN = (
    "`python tools/verdicts.py` writes this page from the last run and, where that left something\n"
    "out, from earlier ones; a test fails when it is stale."
)
OTHER_CODE = (
    "The commit is that of tables and verdicts. Cells *by other code* were made before, and their\n"
    "histories put back (`make restore`); each names the commit that keeps it.\n"
    "*Untimed* cells have no seconds here. Where both are empty, nobody has noted them.\n"
)
INDEX = "../../docs/verdicts.md"  # from a paper's folder
TIMES = (
    "CPU and wall seconds of all timed cells of an experiment together, and the largest memory of "
    f"one;\nwhat *by other code* and *untimed* mean stands [below the runs]({INDEX}#the-runs).\n"
)


def pages(root: Path) -> dict[str, str]:
    """Return the text of every page, by its path; the site includes those of the papers."""
    verdicts, run = read(root)
    found = {"docs/verdicts.md": index(verdicts, run)}
    for paper, items in verdicts.items():
        found[f"papers/{paper}/README.md"] = page(paper, items, run)
        found[f"docs/verdicts/{paper}.md"] = f"```{{include}} ../../papers/{paper}/README.md\n```\n"
    return found


def index(verdicts: dict[str, list[Verdict]], run: Run, findings: Path = FINDINGS) -> str:
    """Return docs/verdicts.md: the counts, what the verdicts mean, and what was found."""
    found = [verdict for items in verdicts.values() for verdict in items]
    parts = ["# Verdicts\n", f"{WRITTEN}\n"]
    if not found:
        return "\n".join([*parts, NONE])
    linked = {paper: tables.Link(paper, f"../papers/{paper}/README.md") for paper in verdicts}
    parts += [tables.markdown(verdict_pages.counts(found, linked)), meanings(found)]
    checks = Counter(v.verdict for v in verdict_pages.checks(found))
    if checks:
        words = ", ".join(f"{count} {name}" for name, count in sorted(checks.items()))
        parts.append(f"Checks of this software, which say nothing of the papers: {words}.\n")
    if told := table_of_findings(found, read_yaml(findings)):
        parts += ["## Findings\n", told]
    parts += ["## The runs\n", tables.markdown(runs(run)), OTHER_CODE]
    parts.append(
        "`fedcore verdicts --show ID` prints everything about one item, such as what turns its\n"
        "outcome; `fedcore verdicts --strict` compares a new run with these tables.\n"
    )
    return "\n".join(parts)


def page(paper: str, verdicts: list[Verdict], run: Run) -> str:
    """Return the certificate of one paper."""
    notes = run[paper]
    printed = verdict_pages.printed_items(verdicts)
    kinds = [_checked(kind, printed) for kind in dict.fromkeys(v.kind for v in printed)]
    left_out = [v for v in printed if v.verdict in ("not run", "not comparable")]
    parts = [
        f"# `{paper}`: {notes['title']}\n",
        f"{notes['citation']}. [All papers]({INDEX}), [table](verdicts.tsv).\n{WRITTEN}\n",
        f"Run of {notes['date']}, commit {notes['commit']}.\n",
        "## What was checked\n",
        tables.markdown(kinds) if kinds else "The paper's items are not listed yet.\n",
        "## What was left out, and why\n",
        tallied(left_out) if left_out else "Nothing.\n",
        "## Data\n",
        tables.markdown([{"problem": name, **data} for name, data in data_of(notes).items()]),
    ]
    missing = by_reason(notes["missing"])
    parts += [f"- {', '.join(names)}: {why}\n" for why, names in missing.items()]
    times = [{"experiment": name, **total([time])} for name, time in notes["times"].items()]
    times.append({"experiment": "total", **total(notes["times"].values())})
    parts += [
        "## Environment\n",
        "Versions are those that the histories hold; machine and BLAS, those of the machine that\n"
        "made the pages.\n",
        listed(notes["versions"] | notes["machine"]),
        "## Times\n",
        TIMES,
        tables.markdown(times),
        *(earlier(part) for part in notes.get("earlier", [])),
        "## Items\n",
        verdict_pages.page(verdicts),
    ]
    return "\n".join(parts)


def earlier(part: Run) -> str:
    """Return what a page says of an earlier run whose verdicts on some items were kept."""
    items = ", ".join(f"`{item}`" for item in part["items"])
    cost = total(part["times"].values())
    said = (
        f"Run of {part['date']}, commit {part['commit']}, {counted(cost['cells'], 'cell')}, "
        f"{counted(cost['wall seconds'], 'wall second')}. The last run left "
        f"{'this item' if len(part['items']) == 1 else 'these items'} out: {items}."
    )
    said = textwrap.fill(said, 100, break_on_hyphens=False, break_long_words=False)
    return f"## Earlier run\n\n{said}\n\n" + listed(part["versions"] | part["machine"])


def total(times: Collection[Run]) -> tables.Row:
    """Return what experiments took together: cells, their seconds, and the largest memory in MB.

    How many cells were made by other code, and how many have no time, is None where a run has not
    noted it; so are CPU seconds.
    """

    def counts(name: str) -> float | None:
        return round(sum(t[name] for t in times), 1) if all(name in t for t in times) else None

    return {
        "cells": counts("cells"),
        "by other code": counts("by other code"),
        "untimed": counts("untimed"),
        "CPU seconds": counts("CPU seconds"),
        "wall seconds": round(sum(time["seconds"] for time in times), 1),
        "MB": max((time["MB"] for time in times), default=0),
    }


def runs(run: Run) -> list[tables.Row]:
    """Return a row per run that judged: when and where it was, and how long its cells took."""
    rows: list[tables.Row] = []
    for paper, last in run.items():
        for part in [last, *last.get("earlier", [])]:
            items = counted(len(part.get("items", [])), "item")
            named = paper if part is last else f"{paper}, {items} of before"
            rows.append({"paper": named, "date": part["date"], "commit": part["commit"]})
            rows[-1] |= total(part["times"].values()) | part["machine"]
    return rows


def _checked(kind: str, printed: list[Verdict]) -> tables.Row:
    mine = [v for v in printed if v.kind == kind]
    none = dict.fromkeys(verdict_pages.occurring(printed), 0)
    return {"kind": kind, "printed items": len(mine), **none, **dict(verdict_pages.tally(mine))}


def tallied(left_out: list[Verdict]) -> str:
    """Return a table of why items were left out, with the number of each."""
    found = Counter((v.verdict, "; ".join(verdict_pages.reasons(v))) for v in left_out)
    rows: list[tables.Row] = [
        {"verdict": verdict, "why": why, "items": count}
        for (verdict, why), count in found.most_common()
    ]
    return tables.markdown(rows)


def listed(values: dict[str, str]) -> str:
    """Return names and values as a list in Markdown."""
    return "".join(f"- {name}: {tables.escaped(value)}\n" for name, value in values.items())


def checked(claimed: Mapping[str, Any]) -> dict[str, str]:
    """Return a fingerprint of how an item is checked, for every item that has a check."""
    items = (*claimed["claims"], *claimed["software"])
    how = ("select", "test", "departures", "readings", "spread", "counterfactual")
    return {
        item["id"]: hashlib.sha256(
            json.dumps([_without_words(item.get(key)) for key in how], sort_keys=True).encode()
        ).hexdigest()[:12]
        for item in items
        if "unchecked" not in item
    }


def _without_words(value: Any) -> Any:
    """Return a part of a claim without what a `select` only says, which checks nothing."""
    if isinstance(value, list):
        return [_without_words(one) for one in value]
    if isinstance(value, dict):
        return {key: _without_words(one) for key, one in value.items() if key != "absent"}
    return value


def codes() -> dict[str, str]:
    """Return the fingerprint of the code that makes a cell, by its path; of all cells with data."""
    plan = load_plan(read_yaml(ROOT / "config" / "config.yaml"))
    return {path: cell.code for path, cell in plan.cells.items()}


def main() -> None:
    """Collect from results/, unless told not to, and write all pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    only = "write the pages anew from what is kept, and leave results/ alone"
    parser.add_argument("--pages-only", action="store_true", help=only)
    if not parser.parse_args().pages_only:
        rules = {name: checked(paper) for name, paper in every_paper().items()}
        collect(ROOT / "results", ROOT, rules, codes())
    for old in ROOT.glob("docs/verdicts/*.md"):
        old.unlink()
    for page, text in (pages(ROOT) | inserted(ROOT)).items():
        (ROOT / page).parent.mkdir(exist_ok=True)
        (ROOT / page).write_text(text, encoding="utf-8", newline="\n")
    print(tables.markdown(runs(read_notes(ROOT))), end="")
    verdicts, _ = read(ROOT)
    kept = [verdict for items in verdicts.values() for verdict in items]
    for line in stale(kept, read_yaml(FINDINGS)):
        print(f"papers/findings.yaml, {line}: write it anew", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except DataError as error:
        sys.exit(f"Error: {error}")
